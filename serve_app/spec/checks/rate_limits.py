"""Triton's rate limiter: what instances want of resources, against what the profile has."""

from __future__ import annotations

from collections.abc import Iterator

from serve_app.spec.checks.registry import of_each_model_in_each_profile, of_each_profile
from serve_app.spec.findings import Faults, Place, error, warning
from serve_app.spec.model import Resource
from serve_app.spec.part import UNKNOWN
from serve_app.spec.profile import Profile
from serve_app.spec.resolved import Resolved
from serve_app.spec.schema import ProfileName, Spec

OFF = warning(
    "T413", "Resources without the rate limiter", "Triton passes over them", "write rate_limit: true, or remove them"
)
BOTH = error(
    "T414", "A resource that is both each device's and all devices'", "Triton refuses to load the second model",
    "write all_devices the same for all that want it",
)  # fmt: skip
TOO_LITTLE = error(
    "T415", "An instance that wants more of a resource than there is", "Triton refuses to load the model",
    "put more into the profile's resources, or want less",
)  # fmt: skip
UNWANTED = warning(
    "T416", "A resource that no instance wants", "it limits nothing",
    "remove it, or want it in an instance group's rate_limiter",
)  # fmt: skip
NO_SHARES = warning(
    "T424", "A share of the runs without the rate limiter", "Triton passes over it, and every model runs when it can",
    "write rate_limit: true, or remove it; which requests run first is for the model's batching to say",
)  # fmt: skip


def _wanted(found: Resolved) -> Iterator[tuple[Place, str, Resource]]:
    for index, group in enumerate(found.instances):
        if group is not UNKNOWN and group.rate_limiter is not None:
            place = (*found.place("instances"), index, "rate_limiter", "resources")
            for resource, wanted in group.rate_limiter.resources.items():
                yield (*place, resource), resource, wanted


def _all_wanted(spec: Spec, profile: ProfileName) -> list[tuple[Place, str, Resource]]:
    return [
        each for name, model in spec.models.items() if model is not UNKNOWN
        for each in _wanted(Resolved(spec, name, profile))
    ]  # fmt: skip


@of_each_profile
def off(spec: Spec, name: str, profile: Profile) -> Faults:
    if profile.triton.resources and not profile.triton.rate_limit:
        yield OFF.at(("profiles", name, "triton", "resources"), f"{name} has resources, and rate_limit is off")


@of_each_model_in_each_profile
def off_everywhere(found: Resolved) -> Faults:
    if _limited(found.spec):
        return
    for place, resource, _ in _wanted(found):
        yield OFF.at(place, f"{found.name} wants {resource}, and rate_limit is off in every profile")


@of_each_model_in_each_profile
def no_shares(found: Resolved) -> Faults:
    if _limited(found.spec):
        return
    for index, group in enumerate(found.instances):
        if group is not UNKNOWN and group.rate_limiter is not None and group.rate_limiter.priority:
            yield NO_SHARES.at(
                (*found.place("instances"), index, "rate_limiter", "priority"),
                f"the priority is {group.rate_limiter.priority}, and rate_limit is off in every profile",
            )


def _limited(spec: Spec) -> bool:
    return any(profile is not UNKNOWN and profile.triton.rate_limit for profile in spec.profiles.values())


@of_each_profile
def both(spec: Spec, name: ProfileName, profile: Profile) -> Faults:
    if not profile.triton.rate_limit:
        return
    first: dict[str, bool] = {}
    for place, resource, wanted in _all_wanted(spec, name):
        if first.setdefault(resource, wanted.all_devices) != wanted.all_devices:
            others = "one stock for all devices" if first[resource] else "one for each device"
            yield BOTH.at(place, f"others take {resource} from {others}")


@of_each_model_in_each_profile
def too_little(found: Resolved) -> Faults:
    triton = found.spec.profiles[found.profile].triton
    if not triton.rate_limit or not triton.resources:  # where none is given, there is as much as is wanted
        return
    for place, resource, wanted in _wanted(found):
        stock = triton.resources.get(resource)
        has = 0 if stock is None else stock.count
        if wanted.count > has:
            yield TOO_LITTLE.at(place, f"it wants {wanted.count} of {resource}, and {found.profile} has {has}")


@of_each_profile
def unwanted(spec: Spec, name: ProfileName, profile: Profile) -> Faults:
    if not profile.triton.rate_limit or any(model is UNKNOWN for model in spec.models.values()):
        return
    wanted = {resource for _, resource, _ in _all_wanted(spec, name)}
    for resource in profile.triton.resources:
        if resource not in wanted:
            yield UNWANTED.at(("profiles", name, "triton", "resources", resource), f"nobody wants {resource} in {name}")
