"""The generated configuration against the schema of the Ray that is installed, with all that Ray leaves unchecked.

Ray's models pass over keys that they do not know, and take any mapping for an autoscaling or router configuration
until the controller reads it.
"""

from __future__ import annotations

import typing
from collections.abc import Iterator, Mapping
from typing import Any

import ray
from pydantic import BaseModel, ValidationError
from ray import serve
from ray.serve.config import AutoscalingConfig, DeploymentActorConfig, RequestRouterConfig
from ray.serve.schema import ServeDeploySchema

from serve_app.live.findings import OTHER_RAY, RAY_IGNORES, RAY_REFUSES
from serve_app.render.ray_serve import INGRESS, TRITON, serve_config
from serve_app.spec import Spec
from serve_app.spec.findings import Fault, Faults, Place

_LATE: dict[str, type[BaseModel]] = {
    "autoscaling_config": AutoscalingConfig,
    "request_router_config": RequestRouterConfig,
    "deployment_actors": DeploymentActorConfig,
}
_REFUSALS = (ValidationError, ValueError, TypeError, NotImplementedError, ImportError, AttributeError)


def schema_faults(spec: Spec) -> Faults:
    """What the installed Ray says of the primary profile's configuration."""
    profile = spec.primary_profile
    wanted = spec.profiles[profile].ray_version
    if ray.__version__ != wanted:
        yield OTHER_RAY.at(("profiles", profile, "ray_version"), f"{ray.__version__} is installed, not {wanted}")
    config = serve_config(spec)
    found = [*_refusals(config, spec), *_ignored(config, spec)]
    yield from found
    wrong = {fault.place for fault in found}
    for place, deployment in _deployments(config, spec):
        if place not in wrong:
            yield from _late_refusals(deployment, place)


def _refusals(config: Mapping[str, Any], spec: Spec) -> Iterator[Fault]:
    try:
        ServeDeploySchema.model_validate(config)
    except ValidationError as invalid:
        for each in invalid.errors():
            yield RAY_REFUSES.at(_place(each["loc"], config, spec), _said(each["loc"], each["msg"]))
    except _REFUSALS as refusal:
        yield RAY_REFUSES.at((), f"Ray says: {refusal}")
    for place, deployment in _deployments(config, spec):
        for key, model in _LATE.items():
            given = deployment.get(key)
            for part in given if isinstance(given, list) else [given] if isinstance(given, dict) else []:
                try:
                    model(**part)
                except _REFUSALS as refusal:
                    yield RAY_REFUSES.at(place, f"{key}: {_words(refusal)}")


def _ignored(config: Mapping[str, Any], spec: Spec) -> Iterator[Fault]:
    for path in _unknown(config, ServeDeploySchema, ()):
        yield RAY_IGNORES.at(_place(path, config, spec), f"Ray {ray.__version__} has no {path[-1]} here")


def _late_refusals(deployment: Mapping[str, Any], place: Place) -> Iterator[Fault]:
    """What Ray says of the fields of a deployment together, as when the application's code is decorated with them."""
    try:
        serve.deployment(**deployment)(_Nothing)
    except _REFUSALS as refusal:
        yield RAY_REFUSES.at(place, f"Ray says: {_words(refusal)}")


def _deployments(config: Mapping[str, Any], spec: Spec) -> Iterator[tuple[Place, dict[str, Any]]]:
    for number, application in enumerate(config["applications"]):
        for index, deployment in enumerate(application["deployments"]):
            yield _place(("applications", number, "deployments", index), config, spec), deployment


class _Nothing:
    pass


def _words(refusal: BaseException) -> str:
    if isinstance(refusal, ValidationError):
        return "; ".join(_said(each["loc"], each["msg"]) for each in refusal.errors())
    return str(refusal)


def _said(path: tuple[int | str, ...], message: str) -> str:
    return f"{path[-1]}: {message}" if path else message


def _unknown(value: Any, model: type[BaseModel], path: tuple[int | str, ...]) -> Iterator[tuple[int | str, ...]]:
    """The keys that the model, or a model in it, has no field for."""
    for key, inner in value.items():
        field = model.model_fields.get(key)
        if field is None:
            yield (*path, key)
            continue
        part = _LATE.get(key) or _model_in(field.annotation)
        if part is None:
            continue
        for index, each in enumerate(inner) if isinstance(inner, list) else [(None, inner)]:
            if isinstance(each, dict):
                yield from _unknown(each, part, (*path, key) if index is None else (*path, key, index))


def _model_in(annotation: Any) -> type[BaseModel] | None:
    """The pydantic model in an annotation, as in Optional[LoggingConfig] or List[DeploymentSchema]."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    found = (_model_in(argument) for argument in typing.get_args(annotation))
    return next((model for model in found if model is not None), None)


def _place(path: tuple[int | str, ...], config: Mapping[str, Any], spec: Spec) -> Place:
    """Where the spec has what is at `path` in the configuration."""
    if len(path) > 3 and path[0] == "applications" and path[2] == "deployments":
        name = config["applications"][path[1]]["deployments"][path[3]]["name"]
        if name == TRITON:
            return ("profiles", spec.primary_profile, "triton")
        return ("ingress",) if name == INGRESS else ("stages", name, "replicas")
    return ("ray",)
