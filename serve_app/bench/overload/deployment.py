"""The deployment that is overloaded, as a spec, and the same model as configured by hand for Triton alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

MODEL = "sleeper"
CODE = Path(__file__).with_name("sleeping_model.py")
BATCH = 8
QUEUE_DELAY_MS = 2
TIERS = {"interactive": 1, "standard": 2, "bulk": 3}
# Of each replica: three batches for the model, and three that wait for their turn.
REPLICAS, ONGOING, QUEUED = 2, 3 * BATCH, 3 * BATCH
# Half of ONGOING, so that what is urgent finds a place at once.
BULK_ONGOING = 12
FLOOR = 0.10
# The share of a full batch's time that any batch takes; the rest is that of its items.
_FIXED = 10 / 14


@dataclass(frozen=True)
class Sleeper:
    """A model that takes `batch_time` seconds for a full batch of 8, of which `overhead` are the python backend's own.

    An accelerator's backend has next to none, so the model sleeps that much less.
    """

    batch_time: float
    overhead: float = 0.0

    @property
    def capacity(self) -> float:
        """Requests a second."""
        return BATCH / self.batch_time

    def answering(self, rate: float) -> Sleeper:
        """The same, where so many requests a second were answered when there were always enough."""
        return replace(self, overhead=max(0.0, BATCH / rate - self.batch_time))

    @property
    def bound_s(self) -> float:
        """How long the last of all that may be in the deployment at a time waits for its answer, in seconds."""
        return REPLICAS * (ONGOING + QUEUED) / self.capacity

    @property
    def parameters(self) -> dict[str, str]:
        """Of the sleeping model."""
        fixed = self.batch_time * _FIXED
        item = (self.batch_time - fixed) / BATCH
        return {"batch_us": f"{(fixed - self.overhead) * 1e6:.0f}", "item_us": f"{item * 1e6:.0f}"}


def spec_of(sleeper: Sleeper, profile: Mapping[str, Any], ports: Mapping[str, int]) -> dict[str, Any]:
    """The spec. `profile` is an entry of another spec's `profiles`; `ports` are those of http, grpc, ray, dashboard."""
    return {
        "application": "overload",
        "service": {
            "sla": "2s",
            "host": "127.0.0.1",
            "port": ports["http"],
            "grpc": {"port": ports["grpc"]},
            "upload_limit": "1MiB",
            "request_limit": "1MiB",
            "retry_after": "1s",
        },
        "ray": {"port": ports["ray"], "dashboard_port": ports["dashboard"], "object_store": "128MiB"},
        "tiers": {
            "interactive": {"priority": TIERS["interactive"]},
            "standard": {"priority": TIERS["standard"], "default": True},
            "bulk": {"priority": TIERS["bulk"], "floor": f"{FLOOR:.0%}", "max_ongoing_requests": BULK_ONGOING},
        },
        "profiles": {"embedded": dict(profile)},
        "ingress": {
            "count": REPLICAS,
            "cpus": 0.1,
            "memory": "512MiB",
            "max_ongoing_requests": ONGOING,
            "max_queued_requests": QUEUED,
        },
        "models": {
            MODEL: {
                "backend": "python",
                "inputs": {"x": "float32[1]"},
                "outputs": {"y": "float32[1]"},
                "max_batch": BATCH,
                "latency_budget": f"{4 * sleeper.batch_time * 1e3:.0f}ms",
                "batching": {"queue_delay": f"{QUEUE_DELAY_MS}ms"},
                "parameters": sleeper.parameters,
                "exposed": True,
            }
        },
        "stages": {},
        "pipelines": {},
    }


def policies() -> str:
    """What guides to Triton say about overload: priorities, and queues with bounds and timeouts."""
    return f"""
  priority_levels: 3
  default_priority_level: 2
  default_queue_policy {{
    timeout_action: REJECT
    default_timeout_microseconds: 2000000
    allow_timeout_override: true
    max_queue_size: {REPLICAS * (ONGOING + QUEUED)}
  }}"""


def bare_config(sleeper: Sleeper, policy: str) -> str:
    """config.pbtxt of the same model by itself."""
    parameters = "\n".join(
        f'parameters {{ key: "{name}" value {{ string_value: "{value}" }} }}'
        for name, value in sleeper.parameters.items()
    )
    return f"""name: "{MODEL}"
backend: "python"
max_batch_size: {BATCH}
input [{{ name: "x" data_type: TYPE_FP32 dims: [1] }}]
output [{{ name: "y" data_type: TYPE_FP32 dims: [1] }}]
instance_group [{{ kind: KIND_CPU count: 1 }}]
dynamic_batching {{
  max_queue_delay_microseconds: {QUEUE_DELAY_MS * 1000}{policy}
}}
{parameters}
"""
