"""Whether an ONNX file is the model that the spec describes, found out before a server is started with it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import onnx
from google.protobuf.message import DecodeError

from serve_app.spec.findings import Fault, Faults, Place, error, warning
from serve_app.spec.model import Input, Model, Output

NOT_ONNX = error(
    "W012", "A file that is no ONNX model", "the model cannot be loaded",
    "export the model again, or correct the recipe that prepares it",
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


def disagreements(file: Path, model: Model, max_batch: int, base: Place) -> Faults:
    """What differs between the graph in `file` and the tensors of `model`, whose entry is at `base`.

    `max_batch` is the profile's; with 0 the tensors have no batch dimension.
    """
    try:
        graph = onnx.load(file, load_external_data=False).graph
    except (DecodeError, ValueError, OSError) as broken:
        yield NOT_ONNX.at(base, f"{file.name} cannot be read ({broken})")
        return
    constants = {tensor.name for tensor in graph.initializer}
    inputs = {value.name: value.type for value in graph.input if value.name not in constants}
    outputs = {value.name: value.type for value in graph.output}
    yield from _differences("input", inputs, model.inputs, max_batch, base)
    yield from _differences("output", outputs, model.outputs, max_batch, base)
    for name in _unnamed(inputs, model.inputs, _inputs_of_tritons(model)):
        what = f"the graph takes an input {name}, and the spec's are {', '.join(model.inputs)}"
        yield NOT_GIVEN.at((*base, "inputs"), what)
    for name in _unnamed(outputs, model.outputs, _outputs_of_tritons(model)):
        yield NOT_SERVED.at((*base, "outputs"), f"the graph has an output {name} too")


def _unnamed(found: Iterable[str], *named: Iterable[str]) -> list[str]:
    known = {name for names in named for name in names}
    return [name for name in found if name not in known]


def _inputs_of_tritons(model: Model) -> Iterator[str]:
    """Inputs of the graph that Triton fills by itself."""
    for made in model.batch_inputs:
        yield from made.targets
    if model.sequence is not None:
        yield from (control.input for control in model.sequence.controls)
        yield from (state.input for state in model.sequence.states)


def _outputs_of_tritons(model: Model) -> Iterator[str]:
    return (state.output for state in model.sequence.states) if model.sequence is not None else iter(())


def _differences(
    kind: str,
    found: Mapping[str, onnx.TypeProto],
    entries: Mapping[str, Input] | Mapping[str, Output],
    max_batch: int,
    base: Place,
) -> Iterator[Fault]:
    for name, entry in entries.items():
        place: Place = (*base, f"{kind}s", name)
        if name not in found:
            yield NO_TENSOR.at(place, f"the graph's {kind}s are {', '.join(found) or 'none'}")
        elif not found[name].HasField("tensor_type"):
            yield OTHER_TYPE.at(place, f"the graph's {name} is a {found[name].WhichOneof('value')}, no tensor")
        else:
            yield from _tensor(kind, name, found[name].tensor_type, entry, max_batch, place)


def _tensor(
    kind: str, name: str, graph: onnx.TypeProto.Tensor, entry: Input | Output, max_batch: int, place: Place
) -> Iterator[Fault]:
    onnx_name = onnx.TensorProto.DataType.Name(graph.elem_type)
    dtype = _DTYPES.get(onnx_name, onnx_name.lower())
    if dtype != entry.tensor.dtype:
        yield OTHER_TYPE.at(place, f"{kind} {name} of the graph is {dtype}, and the spec's {entry.tensor.dtype}")
    # Triton puts the elements of ragged requests one behind the other, whatever the spec's dimensions.
    if not graph.HasField("shape") or (isinstance(entry, Input) and entry.ragged):
        return
    dims = [dim.dim_value if dim.HasField("dim_value") else -1 for dim in graph.shape.dim]
    wanted = list(entry.tensor.dims if entry.reshape is None else entry.reshape)
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
        shown = " (after reshape)" if entry.reshape is not None else ""
        yield OTHER_DIMS.at(place, f"{kind} {name} of the graph has {dims}, and the spec {wanted}{shown}")
