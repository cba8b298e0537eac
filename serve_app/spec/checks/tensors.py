"""Tensors of models and ensembles: types, dimensions, formats, reshapes, and what a backend can do with them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import prod
from pathlib import PurePosixPath

from serve_app.spec.checks.registry import of_each_ensemble, of_each_model, of_each_model_in_each_profile
from serve_app.spec.findings import Fault, Faults, Place, error, warning
from serve_app.spec.model import PYTHON, Ensemble, Input, Model, Output
from serve_app.spec.part import UNKNOWN
from serve_app.spec.resolved import Resolved
from serve_app.spec.schema import Spec

TENSORRT = "tensorrt"

SAME_NAME = error("T120", "An input and an output with the same name", "requests mix them up", "name them apart")
STRINGS = error(
    "T126", "A string tensor in the python backend of the wheel's server",
    "that server is built for NumPy 1 and runs with NumPy 2: a string input ends the model's process or "
    "the server, an output is empty",
    "write uint8[-1] and encode the text, or run the model in a container's Triton",
)  # fmt: skip
ONNX_TYPE = error(
    "T127", "A type that Tandem's ONNX code cannot exchange", "the model does not load, or every request fails",
    "give the model a number or bool there: Tandem runs ONNX models in the python backend without string and bfloat16",
)  # fmt: skip
FORMAT = error(
    "T128", "A picture's format for a tensor that does not have three dimensions", "Triton refuses to load the model",
    "write three dimensions without the batch, or no format",
)  # fmt: skip
RESHAPE = error(
    "T129", "A reshape to another number of elements", "Triton refuses to load the model",
    "write dimensions of 1 and more with the same product; where some vary, as many must vary after it, with the same "
    "products between them",
)  # fmt: skip
EMPTY_RESHAPE = error(
    "T130", "A reshape to no dimensions where there is no batch dimension", "Triton refuses to load the model",
    "leave one dimension, or write max_batch: 1 and more",
)  # fmt: skip
LARGEST = error(
    "T131", "Largest dimensions that the tensor cannot have", "memory is checked for something that never comes",
    "write as many dimensions as the tensor has, and those that do not vary as they are",
)  # fmt: skip
TENSORRT_ONLY = error(
    "T132", "A shape tensor or a non-linear format outside TensorRT", "Triton refuses to load the model",
    "remove it, or run the model in the tensorrt backend",
)  # fmt: skip
ALL_OPTIONAL = warning(
    "T133", "A model with a batch dimension whose inputs are all optional",
    "a request without any of them is refused, as nothing says how many items it has, and only requests with the same "
    "ones share a batch",
    "make one of them required",
)  # fmt: skip
OPTIONAL_ONNX = error(
    "T134", "An optional input of an ONNX model that runs in the python backend",
    "Tandem's ONNX code takes every input, and fails the batch in which one is missing", "make it required",
)  # fmt: skip
RAGGED_ONNX = error(
    "T135", "A ragged input of an ONNX model that runs in the python backend",
    "the graph gets each request's tensor there, and one flat tensor in Triton's own ONNX Runtime: it fits one of them",
    "remove ragged, or run the model natively in every profile",
)  # fmt: skip
NOT_RAGGED = warning(
    "T136", "A ragged input none of whose dimensions varies", "it has no effect: all requests fit together anyway",
    "remove it, or write -1 for the dimension that varies",
)  # fmt: skip
LABELS = error(
    "T138", "A label file outside of the model's folder", "Triton looks in the folder only, or serves another file",
    "write the name of a file in the model's folder, as labels.txt",
)  # fmt: skip


@of_each_model
def same_name(spec: Spec, name: str, model: Model) -> Faults:
    for tensor in sorted(set(model.inputs) & set(model.outputs)):
        yield SAME_NAME.at(("models", name, "outputs", tensor), f"an input of {name} is called {tensor} too")


@of_each_model
def of_a_model(spec: Spec, name: str, model: Model) -> Faults:
    yield from _ofknown_tensors(("models", name), model)


@of_each_ensemble
def of_an_ensemble(spec: Spec, name: str, ensemble: Ensemble) -> Faults:
    yield from _ofknown_tensors(("ensembles", name), ensemble)


def _ofknown_tensors(place: Place, served: Model | Ensemble) -> Faults:
    for side, key, entry in known_tensors(served):
        where = (*place, side, key)
        dims = entry.tensor.dims
        if entry.reshape is not None and not _same_elements(dims, entry.reshape):
            yield RESHAPE.at((*where, "reshape"), f"{entry.tensor} cannot be reshaped to {entry.reshape}")
        if isinstance(entry, Output):
            if entry.labels is not None and _leaves_its_folder(entry.labels):
                yield LABELS.at((*where, "labels"), f"{entry.labels!r} is not in the model's folder")
            continue
        if entry.format is not None and len(dims) != 3:
            yield FORMAT.at((*where, "format"), f"{entry.tensor} has {len(dims)} dimensions")
        if entry.largest is not None and not _within(entry.largest, dims):
            yield LARGEST.at((*where, "largest"), f"{entry.tensor} is never as large as {entry.largest}")
        if entry.ragged and entry.tensor.fixed:
            yield NOT_RAGGED.at((*where, "ragged"), f"no dimension of {entry.tensor} varies")


def known_tensors(served: Model | Ensemble) -> Iterator[tuple[str, str, Input | Output]]:
    """Side, name and entry of each tensor, without those that are wrong already."""
    for side, entries in (("inputs", served.inputs), ("outputs", served.outputs)):
        for key, entry in entries.items():
            if entry is not UNKNOWN and entry.tensor is not UNKNOWN:
                yield side, key, entry


def _same_elements(dims: Sequence[int], reshape: Sequence[int]) -> bool:
    return all(size > 0 or size == -1 for size in reshape) and _products(dims) == _products(reshape)


def _products(dims: Sequence[int]) -> list[int]:
    """The elements between the dimensions that vary."""
    ends = [-1, *(index for index, size in enumerate(dims) if size == -1), len(dims)]
    return [prod(dims[start + 1 : end]) for start, end in pairwise(ends)]


def _within(largest: Sequence[int], dims: Sequence[int]) -> bool:
    return len(largest) == len(dims) and all(size in (-1, most) for size, most in zip(dims, largest, strict=True))


def _leaves_its_folder(file: str) -> bool:
    path = PurePosixPath(file)
    return path.is_absolute() or ".." in path.parts or not path.name


@of_each_model
def all_optional(spec: Spec, name: str, model: Model) -> Faults:
    if model.max_batch > 0 and all(entry.optional for entry in model.inputs.values()):
        yield ALL_OPTIONAL.at(("models", name, "inputs"), f"every input of {name} is optional")


@of_each_model_in_each_profile
def empty_reshape(found: Resolved) -> Faults:
    for side, key, entry in known_tensors(found.model):
        if entry.reshape == [] and found.max_batch == 0:
            yield EMPTY_RESHAPE.at(("models", found.name, side, key, "reshape"), "max_batch is 0, and reshape empty")


@of_each_model_in_each_profile
def types_of_the_backend(found: Resolved) -> Faults:
    by_wheel = found.spec.profiles[found.profile].triton.requirement is not None
    for side, key, entry in known_tensors(found.model):
        place = ("models", found.name, side, key)
        if found.has_tandems_code and entry.tensor.dtype in ("string", "bfloat16"):
            yield ONNX_TYPE.at(place, f"{key} is a {entry.tensor}")
        elif found.backend == PYTHON and by_wheel and entry.tensor.dtype == "string":
            yield STRINGS.at(place, f"{key} is a {entry.tensor}")


@of_each_model_in_each_profile
def tensorrt_only(found: Resolved) -> Faults:
    if found.backend == TENSORRT:
        return
    for side, key, entry in known_tensors(found.model):
        for field in ("shape_tensor", "non_linear"):
            if getattr(entry, field):
                yield TENSORRT_ONLY.at(
                    ("models", found.name, side, key, field), f"the backend is {found.backend} in {found.profile}"
                )


@of_each_model_in_each_profile
def inputs_of_tandems_code(found: Resolved) -> Iterator[Fault]:
    if not found.has_tandems_code:
        return
    for key, entry in found.model.inputs.items():
        place = ("models", found.name, "inputs", key)
        if entry is UNKNOWN:
            continue
        if entry.optional:
            yield OPTIONAL_ONNX.at((*place, "optional"), f"{found.profile} runs {found.name} in the python backend")
        if entry.ragged:
            yield RAGGED_ONNX.at((*place, "ragged"), f"{found.profile} runs {found.name} in the python backend")
