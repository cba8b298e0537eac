"""Fields that the Ray of a profile does not know. Ray Serve drops most of them in silence, at every level."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from serve_app.spec.checks.registry import all_replicas, of_each_profile
from serve_app.spec.findings import Faults, Place, error, warning
from serve_app.spec.part import UNKNOWN
from serve_app.spec.profile import Profile
from serve_app.spec.replicas import StageReplicas
from serve_app.spec.schema import Spec
from serve_app.spec.versions import NEWEST_RAY, RAY_ALWAYS, RAY_FIELDS, older

UNKNOWN_FIELD = error(
    "R050", "Something that the profile's Ray does not know yet", "it drops most of such things in silence",
    "leave it out, or deploy with a newer Ray",
)  # fmt: skip
TOO_OLD = error(
    "R051", "A Ray without something that Tandem always needs", "it drops what it does not know, in silence",
    "deploy with a newer Ray",
)  # fmt: skip
NOT_READ = warning(
    "R052", "A Ray newer than Tandem knows", "what it has changed is not checked", "try serve_config.yaml with it first"
)

_Fields = dict[tuple[str, ...], str]

# What the spec sets → Ray's name for it.
_LOGGING: _Fields = {("logging", "attributes"): "logging_config.additional_log_standard_attrs"}
_CLUSTER: _Fields = {
    **_LOGGING,
    ("application_logging", "attributes"): "logging_config.additional_log_standard_attrs",
    ("autoscaling_policy",): "autoscaling_policy",
    ("controller_environment",): "controller_options",
    ("tracing",): "tracing_config",
}
_NODE: _Fields = {
    ("node", "labels"): "ray_actor_options.label_selector",
    ("node", "fallback"): "ray_actor_options.fallback_strategy",
}
_UPDATE: _Fields = {
    ("rolling_update", "at_once"): "rolling_update_percentage",
    ("rolling_update", "surge"): "max_surge_percent",
}
_TRITON: _Fields = {**_NODE, **_UPDATE, **_LOGGING}
_INGRESS: _Fields = {
    **_TRITON,
    ("autoscaling", "downscale_to_zero_delay"): "autoscaling_config.downscale_to_zero_delay_s",
    ("autoscaling", "aggregation"): "autoscaling_config.aggregation_function",
    ("autoscaling", "policy"): "autoscaling_config.policy",
    ("autoscaling", "policy", "arguments"): "autoscaling_config.policy.policy_kwargs",
    ("gang",): "gang_scheduling_config",
}
_STAGE: _Fields = {
    **_INGRESS,
    ("router",): "request_router_config",
    ("router", "backoff", "first"): "request_router_config.initial_backoff_s",
    ("router", "backoff", "factor"): "request_router_config.backoff_multiplier",
    ("router", "backoff", "longest"): "request_router_config.max_backoff_s",
}
_BUNDLE: _Fields = {("labels",): "placement_group_bundle_label_selector"}
_LOCAL = "local://"


@of_each_profile
def unknown_field(spec: Spec, name: str, profile: Profile) -> Faults:
    version = profile.ray_version
    for place, field in _fields(spec, profile, ("profiles", name, "triton")):
        if older(version, RAY_FIELDS[field]):
            yield UNKNOWN_FIELD.at(
                place, f"Ray {version} of profile {name} has no {field}, which came with {RAY_FIELDS[field]}"
            )


@of_each_profile
def too_old(spec: Spec, name: str, profile: Profile) -> Faults:
    for field in RAY_ALWAYS:
        if older(profile.ray_version, RAY_FIELDS[field]):
            yield TOO_OLD.at(
                ("profiles", name, "ray_version"),
                f"Ray {profile.ray_version} has no {field}, which came with {RAY_FIELDS[field]}",
            )


@of_each_profile
def not_read(spec: Spec, name: str, profile: Profile) -> Faults:
    if older(NEWEST_RAY, profile.ray_version):
        yield NOT_READ.at(("profiles", name, "ray_version"), f"Tandem knows the fields of Ray up to {NEWEST_RAY}")


def _fields(spec: Spec, profile: Profile, triton: Place) -> Iterator[tuple[Place, str]]:
    """What the spec sets, with Ray's name for it."""
    yield from _set(spec.ray, ("ray",), _CLUSTER)
    yield from _set(profile.triton, triton, _TRITON)
    for place, replicas in all_replicas(spec):
        yield from _set(replicas, place, _STAGE if isinstance(replicas, StageReplicas) else _INGRESS)
        if replicas.placement is not None and replicas.placement is not UNKNOWN:
            for index, bundle in enumerate(replicas.placement.beside):
                yield from _set(bundle, (*place, "placement", "beside", index), _BUNDLE)
    environment = spec.ray.runtime_environment
    addresses = {"working_dir": [environment.working_dir or ""], "py_modules": environment.py_modules}
    for name, given in addresses.items():
        if any(address.startswith(_LOCAL) for address in given):
            yield ("ray", "runtime_environment", name), "runtime_env.working_dir: local://"
    if spec.ray.external_scaler:
        yield ("ray", "external_scaler"), "external_scaler_enabled"


def _set(part: Any, place: Place, fields: _Fields) -> Iterator[tuple[Place, str]]:
    for path, field in fields.items():
        value = part
        for step in path:
            if value is None or value is UNKNOWN:
                break
            value = getattr(value, step)
        if value is not UNKNOWN and value is not None and value not in ([], {}):
            yield (*place, *path), field
