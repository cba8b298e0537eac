"""serve_config.yaml: Ray Serve's configuration of the embedded profile."""

from __future__ import annotations

from typing import Any

import yaml
from ray.serve.schema import ServeDeploySchema

from serve_app.spec import Spec, digest
from serve_app.spec.ray import Replicas
from serve_app.triton.server import GUARD_GRACE

IMPORT_PATH = "serve_app.app:build"
TRITON = "Triton"
INGRESS = "Ingress"


def serve_config(spec: Spec) -> dict[str, Any]:
    """The configuration as plain data, valid by Ray Serve's own schema."""
    deployments = [
        _triton(spec),
        *(_deployment(name, stage.replicas, spec) for name, stage in spec.stages.items() if stage.replicas is not None),
        _deployment(INGRESS, spec.ingress, spec),
    ]
    config = {
        "proxy_location": "EveryNode",
        "http_options": {
            "host": spec.service.host,
            "port": spec.service.port,
            "request_timeout_s": spec.service.proxy_timeout.total_seconds(),
        },
        "applications": [
            {
                "name": spec.application,
                "route_prefix": "/",
                "import_path": IMPORT_PATH,
                # The digest makes any change of the spec a change of the application, which Ray Serve then rolls out.
                "args": {"profile": spec.primary_profile, "spec": digest(spec)},
                "deployments": deployments,
            }
        ],
    }
    ServeDeploySchema.model_validate(config)
    return config


def _triton(spec: Spec) -> dict[str, Any]:
    triton = spec.profiles[spec.primary_profile].triton
    askers = [spec.ingress, *(stage.replicas for stage in spec.stages.values() if stage.replicas)]
    return {
        "name": TRITON,
        "num_replicas": triton.replicas,
        # No inference goes through Ray, only a question by each replica at a time where the server is.
        "max_ongoing_requests": sum(replicas.autoscaling.max_replicas for replicas in askers),
        "health_check_period_s": triton.health_check_period.total_seconds(),
        "health_check_timeout_s": triton.health_check_timeout.total_seconds(),
        # Ray ends all deployments at once; stages need Triton until the last request in work is answered.
        "graceful_shutdown_wait_loop_s": spec.longest_sla.total_seconds(),
        "graceful_shutdown_timeout_s": spec.longest_sla.total_seconds()
        + triton.exit_timeout.total_seconds()
        + GUARD_GRACE,
        "ray_actor_options": {"num_cpus": triton.cpus, "num_gpus": triton.gpus, "memory": triton.memory},
    }


def _deployment(name: str, replicas: Replicas, spec: Spec) -> dict[str, Any]:
    scaling = replicas.autoscaling
    return {
        "name": name,
        "max_ongoing_requests": replicas.max_ongoing_requests,
        "max_queued_requests": replicas.max_queued_requests,
        "backpressure_config": {"status_code": 429, "retry_after_s": spec.service.retry_after.total_seconds()},
        "graceful_shutdown_timeout_s": spec.longest_sla.total_seconds(),
        "autoscaling_config": {
            "min_replicas": scaling.min_replicas,
            "max_replicas": scaling.max_replicas,
            "target_ongoing_requests": scaling.target_ongoing_requests,
            "upscale_delay_s": scaling.upscale_delay.total_seconds(),
            "downscale_delay_s": scaling.downscale_delay.total_seconds(),
        },
        "ray_actor_options": {"num_cpus": replicas.cpus, "num_gpus": 0, "memory": replicas.memory},
    }


def render_serve_config(spec: Spec, header: str) -> str:
    """The text of serve_config.yaml."""
    return header + yaml.safe_dump(serve_config(spec), sort_keys=False, default_flow_style=False)
