"""The inference request of the protocol's HTTP half: JSON, with tensors' bytes after it where they are binary."""

from __future__ import annotations

import json
from typing import Any

from tritonclient.grpc import service_pb2

from serve_app.context import RequestContext
from serve_app.protocol.datatypes import BYTES, flat, joined, packed
from serve_app.protocol.draft import Draft, refuse_shared_memory
from serve_app.protocol.http_response import Wanted
from serve_app.protocol.limits import Limits
from serve_app.protocol.parameters import request_id
from serve_app.protocol.refusals import invalid, too_large
from serve_app.protocol.signatures import Signature, TensorSignature

_NOTHING: dict[str, Any] = {}


def read_request(
    body: bytes, header_length: int | None, signature: Signature, version: str, context: RequestContext, limits: Limits
) -> tuple[service_pb2.ModelInferRequest, Wanted]:
    """The request for Triton, and how its answer is to be written. Refusal where it does not fit the model.

    `header_length` is that of the JSON where bytes follow it: None where it is the whole body, 0 where there is none
    and the body is the only input's content.
    """
    if header_length == 0:
        return _whole_body(body, signature, version, context, limits)
    if header_length is None:
        header_length = len(body)
    elif header_length > len(body):
        raise invalid(f"Inference-Header-Content-Length is {header_length}, but the body has {len(body)} bytes")
    if header_length > limits.listed:
        raise too_large(f"the JSON is larger than {limits.listed:,} bytes; send tensors as binary data")
    data = _parsed(body[:header_length])
    parameters = _object(data, "parameters")
    draft = Draft(signature, version, request_id(data.get("id", ""), limits), limits)
    _read_inputs(draft, _list(data, "inputs", limits), memoryview(body)[header_length:], limits)
    wanted = Wanted(by_default=parameters.get("binary_data_output") is True)
    for entry in _list(data, "outputs", limits) if "outputs" in data else ():
        asked = _object(entry, "parameters")
        refuse_shared_memory(asked)
        draft.output(entry.get("name"), asked.get("classification", 0))
        binary = asked.get("binary_data", False)
        if type(binary) is not bool:
            raise invalid("invalid value for 'binary_data': it is true or false")
        wanted.binary[entry["name"]] = binary
    return draft.finish(parameters, context), wanted


def _read_inputs(draft: Draft, entries: list[dict[str, Any]], binary: memoryview, limits: Limits) -> None:
    at = 0
    for entry in entries:
        shape = entry.get("shape")
        if type(shape) is not list:
            raise invalid("each input has a 'shape', a list of whole numbers")
        tensor, elements = draft.input(entry.get("name"), entry.get("datatype"), shape)
        parameters = _object(entry, "parameters")
        if parameters:
            refuse_shared_memory(parameters)
        size = parameters.get("binary_data_size")
        if size is None:
            raw = _listed(tensor, entry.get("data"), elements, len(shape), limits)
        elif "data" in entry:
            raise invalid(f"input '{tensor.name}' has both 'data' and 'binary_data_size'")
        elif type(size) is not int or not 0 <= size <= len(binary) - at:
            raise invalid(f"input '{tensor.name}': 'binary_data_size' is not the number of bytes that follow the JSON")
        else:
            raw = bytes(binary[at : at + size])
            at += size
        draft.content(tensor, elements, raw)
    if at != len(binary):
        raise invalid(f"unexpected additional input data for model '{draft.signature.name}'")


def _listed(tensor: TensorSignature, data: object, elements: int, rank: int, limits: Limits) -> bytes:
    what = f"input '{tensor.name}'"
    if type(data) is not list:
        raise invalid(f"{what} has neither 'data', a list, nor 'binary_data_size'")
    values = flat(data, rank)
    if len(values) != elements:
        raise invalid(f"{what} has {len(values)} values in 'data', but its shape holds {elements}")
    return packed(tensor.wire, values, what, limits)


def _whole_body(
    body: bytes, signature: Signature, version: str, context: RequestContext, limits: Limits
) -> tuple[service_pb2.ModelInferRequest, Wanted]:
    """The body is the content of the only input, for one item; a dimension that varies follows from its size."""
    if len(signature.inputs) != 1:
        raise invalid(
            f"Raw request must only have 1 input to be deduced but model '{signature.name}' has {len(signature.inputs)}"
        )
    (tensor,) = signature.inputs.values()
    shape = [1 if tensor.batched else tensor.dims[0], *tensor.dims[1:]]
    if tensor.wire == BYTES:
        shape = [1 if dim == -1 else dim for dim in shape]
        body = joined([body], f"input '{tensor.name}'", limits)
    elif shape.count(-1) == 1:
        known = tensor.size
        for dim in shape:
            known *= 1 if dim == -1 else dim
        shape[shape.index(-1)] = max(1, len(body) // known)
    draft = Draft(signature, version, "", limits)
    draft.content(*draft.input(tensor.name, tensor.wire, shape), body)
    return draft.finish(_NOTHING, context), Wanted(by_default=True)


def _no_number(name: str) -> None:
    raise invalid(f"JSON has no {name}; send the tensor as binary data")


_decode = json.JSONDecoder(parse_constant=_no_number).decode


def _parsed(header: bytes) -> dict[str, Any]:
    try:
        data = _decode(header.decode())
    except RecursionError:
        raise invalid("the JSON is nested too deeply") from None
    except ValueError as broken:  # also text that is not UTF-8, and numbers of thousands of digits
        raise invalid(f"failed to parse the request JSON buffer: {str(broken)[:200]}") from None
    if type(data) is not dict:
        raise invalid("the request is not a JSON object")
    return data


def _object(holder: dict[str, Any], key: str) -> dict[str, Any]:
    value = holder.get(key)
    if value is None:
        return _NOTHING
    if type(value) is not dict:
        raise invalid(f"'{key}' is not a JSON object")
    return value


def _list(holder: dict[str, Any], key: str, limits: Limits) -> list[dict[str, Any]]:
    value = holder.get(key)
    if type(value) is not list or not all(type(each) is dict for each in value):
        raise invalid(f"'{key}' is not a list of JSON objects")
    if len(value) > limits.tensors:
        raise invalid(f"{len(value)} {key} are too many; at most {limits.tensors} are taken")
    return value


def index_is_of_ready_models(body: bytes, limits: Limits) -> bool:
    """What the body of a question for the repository's index asks. Refusal where it cannot be read."""
    if not body:
        return False
    if len(body) > limits.listed:
        raise too_large(f"the JSON is larger than {limits.listed:,} bytes")
    ready = _parsed(body).get("ready", False)
    if type(ready) is not bool:
        raise invalid("'ready' is true or false")
    return ready
