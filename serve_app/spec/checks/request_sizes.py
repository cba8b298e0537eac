"""Whether a request with one item can be sent at all: what its inputs hold at the least, and what a message may."""

from __future__ import annotations

from collections.abc import Mapping

from serve_app.spec.checks.amounts import LARGEST_TENSOR, least_bytes
from serve_app.spec.checks.registry import of_each_ensemble, of_each_model
from serve_app.spec.findings import Faults, Place, Rule, error, warning
from serve_app.spec.model import Ensemble, Input, Model
from serve_app.spec.part import UNKNOWN
from serve_app.spec.schema import Spec
from serve_app.spec.units import show_size

NO_MESSAGE = error(
    "T154", "A model whose smallest request no message could hold", "nobody can ever call it",
    f"write dimensions with which one item stays below {show_size(LARGEST_TENSOR + 1)}",
)  # fmt: skip
ABOVE_LIMIT = warning(
    "T155", "An exposed model whose smallest request is larger than request_limit",
    "the ingress refuses every request that a client sends", "raise service.request_limit, or do not expose the model",
)  # fmt: skip


@of_each_model
def models(spec: Spec, name: str, model: Model) -> Faults:
    yield from _sizes(spec, name, model, ("models", name, "inputs"))


@of_each_ensemble
def ensembles(spec: Spec, name: str, ensemble: Ensemble) -> Faults:
    yield from _sizes(spec, name, ensemble, ("ensembles", name, "inputs"))


def _sizes(spec: Spec, name: str, served: Model | Ensemble, place: Place) -> Faults:
    sizes = {
        key: least_bytes(entry.tensor)
        for key, entry in served.inputs.items()
        if entry is not UNKNOWN and entry.tensor is not UNKNOWN and not entry.optional
    }
    if sum(sizes.values()) > LARGEST_TENSOR:
        if not _is_called_within_triton_only(spec, name, served):
            yield from _larger(NO_MESSAGE, place, served.inputs, sizes, LARGEST_TENSOR)
    elif served.exposed:
        yield from _larger(ABOVE_LIMIT, place, served.inputs, sizes, spec.service.request_limit)


def _larger(rule: Rule, place: Place, inputs: Mapping[str, Input], sizes: Mapping[str, int], limit: int) -> Faults:
    """That a request of these sizes is above the limit, at the one input that is so alone, or at all of them."""
    if sum(sizes.values()) <= limit:
        return
    most = show_size(limit + 1 if limit == LARGEST_TENSOR else limit)
    alone = [key for key, size in sizes.items() if size > limit]
    for key in alone:
        yield rule.at((*place, key), f"one item of {inputs[key].tensor} takes more than {most}")
    if not alone:
        yield rule.at(place, f"one item of {' and '.join(sizes)} takes more than {most}")


def _is_called_within_triton_only(spec: Spec, name: str, served: Model | Ensemble) -> bool:
    """Whether only ensembles and other models' code call it: what they hand on is in no message."""
    within = any(name == step.model for ensemble in spec.ensembles.values() for step in ensemble.steps) or any(
        name in model.calls for model in spec.models.values()
    )
    return within and not served.exposed and not any(name in stage.models for stage in spec.stages.values())
