"""Whether a prepared model is the one that the spec describes, found out before a server is started with it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import onnx
from onnx.helper import tensor_dtype_to_np_dtype

from serve_app.spec.tensors import Tensor


def disagreements(model: Path, inputs: Mapping[str, Tensor], outputs: Mapping[str, Tensor]) -> list[str]:
    """What differs between the graph in the file `model` and the spec's tensors, one sentence each."""
    graph = onnx.load(model, load_external_data=False).graph
    return [*_differences("input", graph.input, inputs), *_differences("output", graph.output, outputs)]


def _differences(kind: str, values: object, tensors: Mapping[str, Tensor]) -> Iterator[str]:
    found = {value.name: value.type.tensor_type for value in values}  # type: ignore[attr-defined]
    if set(found) != set(tensors):
        yield f"its {kind}s are {', '.join(found)}, and the spec's {', '.join(tensors)}"
        return
    for name, tensor in tensors.items():
        dims = [dim.dim_value if dim.HasField("dim_value") else -1 for dim in found[name].shape.dim]
        fits = len(dims) == len(tensor.dims) + 1 and all(
            have in (-1, want) for have, want in zip(dims[1:], tensor.dims, strict=True)
        )
        dtype = tensor_dtype_to_np_dtype(found[name].elem_type)
        if dims[:1] != [-1]:
            yield f"the batch dimension of {kind} {name} is fixed; make it dynamic when the model is prepared"
        if not fits or dtype != tensor.numpy:
            yield f"{kind} {name} is {dtype.name}{dims[1:]}, and the spec's {tensor}"
