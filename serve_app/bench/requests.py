"""The request that a measurement sends: files for a route, or made-up tensors for a model."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import numpy as np
from tritonclient.grpc import model_config_pb2, service_pb2
from tritonclient.utils import serialize_byte_tensor, triton_to_np_dtype

from serve_app.bench.clients import GrpcRequest, HttpRequest
from serve_app.bench.error import BenchError

# Of a dimension that fitting, in the example of a message.
_EXAMPLE = 320


def of_files(url: str, files: Sequence[tuple[str, Path]], headers: Mapping[str, str]) -> HttpRequest:
    """A POST of files, each with the name of its part of a form; one alone with the name '' is the whole body."""
    try:
        contents = [(name, path.read_bytes()) for name, path in files]
    except OSError as broken:
        raise BenchError(f"{broken.filename} cannot be read: {broken.strerror}") from None
    if [name for name, _ in contents] == [""]:
        return HttpRequest(url, contents[0][1], {**headers, "Content-Type": "application/octet-stream"})
    form = httpx.Request("POST", url, files=[(name, (name, content)) for name, content in contents])
    return HttpRequest(url, form.read(), {**headers, "Content-Type": form.headers["Content-Type"]})


@dataclass(frozen=True)
class Content:
    """An input as it is sent: its shape with the batch dimension, and its bytes."""

    name: str
    datatype: str
    shape: list[int]
    raw: bytes


def contents_for(config: model_config_pb2.ModelConfig, shapes: Mapping[str, Sequence[int]]) -> list[Content]:
    """One item of each of a model's inputs, random but the same each time; inputs that may be left out are.

    `shapes` gives the sizes of the inputs that vary, without the batch dimension. BenchError where one is missing, and
    where the model takes sequences: a request by itself means nothing to it.
    """
    if config.HasField("sequence_batching"):
        raise BenchError(
            f"{config.name} takes sequences (sequence_batching), whose requests belong together and carry a "
            "correlation ID; `tandem bench` sends requests that stand alone: measure a route that calls it"
        )
    wanted = {each.name: each for each in config.input if not each.optional}
    if unknown := [name for name in shapes if name not in wanted]:
        raise BenchError(f"{config.name} has no input {unknown[0]}; it takes {', '.join(wanted)}")
    batch = [1] if config.max_batch_size > 0 else []
    return [
        Content(name, _wire(each.data_type), [*batch, *dims], _random(_wire(each.data_type), dims))
        for name, each in wanted.items()
        for dims in [_sized(config.name, each, shapes.get(name))]
    ]


def _sized(model: str, tensor: model_config_pb2.ModelInput, given: Sequence[int] | None) -> list[int]:
    dims = list(tensor.dims if given is None else given)
    fitting = [want if have == -1 else have for have, want in zip(tensor.dims, dims, strict=False)]
    if dims != fitting or len(dims) != len(tensor.dims) or min(dims, default=1) < 1:
        example = ",".join(str(_EXAMPLE if dim < 0 else dim) for dim in tensor.dims)
        raise BenchError(
            f"input {tensor.name} of {model} is {list(tensor.dims)}: "
            f"give it a size, such as --shape {tensor.name}={example}"
        )
    return dims


def _wire(data_type: int) -> str:
    """The protocol's word for a type of Triton's configuration."""
    name = str(model_config_pb2.DataType.Name(data_type)).removeprefix("TYPE_")
    return "BYTES" if name == "STRING" else name


def _random(wire: str, dims: Sequence[int]) -> bytes:
    random = np.random.default_rng(0)
    if wire == "BYTES":
        return bytes(serialize_byte_tensor(np.full(dims, b"text", np.object_)).item())
    if wire == "BF16":  # the upper half of a float32
        return random.random(dims, np.float32).view(np.uint16).reshape(-1, 2)[:, 1].tobytes()
    dtype: np.dtype[Any] = np.dtype(triton_to_np_dtype(wire))
    if dtype.kind == "f":
        return random.random(dims, np.float32).astype(dtype).tobytes()
    return random.integers(0, 2 if dtype.kind == "b" else 100, dims).astype(dtype).tobytes()


def http_infer(url: str, model: str, inputs: Sequence[Content], headers: Mapping[str, str]) -> HttpRequest:
    """The inference request of the protocol's HTTP half, with binary tensors both ways."""
    entries = [
        {
            "name": each.name,
            "datatype": each.datatype,
            "shape": each.shape,
            "parameters": {"binary_data_size": len(each.raw)},
        }
        for each in inputs
    ]
    header = json.dumps({"inputs": entries, "parameters": {"binary_data_output": True}}).encode()
    body = b"".join([header, *(each.raw for each in inputs)])
    more = {"Content-Type": "application/octet-stream", "Inference-Header-Content-Length": str(len(header))}
    return HttpRequest(f"{url}/v2/models/{model}/infer", body, {**headers, **more})


def grpc_infer(address: str, model: str, inputs: Sequence[Content], metadata: Mapping[str, str]) -> GrpcRequest:
    """The inference request of the protocol's gRPC half."""
    message = service_pb2.ModelInferRequest(model_name=model)
    for each in inputs:
        message.inputs.add(name=each.name, datatype=each.datatype, shape=each.shape)
        message.raw_input_contents.append(each.raw)
    return GrpcRequest(address, message, {key.lower(): value for key, value in metadata.items()})
