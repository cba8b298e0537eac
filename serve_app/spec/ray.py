"""What Ray and Ray Serve are told of the service and the cluster.

Ray Serve reads `host`, `port`, `proxy_timeout`, `http`, `grpc`, `proxies`, `tracing` and `controller_environment` when
it starts and never again: it answers 200 to a `serve deploy` that changes them, and changes nothing.

Of what Ray Serve 2.60 takes, this is not here: a password of the TLS key, which would be in a file that is committed;
authorities for clients' certificates, since Ray asks no client for one; no proxy at all, since the API is HTTP.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from serve_app.spec.part import CodePath, Form, Part, Port
from serve_app.spec.replicas import Environment, Logging, PolicyField
from serve_app.spec.units import Duration, Percent, Seconds, Size, SomeTime

AbsolutePath = Annotated[str, Form(r"/.*[^/]", "a file's whole path, as /etc/tandem/tls.key")]
RemotePackage = Annotated[
    str,
    Form(
        r"(https?|s3|gs|azure|abfss|file)://.+\.(zip|whl|tar\.gz|tgz)|local:///.+",
        "the address of an archive, as s3://bucket/project.zip, or of a folder on every node, as local:///srv/project",
    ),
]


class Tls(Part):
    """Files that every node with a proxy has."""

    certificate: AbsolutePath = Field(description="with the chain that leads to its root")
    key: AbsolutePath = Field(description="not encrypted; readable by Ray's user only")


class Http(Part):
    """Settings of HTTP, beside its port."""

    root_path: Annotated[str, Form(r"(/[A-Za-z0-9._~-]+)+", "a path without a slash at its end, as /kyc")] | None = (
        Field(default=None, description="what a gateway in front takes off the paths of requests, for the API's links")
    )
    keep_alive: Seconds | None = Field(
        default=None, description="how long a connection without requests stays open, in whole seconds; 90s"
    )
    tls: Tls | None = Field(default=None, description="HTTPS instead of HTTP")


class Grpc(Part):
    """Ray Serve's gRPC proxies."""

    port: Port = Field(default=9000, description="of gRPC")
    servicers: list[CodePath] = Field(min_length=1, description="module:add_…Servicer_to_server, made by protoc")
    timeout: SomeTime | None = Field(default=None, description="none")
    reflection: bool | None = Field(default=None, description="tell clients what services there are; true")


class Service(Part):
    """Where clients find the service, how large their requests may be, and how soon they are answered."""

    sla: Duration = Field(description="within this every request is answered, where its pipeline gives no other")
    host: str = Field(description="the address the ingress listens on; 0.0.0.0 for every interface. Read at the start")
    port: Port = Field(description="read when Ray Serve starts")
    upload_limit: Size = Field(description="the largest file a request may carry")
    request_limit: Size = Field(description="the largest request, all its files together")
    proxy_timeout: Duration = Field(
        description="Ray's proxy answers 408 then; longer than any SLA, for a stuck ingress. Read when Ray Serve starts"
    )
    retry_after: Duration = Field(description="what a client is told to wait when the service is full")
    http: Http = Field(default=Http(), description="read when Ray Serve starts")
    grpc: Grpc | None = Field(default=None, description="none by default; read when Ray Serve starts")


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


class Ray(Part):
    """The cluster, and what is the same for all parts of the deployment."""

    port: Port = Field(description="the head node's port, for `tandem up`")
    dashboard_port: Port = Field(description="of Ray's dashboard, for `tandem up` and `tandem drift`")
    object_store: Size = Field(description="shared memory that Ray may use to pass requests between processes")
    proxies: Literal["every_node", "head_only"] = Field(
        default="every_node", description="nodes with a replica, or the head alone. Read when Ray Serve starts"
    )
    logging: Logging | None = Field(default=None, description="of all parts that have none of their own")
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
