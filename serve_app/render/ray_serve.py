"""serve_config.yaml: Ray Serve's configuration of the primary profile.

Nothing is in it that the spec does not say, except what Tandem needs: Ray's own defaults stay Ray's.
"""

from __future__ import annotations

import copy
import warnings
from typing import Any

import yaml
from ray.serve.schema import ServeDeploySchema

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


def serve_config(spec: Spec) -> dict[str, Any]:
    """The configuration as plain data, valid by Ray Serve's own schema."""
    config = unchecked_serve_config(spec)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what Ray warns of has rules of its own
        ServeDeploySchema.model_validate(copy.deepcopy(config))  # the schema changes what it is given
    return config


def unchecked_serve_config(spec: Spec) -> dict[str, Any]:
    """The configuration as plain data."""
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
    return (
        given(
            env_vars=environment.environment or None,
            working_dir=environment.working_dir,
            py_modules=environment.py_modules or None,
            pip=environment.pip or None,
            image_uri=environment.image,
        )
        or None
    )


def render_serve_config(spec: Spec, header: str) -> str:
    """The text of serve_config.yaml."""
    return header + yaml.safe_dump(serve_config(spec), sort_keys=False, default_flow_style=False)
