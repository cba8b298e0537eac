"""Where the service listens, and what Ray and Ray Serve are told of the cluster.

The ingress listens by itself, so nothing is here of what Ray Serve 2.60 takes for its proxies, which are off.

Ray Serve reads `tracing` and `controller_environment` when it starts and never again: it answers 200 to a `serve
deploy` that changes them, and changes nothing.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

from pydantic import Field

from serve_app.spec.part import CodePath, Form, Part, Port, Positive
from serve_app.spec.replicas import Environment, Logging, PolicyField
from serve_app.spec.units import Percent, SomePercent, SomeSeconds, SomeSize, SomeTime

AbsolutePath = Annotated[str, Form(r"/.*[^/]", "a file's whole path, as /etc/tandem/tls.key")]
RemotePackage = Annotated[
    str,
    Form(
        r"(https?|s3|gs|azure|abfss|file)://.+\.(zip|whl|tar\.gz|tgz)|local:///.+",
        "the address of an archive, as s3://bucket/project.zip, or of a folder on every node, as local:///srv/project",
    ),
]


class Tls(Part):
    """Files that every node with an ingress has. They are read when a replica of it starts."""

    certificate: AbsolutePath = Field(description="with the chain that leads to its root")
    key: AbsolutePath = Field(description="not encrypted; readable by Ray's user only")


class Http(Part):
    """Settings of HTTP, beside its port."""

    root_path: Annotated[str, Form(r"(/[A-Za-z0-9._~-]+)+", "a path without a slash at its end, as /kyc")] | None = (
        Field(default=None, description="what a gateway in front takes off the paths of requests, for the API's links")
    )
    keep_alive: SomeSeconds | None = Field(
        default=None, description="how long a connection without requests stays open, in whole seconds; 90s"
    )


class Grpc(Part):
    """The Open Inference Protocol over gRPC."""

    port: Port = Field(default=9000, description="of gRPC")


DEFAULT_WORK_SHARE = 33.0


class Admission(Part):
    """Which requests each ingress takes, beside its own bounds and those of the tiers."""

    adaptive: bool = Field(
        default=True,
        description="work on fewer at a time than ingress.max_ongoing_requests while more make each too slow; false: "
        "never fewer",
    )
    work_share: SomePercent | None = Field(
        default=None,
        description="of an SLA, that the work on a request may take until it is too slow; the rest is for waiting, in "
        "the tiers' order; 33%, or the latency budgets where these are more",
    )
    refuse_late: bool = Field(
        default=True,
        description="refuse at once what cannot be answered before its deadline; false: let it wait until then",
    )


class Breaker(Part):
    """How long a model that does not answer is waited for, before its calls fail at once."""

    enabled: bool = Field(default=True, description="false: every call waits until its deadline")
    failures: Positive = Field(
        default=3, description="calls in a row without an answer, after which the model's calls fail at once"
    )
    open_for: SomeTime = Field(
        default=timedelta(seconds=2), description="after this one call is let through again, and if answered, all are"
    )


class Service(Part):
    """Where clients find the service, how large their requests may be, and how soon they are answered."""

    sla: SomeTime = Field(description="within this every request is answered, where its pipeline gives no other")
    host: str = Field(description="the address the ingress listens on, on every node with one; 0.0.0.0 for all of them")
    port: Port = Field(description="of HTTP")
    upload_limit: SomeSize = Field(description="the largest file a request may carry")
    request_limit: SomeSize = Field(description="the largest request, all its files together")
    retry_after: SomeTime = Field(description="the least that a client is told to wait when the service is full")
    admission: Admission = Field(default=Admission(), description="which requests are taken while many come")
    breaker: Breaker = Field(default=Breaker(), description="what happens to calls of a model that does not answer")
    http: Http = Field(default=Http(), description="what is rare about HTTP")
    grpc: Grpc = Field(default=Grpc(), description="the port of gRPC; 9000")
    tls: Tls | None = Field(default=None, description="HTTPS, and gRPC over TLS; in plain text by default")


class Tracing(Part):
    """OpenTelemetry's traces of requests on their way through Ray Serve."""

    exporter: CodePath | None = Field(
        default=None, description="module:function that answers OpenTelemetry's span processors; a file by default"
    )
    sampling: Percent | None = Field(default=None, description="of the requests; 1%")


class RuntimeEnvironment(Part):
    """What Ray prepares on a node before it starts a process there. Any change restarts the whole application."""

    environment: Environment = Field(default_factory=dict, description="variables of every process")
    working_dir: RemotePackage | None = Field(default=None, description="the project, where nodes do not have it")
    py_modules: list[RemotePackage] = Field(default_factory=list, description="packages to import from, beside it")
    pip: list[str] = Field(default_factory=list, description="requirements, installed on top of what nodes have")
    image: str | None = Field(default=None, description="a container to run every process in, with Ray in it")
    setup_timeout: SomeSeconds | None = Field(
        default=None, description="how long all that may take on a node, in whole seconds; 600s (Ray: config)"
    )


class Ray(Part):
    """The cluster, and what is the same for all parts of the deployment."""

    port: Port = Field(description="the head node's port, for `tandem up`")
    dashboard_port: Port = Field(description="of Ray's dashboard, for `tandem up` and `tandem drift`")
    object_store: SomeSize = Field(description="shared memory that Ray may use to pass requests between processes")
    logging: Logging | None = Field(
        default=None, description="of Ray Serve's controller, and of all parts that have none of their own"
    )
    application_logging: Logging | None = Field(
        default=None, description="of all parts that have none of their own, instead of logging"
    )
    tracing: Tracing | None = Field(default=None, description="off by default; read when Ray Serve starts")
    controller_environment: Environment = Field(
        default_factory=dict, description="variables of Ray Serve's controller; read when it starts"
    )
    runtime_environment: RuntimeEnvironment = Field(
        default=RuntimeEnvironment(), description="of every process (Ray: runtime_env)"
    )
    autoscaling_policy: PolicyField | None = Field(
        default=None, description="one for all deployments together, instead of theirs"
    )
    external_scaler: bool = Field(default=False, description="something else sets the counts, by Ray's REST API")
    target_capacity: Percent | None = Field(
        default=None, description="the share of all replicas to run, while two clusters take turns"
    )
