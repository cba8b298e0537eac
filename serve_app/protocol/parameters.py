"""A request's parameters: Triton's own, checked and joined with the tier and the deadline, and the client's own."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from tritonclient.grpc import service_pb2

from serve_app.context import RequestContext
from serve_app.protocol.limits import Limits
from serve_app.protocol.refusals import invalid, shown
from serve_app.protocol.signatures import Signature

EMPTY_FINAL = "triton_enable_empty_final_response"
_RESERVED = ("triton_", "shared_memory_")
_OF_THE_TRANSPORT = ("binary_data_output", EMPTY_FINAL)
_LONGEST_SEQUENCE_ID = 128  # bytes, as in Triton


def write_parameters(
    message: service_pb2.ModelInferRequest,
    given: Mapping[str, Any],
    signature: Signature,
    context: RequestContext,
    limits: Limits,
) -> None:
    """Refusal where a parameter is not what Triton takes it for, or too long, or reserved.

    A priority of the client's counts before its tier's; its timeout counts where it ends before the deadline does.
    """
    if len(given) > limits.parameters:
        raise invalid(f"{len(given)} parameters are too many; at most {limits.parameters} are taken")
    written = message.parameters
    priority = timeout = 0
    for name, value in given.items():
        if name == "priority":
            priority = _priority(value, signature)
        elif name == "timeout":
            timeout = _whole(name, value, "a number of microseconds")
        elif name == "sequence_id":
            _write_sequence_id(written[name], value)
        elif name in ("sequence_start", "sequence_end"):
            written[name].bool_param = _flag(name, value)
        elif name in _OF_THE_TRANSPORT:
            _flag(name, value)
        else:
            _write_custom(written, name, value, limits)
    if signature.levels is not None and (priority or signature.by_tiers):
        written["priority"].uint64_param = priority or min(context.priority, signature.levels)
    left = int(context.remaining() * 1e6)
    written["timeout"].int64_param = max(1, min(timeout, left) if timeout else left)


def hurry(message: service_pb2.ModelInferRequest, context: RequestContext, granted: RequestContext) -> None:
    """Give a request the priority that it was granted, where that is more urgent than its own."""
    if granted.priority < context.priority and "priority" in message.parameters:
        message.parameters["priority"].uint64_param = granted.priority


def _priority(value: Any, signature: Signature) -> int:
    priority = _whole("priority", value, "a level, 1 being the first")
    if signature.levels is not None and priority > signature.levels:
        raise invalid(f"priority {shown(priority)} is not one of {signature.name}'s levels, 1 to {signature.levels}")
    return priority


def _write_sequence_id(parameter: service_pb2.InferParameter, value: Any) -> None:
    if type(value) is str:
        if len(value.encode(errors="replace")) > _LONGEST_SEQUENCE_ID:
            raise invalid(f"sequence_id is longer than {_LONGEST_SEQUENCE_ID} bytes")
        parameter.string_param = _text("sequence_id", value)
    else:
        number = _whole("sequence_id", value, "a number or text")
        # Triton reads its 64 bits as a number without a sign.
        parameter.int64_param = number if number < 2**63 else number - 2**64


def _write_custom(written: Any, name: str, value: Any, limits: Limits) -> None:
    if name.startswith(_RESERVED) or name == "headers":
        raise invalid(f"parameter {shown(name)} is reserved; parameters of your own have other names")
    if len(name) > limits.name or len(_text("a parameter's name", name)) == 0:
        raise invalid(f"a parameter's name has 1 to {limits.name} characters")
    kind = type(value)
    if kind is bool:
        written[name].bool_param = value
    elif kind is int and -(2**63) <= value < 2**63:
        written[name].int64_param = value
    elif kind is float and math.isfinite(value):
        written[name].double_param = value
    elif kind is str:
        if len(value) > limits.text:
            raise invalid(f"parameter {shown(name)} is longer than {limits.text} characters")
        written[name].string_param = _text(f"parameter {shown(name)}", value)
    else:
        raise invalid(f"parameter {shown(name)} is no text, whole number of 64 bits, number, true or false")


def _whole(name: str, value: Any, what: str) -> int:
    if type(value) is not int or not 0 <= value < 2**64:
        raise invalid(f"invalid value for '{name}': it is {what}")
    return value


def _flag(name: str, value: Any) -> bool:
    if type(value) is not bool:
        raise invalid(f"invalid value for '{name}': it is true or false")
    return value


def _text(what: str, value: str) -> str:
    """Text that protobuf and C both hold whole."""
    if "\0" in value or not _is_unicode(value):
        raise invalid(f"{what} has a character that cannot be sent on")
    return value


def _is_unicode(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def request_id(value: Any, limits: Limits) -> str:
    """The client's id of a request, which its answer repeats."""
    if type(value) is not str or len(value) > limits.text:
        raise invalid(f"the id is text of at most {limits.text} characters")
    return _text("the id", value)
