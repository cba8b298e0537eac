"""The inference request of the protocol's gRPC half, as bytes, written anew."""

from __future__ import annotations

from array import array
from typing import Any

from google.protobuf.message import DecodeError
from tritonclient.grpc import service_pb2

from serve_app.context import RequestContext
from serve_app.protocol.datatypes import BYTES, joined, packed
from serve_app.protocol.draft import Draft, refuse_shared_memory
from serve_app.protocol.http_response import scalar
from serve_app.protocol.limits import Limits
from serve_app.protocol.parameters import request_id
from serve_app.protocol.refusals import invalid, too_large
from serve_app.protocol.signatures import Signature, TensorSignature

_RAW_CONTENTS = service_pb2.ModelInferRequest.RAW_INPUT_CONTENTS_FIELD_NUMBER
_CONTENTS = {
    "BOOL": "bool_contents",
    "UINT8": "uint_contents",
    "UINT16": "uint_contents",
    "UINT32": "uint_contents",
    "UINT64": "uint64_contents",
    "INT8": "int_contents",
    "INT16": "int_contents",
    "INT32": "int_contents",
    "INT64": "int64_contents",
    "FP32": "fp32_contents",
    "FP64": "fp64_contents",
    BYTES: "bytes_contents",
}
_FLOATS = {"FP32": "f", "FP64": "d"}


def parsed(data: bytes, limits: Limits) -> service_pb2.ModelInferRequest:
    """The client's message. Refusal where it is none, or larger in its small parts than is worth reading."""
    _check_size(data, limits)
    try:
        return service_pb2.ModelInferRequest.FromString(data)
    except DecodeError:
        raise _malformed() from None


def rewritten(
    given: service_pb2.ModelInferRequest, signature: Signature, context: RequestContext, limits: Limits
) -> service_pb2.ModelInferRequest:
    """The request for Triton. Refusal where it does not fit the model."""
    draft = Draft(signature, given.model_version, request_id(given.id, limits), limits)
    raws = given.raw_input_contents
    if raws and len(raws) != len(given.inputs):
        raise invalid(
            f"{len(raws)} raw_input_contents do not match {len(given.inputs)} inputs for model '{signature.name}'"
        )
    for index, entry in enumerate(given.inputs):
        tensor, elements = draft.input(entry.name, entry.datatype, [*entry.shape])
        if entry.parameters:
            refuse_shared_memory(entry.parameters)
        if not raws:
            raw = _typed(entry, tensor, signature, limits)
        elif entry.HasField("contents"):
            raise invalid(
                "contents field must not be specified when using raw_input_contents for "
                f"'{tensor.name}' for model '{signature.name}'"
            )
        else:
            raw = raws[index]
        draft.content(tensor, elements, raw)
    for output in given.outputs:
        classes: Any = 0
        if output.parameters:
            refuse_shared_memory(output.parameters)
            if "classification" in output.parameters:
                classes = scalar(output.parameters["classification"])
        draft.output(output.name, classes)
    return draft.finish({name: scalar(value) for name, value in given.parameters.items()}, context)


def _typed(entry: Any, tensor: TensorSignature, signature: Signature, limits: Limits) -> bytes:
    what = f"input '{tensor.name}'"
    if not entry.HasField("contents"):
        raise invalid(f"unable to find data for input tensor '{tensor.name}' for model '{signature.name}' in request.")
    expected = _CONTENTS.get(tensor.wire)
    if expected is None:
        raise invalid(f"{what} is {tensor.wire}, which has no typed contents; send it in raw_input_contents")
    for field, _ in entry.contents.ListFields():
        if field.name != expected:
            raise invalid(
                f"unexpected explicit tensor data for input tensor '{tensor.name}' for model '{signature.name}' "
                f"in {field.name}, expected {expected}"
            )
    values = getattr(entry.contents, expected)
    if tensor.wire == BYTES:
        return joined(values, what, limits)
    if tensor.wire in _FLOATS:
        return array(_FLOATS[tensor.wire], values).tobytes()  # whatever they are, NaN included, is of the type
    return packed(tensor.wire, values, what, limits)


def _check_size(data: bytes, limits: Limits) -> None:
    """Refusal where a message has more fields, or more bytes outside raw tensors, than a request can need.

    Read before protobuf does it, because there every empty tensor of two bytes becomes an object.
    """
    at, end, fields, small = 0, len(data), 0, 0
    most = 3 * limits.tensors + limits.parameters + 3
    while at < end:
        tag, at = _varint(data, at, end)
        fields += 1
        kind = tag & 7
        if kind == 2:
            length, at = _varint(data, at, end)
            at += length
            if tag >> 3 != _RAW_CONTENTS:
                small += length
        elif kind == 0:
            _, at = _varint(data, at, end)
        elif kind in (1, 5):
            at += 8 if kind == 1 else 4
        else:
            raise _malformed()
        if at > end:
            raise _malformed()
        if fields > most:
            raise too_large("the request has more tensors or parameters than are taken")
        if small > limits.listed:
            raise too_large(f"more than {limits.listed:,} bytes outside raw_input_contents; send tensors there")


def _varint(data: bytes, at: int, end: int) -> tuple[int, int]:
    if at < end and data[at] < 0x80:  # nearly all of them
        return data[at], at + 1
    value = shift = 0
    while at < end and shift < 70:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    raise _malformed()


def _malformed() -> Exception:
    return invalid("the message cannot be read as a ModelInferRequest")
