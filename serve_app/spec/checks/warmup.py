"""Warm-up requests: whether the model would take them."""

from __future__ import annotations

from collections.abc import Iterator

from serve_app.spec.checks.registry import of_each_model, of_each_model_in_each_profile
from serve_app.spec.findings import Faults, Place, error
from serve_app.spec.model import Input, Model, Warmup, WarmupInput
from serve_app.spec.part import UNKNOWN
from serve_app.spec.resolved import Resolved
from serve_app.spec.schema import Spec
from serve_app.spec.tensors import Tensor

NO_INPUT = error(
    "T189", "A warm-up of an input that the model does not have", "Triton passes it over without a word",
    "correct the name",
)  # fmt: skip
INPUT_MISSING = error(
    "T190", "A warm-up without an input that the model needs", "Triton refuses to load the model", "add the input"
)
LARGE_BATCH = error(
    "T191", "A warm-up with a larger batch than the model takes",
    "Triton refuses to load the model, or crashes over it with all the others",
    "write a batch up to max_batch",
)  # fmt: skip
OTHER_TENSOR = error(
    "T192", "A warm-up with a tensor that the model does not take", "Triton refuses to load the model",
    "write the input's type, and dimensions that fit, without -1",
)  # fmt: skip
FILL_AND_FILE = error(
    "T193", "A warm-up from a file that is filled as well", "only the file would be used", "give fill or file"
)
NO_DIMENSIONS = error(
    "T194", "A warm-up that does not say how large a varying input is", "Triton refuses to load the model",
    "add tensor with dimensions of 1 and more",
)  # fmt: skip


def _known(model: Model, name: str) -> Iterator[tuple[Place, Warmup]]:
    for index, entry in enumerate(model.warmup):
        if entry is not UNKNOWN and entry.inputs is not UNKNOWN:
            yield ("models", name, "warmup", index), entry


@of_each_model
def inputs(spec: Spec, name: str, model: Model) -> Faults:
    needed = [key for key, entry in model.inputs.items() if entry is not UNKNOWN and not entry.optional]
    for place, entry in _known(model, name):
        for key in entry.inputs:
            if key not in model.inputs:
                yield NO_INPUT.at((*place, "inputs", key), f"{name} has only {', '.join(model.inputs)}")
        for key in needed:
            if key not in entry.inputs:
                yield INPUT_MISSING.at((*place, "inputs"), f"{key} is missing")


@of_each_model
def tensors(spec: Spec, name: str, model: Model) -> Faults:
    for place, entry in _known(model, name):
        for key, given in entry.inputs.items():
            if given is UNKNOWN or key not in model.inputs:
                continue
            yield from _tensor((*place, "inputs", key), key, model.inputs[key], given)


def _tensor(place: Place, key: str, entry: Input, given: WarmupInput) -> Faults:
    if given.fill is not None and given.file is not None:
        yield FILL_AND_FILE.at(place, f"{key} has both fill and file")
    if given.tensor is None:
        if not entry.tensor.fixed:
            yield NO_DIMENSIONS.at(place, f"{key} is a {entry.tensor}")
    elif not given.tensor.fixed or not _takes(entry.tensor, given.tensor):
        yield OTHER_TENSOR.at((*place, "tensor"), f"{given.tensor} is no {entry.tensor}")


def _takes(wanted: Tensor, given: Tensor) -> bool:
    return (
        wanted.dtype == given.dtype
        and len(wanted.dims) == len(given.dims)
        and all(want in (-1, have) for want, have in zip(wanted.dims, given.dims, strict=True))
    )


@of_each_model_in_each_profile
def batches(found: Resolved) -> Faults:
    # A model that does not batch takes a request whose batch is 0 or 1.
    most = max(found.max_batch, 1)
    for place, entry in _known(found.model, found.name):
        if entry.batch > most:
            what = f"a batch of {entry.batch}, where max_batch is {found.max_batch} in {found.profile}"
            yield LARGE_BATCH.at((*place, "batch"), what)
