"""serve_config.yaml: Ray Serve's configuration of the primary profile.

Nothing is in it that the spec does not say, except what Tandem needs: Ray's own defaults stay Ray's.
"""

from __future__ import annotations

from typing import Any

import yaml

from serve_app.render.deployments import (
    given,
    ingress_deployment,
    logging_config,
    policy,
    stage_deployment,
    triton_deployment,
)
from serve_app.spec import Spec, digest
from serve_app.spec.ray import RuntimeEnvironment

IMPORT_PATH = "serve_app.app:build"
TRITON = "Triton"
INGRESS = "Ingress"


class _WithoutAliases(yaml.SafeDumper):
    """Writes what is said once and holds for several things, as a node's labels, out in each place."""

    def ignore_aliases(self, data: object) -> bool:
        return True


def serve_config(spec: Spec) -> dict[str, Any]:
    """The configuration as plain data. Of a spec without errors, Ray Serve's own schema takes it.

    It is not asked here, since loading Ray takes longer than all the rest: `serve_app.live.ray_schema` asks it.
    """
    ray = spec.ray
    environment = ray.controller_environment
    return {
        # The ingress listens by itself; on two cores a request through a proxy costs more than most inferences.
        "proxy_location": "Disabled",
        **given(
            controller_options={"runtime_env": {"env_vars": environment}} if environment else None,
            logging_config=logging_config(ray.logging),
            tracing_config=_tracing_config(spec),
            target_capacity=ray.target_capacity,
        ),
        "applications": [_application(spec)],
    }


def _application(spec: Spec) -> dict[str, Any]:
    ray = spec.ray
    stages = [(name, stage.replicas) for name, stage in spec.stages.items() if stage.replicas is not None]
    return {
        "name": spec.application,
        "route_prefix": None,
        "import_path": IMPORT_PATH,
        **given(
            runtime_env=_runtime_env(ray.runtime_environment),
            autoscaling_policy=policy(ray.autoscaling_policy),
            logging_config=logging_config(ray.application_logging),
            external_scaler_enabled=ray.external_scaler or None,
        ),
        # The digest changes with all that replicas are built from, so that Ray Serve builds them anew then.
        "args": {"profile": spec.primary_profile, "spec": digest(spec)},
        "deployments": [
            triton_deployment(TRITON, spec),
            *(stage_deployment(name, replicas, spec) for name, replicas in stages),
            ingress_deployment(INGRESS, spec),
        ],
    }


def _tracing_config(spec: Spec) -> dict[str, Any] | None:
    tracing = spec.ray.tracing
    if tracing is None:
        return None
    ratio = None if tracing.sampling is None else tracing.sampling / 100
    return {"enabled": True, **given(exporter_import_path=tracing.exporter, sampling_ratio=ratio)}


def _runtime_env(environment: RuntimeEnvironment) -> dict[str, Any] | None:
    timeout = environment.setup_timeout
    return (
        given(
            env_vars=environment.environment or None,
            working_dir=environment.working_dir,
            py_modules=environment.py_modules or None,
            pip=environment.pip or None,
            image_uri=environment.image,
            config=None if timeout is None else {"setup_timeout_seconds": int(timeout.total_seconds())},
        )
        or None
    )


def render_serve_config(spec: Spec, header: str) -> str:
    """The text of serve_config.yaml."""
    return header + yaml.dump(serve_config(spec), Dumper=_WithoutAliases, sort_keys=False, default_flow_style=False)
