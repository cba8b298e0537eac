"""Which requests can share a batch: those that bring the same inputs, and the same dimensions of what is not ragged."""

from __future__ import annotations

from collections.abc import Iterator

from serve_app.spec.checks.registry import of_each_model, of_each_model_in_each_profile
from serve_app.spec.checks.tensors import known_tensors
from serve_app.spec.findings import Faults, warning
from serve_app.spec.model import Input, Model
from serve_app.spec.resolved import Resolved
from serve_app.spec.schema import Spec

PREFERRED_SHAPES = warning(
    "T137", "Preferred sizes for inputs whose dimensions vary",
    "only requests of the same dimensions share a batch, so a preferred size is met by chance",
    "remove preferred_sizes, write ragged: true if the model can do with it, or bring inputs to one size before",
)  # fmt: skip
HALF_RAGGED = warning(
    "T149", "A ragged input beside one that varies and is not ragged",
    "requests share a batch only where the dimensions of that other input are the same",
    "write ragged: true for both if the model can do with it",
)  # fmt: skip
PREFERRED_INPUTS = warning(
    "T150", "Preferred sizes for inputs that may be left out",
    "only requests with the same inputs share a batch, so a preferred size is met by chance",
    "remove preferred_sizes, or make the inputs required",
)  # fmt: skip


def _varying(model: Model) -> list[str]:
    """The inputs whose dimensions part requests."""
    return [key for key, entry in _inputs(model) if not entry.tensor.fixed and not entry.ragged]


def _optional(model: Model) -> list[str]:
    return [key for key, entry in _inputs(model) if entry.optional]


def _inputs(model: Model) -> Iterator[tuple[str, Input]]:
    for _, key, entry in known_tensors(model):
        if isinstance(entry, Input):
            yield key, entry


@of_each_model_in_each_profile
def preferred_shapes(found: Resolved) -> Faults:
    if found.batching is None or not found.preferred_sizes:
        return
    if varying := _varying(found.model):
        yield PREFERRED_SHAPES.at(
            found.place("preferred_sizes"), f"the dimensions of {', '.join(varying)} vary, without ragged"
        )


@of_each_model_in_each_profile
def preferred_inputs(found: Resolved) -> Faults:
    if found.batching is None or not found.preferred_sizes:
        return
    if optional := _optional(found.model):
        yield PREFERRED_INPUTS.at(found.place("preferred_sizes"), f"a request may leave out {', '.join(optional)}")


@of_each_model
def half_ragged(spec: Spec, name: str, model: Model) -> Faults:
    if model.max_batch <= 1 or model.sequence is not None or model.unscheduled:
        return
    varying = ", ".join(_varying(model))
    for key, entry in _inputs(model):
        if varying and entry.ragged and not entry.tensor.fixed:
            yield HALF_RAGGED.at(
                ("models", name, "inputs", key, "ragged"), f"{key} is ragged, and the dimensions of {varying} vary too"
            )
