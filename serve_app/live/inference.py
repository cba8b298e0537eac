"""The smallest requests that fit a model, and whether its answers are what the spec says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import Any

from tritonclient.grpc import service_pb2

from serve_app.spec.model import Ensemble, Input, Model, Output
from serve_app.spec.tensors import WIDTHS, Tensor

# What a dimension that varies is tried with. Networks that shrink their input can do nothing with one pixel.
SIZES = (1, 32, 256)
# Of an empty string, which is its length alone.
_STRING_BYTES = 4
LARGEST = 256 * 2**20


def requests(name: str, served: Model | Ensemble, batch: int | None) -> Iterator[Any]:
    """Requests of zeros, or empty strings, smallest first; a model that takes any of them can be run.

    `batch` is the batch dimension; None where there is none.
    """
    inputs = {key: entry for key, entry in served.inputs.items() if not entry.optional} or served.inputs
    shapes = [{key: _sized(entry.tensor.dims, size) for key, entry in inputs.items()} for size in SIZES]
    if any(entry.largest for entry in inputs.values()):
        shapes.append({key: entry.largest or _sized(entry.tensor.dims, SIZES[-1]) for key, entry in inputs.items()})
    seen: list[Mapping[str, list[int]]] = []
    for dims in shapes:
        if dims not in seen:
            seen.append(dims)
            yield _request(name, served, inputs, dims, batch)


def batches(served: Model | Ensemble, max_batch: int) -> list[int | None]:
    """The batches to try: one item, and as many as the model takes, if such a request is of a size to send."""
    if max_batch == 0:
        return [None]
    sequential = isinstance(served, Model) and served.sequence is not None
    if max_batch == 1 or sequential or any(entry.ragged for entry in served.inputs.values()):
        return [1]
    item = sum(_size(entry.tensor, _sized(entry.tensor.dims, 1)) for entry in served.inputs.values())
    return [1, max_batch] if item * max_batch <= LARGEST else [1, max(1, LARGEST // item)]


def mismatches(served: Model | Ensemble, response: Any, batch: int | None) -> Iterator[tuple[str, str]]:
    """The outputs of an answer that are not the spec's, each with what it is instead."""
    found = {output.name: output for output in response.outputs}
    for name, entry in served.outputs.items():
        if name not in found:
            yield name, f"the answer has no {name}" + (f", only {', '.join(found)}" if found else "")
        elif reason := _mismatch(entry, found[name], batch):
            yield name, f"the answer's {name} is {reason}"


def miscounts(response: Any) -> Iterator[tuple[str, str]]:
    """The outputs of an answer whose bytes are not those of their own shape, each with what it is."""
    contents = [*response.raw_output_contents]
    contents += [b""] * (len(response.outputs) - len(contents))
    for output, content in zip(response.outputs, contents, strict=True):
        reason = _miscount(output.datatype, prod(output.shape), content)
        if reason is not None:
            yield output.name, f"the answer's {output.name} is {output.datatype}{list(output.shape)}, {reason}"


def _miscount(datatype: str, elements: int, content: bytes) -> str | None:
    if datatype != "BYTES":
        wanted = WIDTHS[datatype] * elements
        return None if len(content) == wanted else f"{wanted} bytes, and comes with {len(content)}"
    found = _strings(content)
    if found is None:
        return f"and comes with {len(content)} bytes that are no strings, each behind its length"
    return None if found == elements else f"strings, {elements} of them, and comes with {found}"


def _strings(content: bytes) -> int | None:
    """How many strings there are, each behind its length in four bytes, little-endian; None where they are not so."""
    count = at = 0
    while at < len(content):
        at += 4 + int.from_bytes(content[at : at + 4], "little")
        count += 1
    return count if at == len(content) else None


def _mismatch(entry: Output, output: Any, batch: int | None) -> str | None:
    wanted = [*([] if batch is None else [batch]), *entry.tensor.dims]
    fits = len(wanted) == len(output.shape) and all(
        want in (-1, have) for want, have in zip(wanted, output.shape, strict=True)
    )
    if fits and output.datatype == entry.tensor.wire:
        return None
    return f"{output.datatype}{list(output.shape)}, and the spec's {entry.tensor.wire}{wanted}"


def _request(
    name: str, served: Model | Ensemble, inputs: Mapping[str, Input], dims: Mapping[str, list[int]], batch: int | None
) -> Any:
    request = service_pb2.ModelInferRequest(model_name=name)
    if isinstance(served, Model) and served.sequence is not None and not served.sequence.iterative:
        request.parameters["sequence_id"].int64_param = 1
        request.parameters["sequence_start"].bool_param = True
        request.parameters["sequence_end"].bool_param = True
    for key, entry in inputs.items():
        shape = [*([] if batch is None else [batch]), *dims[key]]
        request.inputs.add(name=key, datatype=entry.tensor.wire, shape=shape)
        request.raw_input_contents.append(bytes(_size(entry.tensor, shape)))
    return request


def _size(tensor: Tensor, shape: Sequence[int]) -> int:
    return (tensor.width or _STRING_BYTES) * prod(shape)


def _sized(dims: Sequence[int], size: int) -> list[int]:
    return [size if dim == -1 else dim for dim in dims]
