"""Registering checks by what they look at, and running them all."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TypeVar

from serve_app.spec.findings import Fault, Faults, Place
from serve_app.spec.model import Ensemble, Model
from serve_app.spec.part import UNKNOWN, Unknown
from serve_app.spec.pipeline import Pipeline, Stage
from serve_app.spec.profile import Profile
from serve_app.spec.replicas import Replicas
from serve_app.spec.resolved import Resolved
from serve_app.spec.schema import ProfileName, Spec

_whole: list[Callable[[Spec], Faults]] = []
_models: list[Callable[[Spec, str, Model], Faults]] = []
_resolved: list[Callable[[Resolved], Faults]] = []
_ensembles: list[Callable[[Spec, str, Ensemble], Faults]] = []
_profiles: list[Callable[[Spec, ProfileName, Profile], Faults]] = []
_stages: list[Callable[[Spec, str, Stage], Faults]] = []
_pipelines: list[Callable[[Spec, str, Pipeline], Faults]] = []
_replicas: list[Callable[[Spec, Place, Replicas], Faults]] = []

_Check = TypeVar("_Check", bound=Callable[..., Faults])
_Item = TypeVar("_Item")
_Ends = type[Exception] | tuple[type[Exception], ...]


def _registers(checks: list[_Check]) -> Callable[[_Check], _Check]:
    def register(check: _Check) -> _Check:
        checks.append(check)
        return check

    return register


of_the_spec = _registers(_whole)
of_each_model = _registers(_models)
of_each_model_in_each_profile = _registers(_resolved)
of_each_ensemble = _registers(_ensembles)
of_each_profile = _registers(_profiles)
of_each_stage = _registers(_stages)
of_each_pipeline = _registers(_pipelines)
of_all_replicas = _registers(_replicas)


def run_checks(spec: Spec, *, whole: bool = True) -> list[Fault]:
    """Every fault that the registered checks find. `whole` says that no value of the spec is UNKNOWN."""
    # What is written in C, such as `re`, asks UNKNOWN for its type alone, and then raises TypeError.
    ends: _Ends = Unknown if whole else (Unknown, TypeError)
    sections = _sections(spec, ends)
    return [fault for section in sections for faults in _known(section, ends) for fault in _known(faults, ends)]


def _sections(spec: Spec, ends: _Ends) -> list[Iterator[Faults]]:
    """The checks of each part of the spec, so that a part that cannot be known takes no other with it."""
    return [
        (check(spec) for check in _whole),
        (check(spec, name, model) for check in _models for name, model in spec.models.items()),
        (_in_each_profile(spec, name, check, ends) for check in _resolved for name in spec.models),
        (check(spec, name, ensemble) for check in _ensembles for name, ensemble in spec.ensembles.items()),
        (check(spec, name, profile) for check in _profiles for name, profile in spec.profiles.items()),
        (check(spec, name, stage) for check in _stages for name, stage in spec.stages.items()),
        (check(spec, name, pipeline) for check in _pipelines for name, pipeline in spec.pipelines.items()),
        (check(spec, place, replicas) for check in _replicas for place, replicas in all_replicas(spec)),
    ]


def _in_each_profile(spec: Spec, name: str, check: Callable[[Resolved], Faults], ends: _Ends) -> Faults:
    """What a check says of a model in every profile, once; with the profiles where it does not say it in all."""
    said: dict[Fault, list[ProfileName]] = {}
    for profile in spec.profiles:
        for fault in dict.fromkeys(_known(check(Resolved(spec, name, profile)), ends)):
            said.setdefault(fault, []).append(profile)
    for fault, profiles in said.items():
        yield fault if len(profiles) == len(spec.profiles) else _said_of(fault, profiles)


def _said_of(fault: Fault, profiles: list[ProfileName]) -> Fault:
    """The fault, with the profiles that it is of, unless its place or its words name them."""
    if "profiles" in fault.place or any(f"profile {profile}" in fault.what for profile in profiles):
        return fault
    which = f"profile{'s' if len(profiles) > 1 else ''} {' and '.join(profiles)}"
    return replace(fault, what=f"in {which}, {fault.what}")


def all_replicas(spec: Spec) -> Iterator[tuple[Place, Replicas]]:
    """The processes of the ingress and of every stage, with their places."""
    if spec.ingress is not UNKNOWN:
        yield ("ingress",), spec.ingress
    for name, stage in spec.stages.items():
        if stage is not UNKNOWN and stage.replicas is not None and stage.replicas is not UNKNOWN:
            yield ("stages", name, "replicas"), stage.replicas


def _known(items: Iterator[_Item], ends: _Ends) -> Iterator[_Item]:
    """The items up to the first thing that cannot be known."""
    try:
        yield from items
    except ends:
        return
