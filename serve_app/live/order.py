"""What has to be loaded before a model can run, and so the order in which models are tried; and where each is."""

from __future__ import annotations

from typing import Any

from serve_app.spec import Spec
from serve_app.spec.findings import Place
from serve_app.spec.model import Ensemble


def needed(spec: Spec, name: str) -> list[str]:
    """The models that must be loaded before this one can run: an ensemble's steps, and what code calls."""
    reached: dict[str, None] = {}

    def visit(each: str, within: tuple[str, ...]) -> None:
        served: Any = spec.served(each)
        inner = [step.model for step in served.steps] if isinstance(served, Ensemble) else served.calls
        for other in inner:
            if other not in within:
                visit(other, (*within, other))
        if each != name:
            reached[each] = None

    visit(name, (name,))
    return list(reached)


def in_order(spec: Spec) -> list[str]:
    """Every model and ensemble, those that others need first."""
    names = [*spec.models, *spec.ensembles]
    return list(dict.fromkeys(each for name in names for each in [*needed(spec, name), name]))


def place_of(spec: Spec, name: str) -> Place:
    """Where the spec has a model or ensemble."""
    return ("models" if name in spec.models else "ensembles", name)
