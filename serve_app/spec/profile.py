"""The places a deployment can run in: which Triton, on which device, with how much of the machine."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from serve_app.spec.model import Resource
from serve_app.spec.part import Part, Positive, Sha256, Shorthand, Version
from serve_app.spec.replicas import Logging, Node, RollingUpdate
from serve_app.spec.units import Size, SomeTime


class Triton(Part):
    version: Version = Field(description="the oldest server this profile is meant for")
    requirement: str | None = Field(
        default=None, description="the wheel that carries the server, where none is on PATH"
    )
    sha256: Sha256 | None = None
    backends: list[str] | None = Field(
        default=None, description="those that the server has, where it is known; the wheel's has python only"
    )
    cpus: float = Field(gt=0)
    gpus: float = Field(default=0, ge=0)
    memory: Size
    device_memory: Size | None = Field(default=None, description="of each GPU, for the checks of models' memory")
    shared_memory: Size | None = Field(default=None, description="of /dev/shm, for the checks of tensors' sizes")
    response_cache: Size | None = Field(default=None, description="for the models with cache: true; none by default")
    rate_limit: bool = Field(default=False, description="whether instances' rate_limiter counts")
    resources: dict[str, Annotated[Resource, Shorthand("count")]] = Field(
        default_factory=dict, description="what the rate limiter shares out; by default the most any instance wants"
    )
    startup_timeout: SomeTime
    exit_timeout: SomeTime = Field(description="how long queued requests may take when the server is stopped")
    replicas: Positive = Field(default=1, description="servers: one for each GPU, or one for this machine's CPUs")
    health_check_period: SomeTime
    health_check_timeout: SomeTime
    node: Node = Node()
    max_per_node: Annotated[int, Field(ge=1, le=100)] | None = None
    rolling_update: RollingUpdate = Field(
        default=RollingUpdate(), description="surge: 100% starts the new server before the old one ends"
    )
    logging: Logging | None = Field(default=None, description="of the deployment that owns the server; ray.logging")


class Profile(Part):
    device: Literal["cpu", "gpu"]
    onnx: Literal["python", "onnxruntime"] = Field(
        description="what runs ONNX models: the python backend's shared module, or Triton's own ONNX Runtime backend"
    )
    ray_version: Version = Field(description="the Ray that this profile is deployed with")
    triton: Triton
