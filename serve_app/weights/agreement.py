"""Whether an ONNX file is the model that the spec describes, found out before a server is started with it."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import onnx

from serve_app.spec.findings import Fault, Faults, Place, error, warning
from serve_app.spec.model import Input, Model, Output

NOT_ONNX = error(
    "W012", "A file that is no ONNX model", "the model cannot be loaded",
    "export the model again, or correct the recipe that prepares it",
)  # fmt: skip
NO_WEIGHTS_BESIDE = error(
    "W033", "An ONNX model whose weights are in another file, which is not beside it", "the model cannot be loaded",
    "put that file there, or export the model as one file",
)  # fmt: skip
NO_TENSOR = error(
    "W013", "A tensor that the ONNX graph does not have", "Triton refuses the model, or every request fails",
    "call it as the graph does",
)  # fmt: skip
NOT_GIVEN = error(
    "W014", "An input of the ONNX graph that the spec does not give", "the model cannot be run",
    "add it to the model's inputs",
)  # fmt: skip
NOT_SERVED = warning(
    "W015", "An output of the ONNX graph that the spec does not serve", "nobody can ask for it",
    "add it to the model's outputs, or leave it out of the graph",
)  # fmt: skip
OTHER_TYPE = error(
    "W016", "A tensor of another type than the ONNX graph's", "Triton refuses the model, or every request fails",
    "write the graph's type, or correct the recipe that prepares the model",
)  # fmt: skip
OTHER_DIMS = error(
    "W017", "A tensor with other dimensions than the ONNX graph's", "Triton refuses the model, or requests fail",
    "write the graph's dimensions, or correct the recipe that prepares the model",
)  # fmt: skip
FIXED_BATCH = error(
    "W018", "An ONNX graph whose batch dimension is fixed", "batches of any other size fail",
    "export the model with a batch dimension that varies, or write max_batch: 1",
)  # fmt: skip

_DTYPES = {"FLOAT": "float32", "DOUBLE": "float64"}


def disagreements(graph: onnx.GraphProto, model: Model, max_batch: int, base: Place) -> Faults:
    """What differs between the graph and the tensors of `model`, whose entry is at `base`.

    `max_batch` is the profile's; with 0 the tensors have no batch dimension.
    """
    constants = {tensor.name for tensor in graph.initializer}
    inputs = {value.name: value.type for value in graph.input if value.name not in constants}
    outputs = {value.name: value.type for value in graph.output}
    taken = [*_declared("input", model.inputs, base), *_filled_inputs(model, base)]
    given = [*_declared("output", model.outputs, base), *_state_outputs(model, base)]
    for name in (yield from _differences("input", inputs, taken, max_batch)):
        what = f"the graph takes an input {name}, and the spec's are {', '.join(model.inputs)}"
        yield NOT_GIVEN.at((*base, "inputs"), what)
    for name in (yield from _differences("output", outputs, given, max_batch)):
        yield NOT_SERVED.at((*base, "outputs"), f"the graph has an output {name} too")


def lost_weights(graph: onnx.GraphProto, folder: Path) -> list[str]:
    """The files of weights that the graph wants beside it, in `folder`, and that are not there."""
    locations = {
        entry.value
        for tensor in graph.initializer
        if tensor.data_location == onnx.TensorProto.EXTERNAL
        for entry in tensor.external_data
        if entry.key == "location"
    }
    return sorted(location for location in locations if not os.path.isfile(folder / location))


@dataclass(frozen=True)
class _Wanted:
    """What the spec says of a tensor of the graph, and where. `dims` None: they are not the spec's to say."""

    name: str
    place: Place
    dtype: str
    dims: list[int] | None
    reshaped: bool = False


def _filled_inputs(model: Model, base: Place) -> Iterator[_Wanted]:
    """Inputs of the graph that Triton fills by itself: of whole batches, and of sequences."""
    for index, made in enumerate(model.batch_inputs):
        for target in made.targets:
            yield _Wanted(target, (*base, "batch_inputs", index, "targets"), made.type, None)
    if model.sequence is not None:
        for index, control in enumerate(model.sequence.controls):
            yield _Wanted(control.input, (*base, "sequence", "controls", index), control.type, [1])
        for index, state in enumerate(model.sequence.states):
            place: Place = (*base, "sequence", "states", index, "input")
            yield _Wanted(state.input, place, state.tensor.dtype, list(state.tensor.dims))


def _state_outputs(model: Model, base: Place) -> Iterator[_Wanted]:
    """Outputs of the graph that Triton keeps for the next request of a sequence."""
    for index, state in enumerate(model.sequence.states if model.sequence is not None else []):
        place: Place = (*base, "sequence", "states", index, "output")
        yield _Wanted(state.output, place, state.tensor.dtype, list(state.tensor.dims))


def _declared(kind: str, entries: Mapping[str, Input] | Mapping[str, Output], base: Place) -> Iterator[_Wanted]:
    """Inputs that requests bring, or outputs that answers hold."""
    for name, entry in entries.items():
        reshaped = entry.reshape is not None
        # Triton puts the elements of ragged requests one behind the other, whatever the spec's dimensions.
        ragged = isinstance(entry, Input) and entry.ragged
        dims = None if ragged else list(entry.tensor.dims if entry.reshape is None else entry.reshape)
        yield _Wanted(name, (*base, f"{kind}s", name), entry.tensor.dtype, dims, reshaped)


def _differences(
    kind: str, found: Mapping[str, onnx.TypeProto], wanted: Sequence[_Wanted], max_batch: int
) -> Generator[Fault, None, list[str]]:
    """Returns what the graph has beside all that is wanted. One name that is wrong on each side is the same tensor."""
    beside = [name for name in found if name not in {tensor.name for tensor in wanted}]
    lost = [tensor for tensor in wanted if tensor.name not in found]
    renamed = len(lost) == len(beside) == 1
    for tensor in wanted:
        if tensor.name in found:
            yield from _difference(kind, found, tensor, max_batch)
            continue
        remedy = f"call it {beside[0]}" if renamed else None
        yield NO_TENSOR.at(tensor.place, f"the graph's {kind}s are {', '.join(found) or 'none'}", remedy=remedy)
        if renamed:
            yield from _difference(kind, found, replace(tensor, name=beside[0]), max_batch)
    return [] if renamed else beside


def _difference(kind: str, found: Mapping[str, onnx.TypeProto], wanted: _Wanted, max_batch: int) -> Iterator[Fault]:
    name = wanted.name
    if not found[name].HasField("tensor_type"):
        yield OTHER_TYPE.at(wanted.place, f"the graph's {name} is a {found[name].WhichOneof('value')}, no tensor")
    else:
        yield from _tensor(kind, found[name].tensor_type, wanted, max_batch)


def _tensor(kind: str, graph: onnx.TypeProto.Tensor, tensor: _Wanted, max_batch: int) -> Iterator[Fault]:
    name, place, wanted = tensor.name, tensor.place, tensor.dims
    onnx_name = onnx.TensorProto.DataType.Name(graph.elem_type)
    dtype = _DTYPES.get(onnx_name, onnx_name.lower())
    if dtype != tensor.dtype:
        yield OTHER_TYPE.at(place, f"{kind} {name} of the graph is {dtype}, and the spec's {tensor.dtype}")
    if not graph.HasField("shape") or wanted is None:
        return
    dims = [dim.dim_value if dim.HasField("dim_value") else -1 for dim in graph.shape.dim]
    if max_batch > 0:
        batch, dims = dims[:1], dims[1:]
        if batch and batch != [-1] and (max_batch > 1 or batch != [1]):
            yield FIXED_BATCH.at(
                place, f"the batch dimension of {kind} {name} is fixed at {batch[0]}, and max_batch is {max_batch}"
            )
        elif not batch:
            yield OTHER_DIMS.at(place, f"{kind} {name} of the graph has no dimensions, not even one for the batch")
            return
    if len(dims) != len(wanted) or any(have not in (-1, want) for have, want in zip(dims, wanted, strict=True)):
        shown = " (after reshape)" if tensor.reshaped else ""
        yield OTHER_DIMS.at(place, f"{kind} {name} of the graph has {dims}, and the spec {wanted}{shown}")
