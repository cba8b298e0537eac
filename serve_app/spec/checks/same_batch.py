"""Which requests can share a batch: those that bring the same inputs, and the same dimensions of what is not ragged."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from serve_app.spec.checks.registry import of_each_model
from serve_app.spec.checks.tensors import known_tensors
from serve_app.spec.findings import Faults, Place, warning
from serve_app.spec.model import Input, Model
from serve_app.spec.resolved import Resolved
from serve_app.spec.schema import Spec
from serve_app.spec.units import show_duration

VARYING = warning(
    "T137", "A model with batches whose inputs' dimensions vary",
    "only requests of the same dimensions share a batch",
    "bring the input to fixed dimensions before, write ragged: true if the model can do with it, or accept this with "
    "the reason why many requests are alike",
)  # fmt: skip
OPTIONAL = warning(
    "T150", "A model with batches and optional inputs",
    "only requests with the same inputs share a batch",
    "make the inputs required, or accept this with the reason why many requests are alike",
)  # fmt: skip


@of_each_model
def varying_dimensions(spec: Spec, name: str, model: Model) -> Faults:
    """Of every input that parts requests: a ragged one beside it does not bring them together."""
    batched = list(_batched(spec, name))
    for place, entry in _inputs(name, model):
        if batched and not entry.tensor.fixed and not entry.ragged:
            what = f"the dimensions of {place[-1]} vary from request to request"
            yield VARYING.at(place, what, consequence=f"{VARYING.consequence}{_in_vain(batched)}")


@of_each_model
def optional_inputs(spec: Spec, name: str, model: Model) -> Faults:
    batched = list(_batched(spec, name))
    inputs = list(_inputs(name, model))
    if all(entry.optional for _, entry in inputs):
        return  # a finding of its own
    for place, entry in inputs:
        if batched and entry.optional:
            what = f"a request may leave out {place[-1]}"
            yield OPTIONAL.at((*place, "optional"), what, consequence=f"{OPTIONAL.consequence}{_in_vain(batched)}")


def _inputs(name: str, model: Model) -> Iterator[tuple[Place, Input]]:
    for part, key, entry in known_tensors(model):
        if isinstance(entry, Input):
            yield ("models", name, part, key), entry


def _batched(spec: Spec, name: str) -> Iterator[Resolved]:
    """The model as the profiles have it in which its requests are batched."""
    for profile in spec.profiles:
        found = Resolved(spec, name, profile)
        if found.batching is not None and found.max_batch > 1:
            yield found


def _in_vain(batched: list[Resolved]) -> str:
    """What the others wait for."""
    delay = max((found.queue_delay for found in batched if found.has_queue_delay), default=timedelta())
    sizes = [size for found in batched for size in found.preferred_sizes]
    waited = f", and one without its like may wait {show_duration(delay)} for nothing" if delay else ""
    return f"{waited}, and a preferred size is met by chance" if sizes else waited
