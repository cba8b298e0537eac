"""The places a deployment can run in: which Triton, on which device, with how much of the machine."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from serve_app.spec.model import Resource
from serve_app.spec.part import Part, RayVersion, Sha256, Shorthand, TritonVersion
from serve_app.spec.replicas import Logging, Node, ReplicaCount, RollingUpdate
from serve_app.spec.units import Size, SomeSize, SomeTime


class Watchdog(Part):
    """What ends a model's standstill: it is loaded anew, and the whole server is where that does not help."""

    enabled: bool = Field(default=True, description="whether models are watched")
    limit: SomeTime | None = Field(
        default=None,
        description="no batch of any model takes longer: so long may requests wait while none ends; twice the longest "
        "SLA, and 10s at the least",
    )


class Triton(Part):
    """The server of a profile: where it comes from, what Ray reserves for it, and what it is started with."""

    version: TritonVersion = Field(description="the oldest server this profile is meant for")
    requirement: str | None = Field(
        default=None, description="the wheel that carries the server, where none is on PATH"
    )
    sha256: Sha256 | None = Field(default=None, description="of that wheel")
    backends: list[str] | None = Field(
        default=None, description="those that the server has, where it is known; the wheel's has python only"
    )
    cpus: float = Field(gt=0, description="that Ray reserves for it; not a limit (Ray: num_cpus)")
    gpus: float = Field(default=0, ge=0, description="that Ray reserves for it, and that it sees (Ray: num_gpus)")
    memory: SomeSize = Field(description="that Ray reserves for it; not a limit")
    memory_limit: SomeSize | None = Field(
        default=None,
        description="with more of their own, the server and its models' processes are ended, and others started; none",
    )
    device_memory: SomeSize | None = Field(default=None, description="of each GPU, for the checks of models' memory")
    shared_memory: SomeSize | None = Field(default=None, description="of /dev/shm, for the checks of tensors' sizes")
    response_cache: Size | None = Field(default=None, description="for the models with cache: true; none by default")
    rate_limit: bool = Field(default=False, description="whether instances' rate_limiter counts (Triton: --rate-limit)")
    resources: dict[str, Annotated[Resource, Shorthand("count")]] = Field(
        default_factory=dict, description="what the rate limiter shares out; by default the most any instance wants"
    )
    startup_timeout: SomeTime = Field(description="how long it may take until every model is ready")
    exit_timeout: SomeTime = Field(
        description="how long queued requests may take when the server is stopped (Triton: --exit-timeout-secs)"
    )
    watchdog: Watchdog = Field(default=Watchdog(), description="acts where requests wait and no batch of a model ends")
    replicas: ReplicaCount = Field(default=1, description="servers: one for each GPU, or one for this machine's CPUs")
    health_check_period: SomeTime = Field(description="how often Ray asks the process that owns it whether both live")
    health_check_timeout: SomeTime = Field(description="after three checks longer than this, Ray replaces both")
    node: Node = Field(default=Node(), description="what the node it runs on must have; anything")
    max_per_node: Annotated[int, Field(ge=1, le=100)] | None = Field(
        default=None, description="servers on one node at the most; no limit (Ray: max_replicas_per_node)"
    )
    rolling_update: RollingUpdate = Field(
        default=RollingUpdate(), description="surge: 100% starts the new server before the old one ends"
    )
    logging: Logging | None = Field(default=None, description="of the deployment that owns the server; ray.logging")


class Profile(Part):
    """A place that the deployment can run in. What differs between the places is here, and in models' `profiles`."""

    device: Literal["cpu", "gpu"] = Field(description="what native models run on where their instances do not say it")
    onnx: Literal["python", "onnxruntime"] = Field(
        description="what runs ONNX models: the python backend's shared module, or Triton's own ONNX Runtime backend"
    )
    ray_version: RayVersion = Field(description="the Ray that this profile is deployed with")
    triton: Triton = Field(description="the server")
