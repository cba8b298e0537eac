"""What a deployment is: the spec's vocabulary, one pydantic model for each thing it names.

Checks of one value live here; checks across values live in `checks.py`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints

from serve_app.spec.tensors import TensorField
from serve_app.spec.units import Duration, Size

QUEUE_DELAY_SHARE = 0.3
AS_IS = "serve_app.weights.prepared:as_is"

Name = Annotated[
    str,
    StringConstraints(pattern=r"^[a-z][a-z0-9_]*$"),
    Field(description="lower-case letters, digits and underscores, a letter first"),
]
CodePath = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][\w.]*:[A-Za-z_]\w*$")]
Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
Port = Annotated[int, Field(ge=1024, le=65535)]
Positive = Annotated[int, Field(ge=1)]
ProfileName = Literal["embedded", "gpu"]


class Part(BaseModel):
    """A part of the spec: unknown keys are refused, nothing changes after loading."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Service(Part):
    sla: Duration = Field(description="within this every request is answered, where its pipeline gives no other")
    host: str = Field(description="the address the HTTP ingress listens on; 0.0.0.0 for every interface")
    port: Port
    upload_limit: Size = Field(description="the largest file a request may carry")
    request_limit: Size = Field(description="the largest request, all its files together")
    proxy_timeout: Duration = Field(
        description="Ray's proxy answers 408 then; longer than any SLA, for a stuck ingress"
    )
    retry_after: Duration = Field(description="what a client is told to wait when the service is full")


class Ray(Part):
    port: Port = Field(description="the head node's port, for `tandem up`")
    dashboard_port: Port
    object_store: Size = Field(description="shared memory that Ray may use to pass requests between processes")


class Tier(Part):
    priority: Positive = Field(description="1 is served first")
    default: bool = False


class Triton(Part):
    version: str = Field(pattern=r"^\d+\.\d+\.\d+$", description="the oldest server this profile is meant for")
    requirement: str | None = Field(
        default=None, description="the wheel that carries the server, where none is on PATH"
    )
    sha256: Sha256 | None = None
    cpus: float = Field(gt=0)
    gpus: float = Field(default=0, ge=0)
    memory: Size
    startup_timeout: Duration
    exit_timeout: Duration = Field(description="how long queued requests may take when the server is stopped")
    replicas: Positive = Field(default=1, description="servers: one for each GPU, or one for this machine's CPUs")
    health_check_period: Duration
    health_check_timeout: Duration


class Profile(Part):
    device: Literal["cpu", "gpu"]
    onnx: Literal["python", "onnxruntime"] = Field(
        description="what runs ONNX models: the python backend's shared module, or Triton's own ONNX Runtime backend"
    )
    triton: Triton


class Weights(Part):
    """Where a model's file comes from: a pinned package, a file of yours, or code that builds it."""

    package: str | None = Field(default=None, description="name==version")
    kind: Literal["wheel", "sdist"] = "wheel"
    file: str | None = Field(default=None, description="path inside the package, or of a file in the project")
    sha256: Sha256 | None = Field(default=None, description="of the package, or of the file where there is none")
    prepare: CodePath = Field(
        default=AS_IS,
        description="module:function that turns the file into the model Triton runs; by default it is one already",
    )


class Output(Part):
    tensor: TensorField
    labels: str | None = Field(default=None, description="name of the label file in the model's folder")


def _output(value: object) -> object:
    return value if isinstance(value, dict) else {"tensor": value}


class Override(Part):
    """What may differ between the devices of two profiles. Tensors may not."""

    max_batch: Positive | None = None
    queue_delay: Duration | None = None
    instances: Positive = 1
    threads: Positive = Field(default=1, description="CPU threads of each instance, in the python backend")


class Model(Part):
    backend: Literal["onnx", "python"] = Field(
        default="onnx", description="onnx: a prepared ONNX file; python: model.py of its own in the model's folder"
    )
    inputs: dict[Name, TensorField] = Field(min_length=1)
    outputs: dict[Name, Annotated[Output, BeforeValidator(_output)]] = Field(min_length=1)
    max_batch: Positive
    latency_budget: Duration = Field(description="queue and inference together, at the load it is sized for")
    queue_delay: Duration | None = Field(
        default=None, description="how long a request waits for company; 30 % of budget"
    )
    queue_size: Positive = Field(default=128, description="requests that may wait; more are refused at once")
    weights: Weights | None = None
    profiles: dict[ProfileName, Override] = Field(default_factory=dict)


class Autoscaling(Part):
    min_replicas: Positive
    max_replicas: Positive
    target_ongoing_requests: float = Field(gt=0)
    upscale_delay: Duration = timedelta(seconds=5)
    downscale_delay: Duration = timedelta(minutes=5)


class Replicas(Part):
    """How many processes run a part, and what each may use."""

    cpus: float = Field(ge=0)
    memory: Size
    max_ongoing_requests: Positive = Field(description="requests that one replica works on at a time")
    max_queued_requests: Positive = Field(
        description="requests that may wait for a replica, for each process that sends them; more get 429"
    )
    autoscaling: Autoscaling


class Stage(Part):
    code: CodePath = Field(description="module:Class; its constructor takes the models by name, and settings")
    models: list[Name] = Field(default_factory=list)
    runs_in: Literal["ingress"] | None = Field(default=None, description="ingress: no process of its own")
    replicas: Replicas | None = None
    settings: dict[str, Any] = Field(default_factory=dict)


@dataclass(frozen=True)
class Images:
    """What a pipeline takes under one name: `image`, or `image[0..8]` for a list."""

    many: bool
    fewest: int
    most: int


_IMAGES = re.compile(r"image(?:\[(\d+)\.\.(\d+)\])?")


def parse_images(text: object) -> Images:
    match = _IMAGES.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        raise ValueError(f"{text!r} is not an input; write image, or image[0..8] for a list of up to eight")
    if match[1] is None:
        return Images(many=False, fewest=1, most=1)
    fewest, most = int(match[1]), int(match[2])
    if fewest > most or most < 1:
        raise ValueError(f"{text!r} allows nothing; write the smaller count first, as image[0..8]")
    return Images(many=True, fewest=fewest, most=most)


class Step(Part):
    """One call of a stage's method. Its arguments are inputs of the pipeline or results of earlier steps, by name."""

    call: str = Field(pattern=r"^[a-z][a-z0-9_]*\.[a-z][a-z0-9_]*$", description="stage.method")
    takes: dict[Name, Name] = Field(default_factory=dict, description="argument of the method: input or step")


class Pipeline(Part):
    route: str = Field(pattern=r"^(/[a-z0-9_-]+)+$")
    summary: str = Field(description="one line for the API's documentation")
    sla: Duration | None = None
    inputs: dict[Name, Annotated[Images, BeforeValidator(parse_images)]] = Field(min_length=1)
    steps: dict[Name, Step] = Field(min_length=1, description="the last one's result is the answer")


class Spec(Part):
    """A whole deployment."""

    application: Name
    service: Service
    ray: Ray
    tiers: dict[Name, Tier] = Field(min_length=1)
    profiles: dict[ProfileName, Profile] = Field(min_length=1)
    ingress: Replicas
    models: dict[Name, Model] = Field(min_length=1)
    stages: dict[Name, Stage] = Field(min_length=1)
    pipelines: dict[Name, Pipeline] = Field(min_length=1)

    def sla(self, pipeline: str) -> timedelta:
        return self.pipelines[pipeline].sla or self.service.sla

    def override(self, model: str, profile: ProfileName) -> Override:
        return self.models[model].profiles.get(profile, Override())

    def max_batch(self, model: str, profile: ProfileName) -> int:
        return self.override(model, profile).max_batch or self.models[model].max_batch

    def queue_delay(self, model: str, profile: ProfileName) -> timedelta:
        """How long a request waits for others to share its batch: as given, else 30 % of the latency budget."""
        entry = self.models[model]
        given = self.override(model, profile).queue_delay
        if given is None:
            given = entry.queue_delay
        return entry.latency_budget * QUEUE_DELAY_SHARE if given is None else given

    @property
    def url(self) -> str:
        """Where the ingress is reached from this machine."""
        host = "127.0.0.1" if self.service.host == "0.0.0.0" else self.service.host
        return f"http://{host}:{self.service.port}"

    @property
    def default_tier(self) -> str:
        return next(name for name, tier in self.tiers.items() if tier.default)

    @property
    def priority_levels(self) -> int:
        return max(tier.priority for tier in self.tiers.values())

    @property
    def wake_up_level(self) -> int:
        """The priority level below all tiers', kept for wake-up requests (`serve_app/triton/wake_up.py`)."""
        return self.priority_levels + 1
