"""Registering checks by what they look at, and running them all."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

from serve_app.spec.findings import Fault, Faults
from serve_app.spec.model import Ensemble, Model
from serve_app.spec.part import Unknown
from serve_app.spec.pipeline import Pipeline, Stage
from serve_app.spec.profile import Profile
from serve_app.spec.resolved import Resolved
from serve_app.spec.schema import Spec

_whole: list[Callable[[Spec], Faults]] = []
_models: list[Callable[[Spec, str, Model], Faults]] = []
_resolved: list[Callable[[Resolved], Faults]] = []
_ensembles: list[Callable[[Spec, str, Ensemble], Faults]] = []
_profiles: list[Callable[[Spec, str, Profile], Faults]] = []
_stages: list[Callable[[Spec, str, Stage], Faults]] = []
_pipelines: list[Callable[[Spec, str, Pipeline], Faults]] = []

_Check = TypeVar("_Check", bound=Callable[..., Faults])
_Item = TypeVar("_Item")


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


def run_checks(spec: Spec) -> list[Fault]:
    """Every fault that the registered checks find."""
    return [fault for section in _sections(spec) for faults in _known(section) for fault in _known(faults)]


def _sections(spec: Spec) -> list[Iterator[Faults]]:
    """The checks of each part of the spec, so that a part that cannot be known takes no other with it."""
    return [
        (check(spec) for check in _whole),
        (check(spec, name, model) for check in _models for name, model in spec.models.items()),
        (
            check(Resolved(spec, name, profile))
            for check in _resolved
            for name in spec.models
            for profile in spec.profiles
        ),
        (check(spec, name, ensemble) for check in _ensembles for name, ensemble in spec.ensembles.items()),
        (check(spec, name, profile) for check in _profiles for name, profile in spec.profiles.items()),
        (check(spec, name, stage) for check in _stages for name, stage in spec.stages.items()),
        (check(spec, name, pipeline) for check in _pipelines for name, pipeline in spec.pipelines.items()),
    ]


def _known(items: Iterator[_Item]) -> Iterator[_Item]:
    """The items up to the first thing that cannot be known."""
    try:
        yield from items
    except Unknown:
        return
