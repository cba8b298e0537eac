"""What replicas are built from. The rest Ray Serve applies by itself, in place or to one deployment."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from serve_app.spec.replicas import Replicas, StageReplicas
from serve_app.spec.schema import Spec

# What no code in a replica reads: serve_config.yaml carries it.
_SERVICE = {"retry_after", "admission"}
_TIER = {"floor", "max_ongoing_requests", "max_queued_requests"}
_TRITON = {
    "cpus", "memory", "replicas", "health_check_period", "health_check_timeout", "node", "rolling_update", "logging",
}  # fmt: skip


def digest(spec: Spec) -> str:
    """A short name for what the primary profile's replicas are built from, whatever its comments and layout.

    It stays the same where Ray Serve applies a change without it: counts and autoscaling, limits, health, shutdown,
    logging, actor options, `user_config`, and all that is read when Ray Serve starts.
    """
    return hashlib.sha256(json.dumps(built_from(spec)).encode()).hexdigest()[:16]


def built_from(spec: Spec) -> dict[str, Any]:
    """All that the digest is made of, as plain data."""
    profile = spec.primary_profile
    exclude: Any = {
        "ray": True,
        "ingress": True,
        "profiles": True,
        "accept": True,
        "service": _SERVICE,
        "tiers": {"__all__": _TIER},
        "stages": {"__all__": {"replicas"}},
        "models": {"__all__": {"profiles"}},
    }
    deployments = {"ingress": spec.ingress, **{f"stages.{name}": stage.replicas for name, stage in spec.stages.items()}}
    return {
        **spec.model_dump(mode="json", exclude_defaults=True, exclude=exclude),
        "profile": profile,
        **spec.profiles[profile].model_dump(
            mode="json", exclude_defaults=True, exclude={"ray_version": True, "triton": _TRITON}
        ),
        "overrides": {
            name: model.profiles[profile].model_dump(mode="json", exclude_defaults=True)
            for name, model in spec.models.items()
            if profile in model.profiles
        },
        "overlooked": {name: _overlooked(replicas) for name, replicas in deployments.items() if replicas},
    }


def _overlooked(replicas: Replicas) -> dict[str, Any]:
    """Changes that running replicas would never learn of.

    Ray 2.60 compares neither placement groups nor `max_replicas_per_node` (`DeploymentState.deploy`), and calls
    `reconfigure` with every user_config but none (`UserCallableWrapper.call_reconfigure`).
    """
    return {
        **replicas.model_dump(mode="json", exclude_defaults=True, include={"placement", "max_per_node"}),
        "has_user_config": isinstance(replicas, StageReplicas) and replicas.user_config is not None,
    }
