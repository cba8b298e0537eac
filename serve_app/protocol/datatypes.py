"""The tensor types of the protocol: how many bytes an element has, and lists of values to bytes and back."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from itertools import chain
from typing import Any

from serve_app.protocol.limits import Limits
from serve_app.protocol.refusals import invalid, too_large
from serve_app.spec.tensors import WIDTHS

BYTES = "BYTES"
SIZES = {**WIDTHS, BYTES: 0}
# Those that Triton ranks for the classification extension.
RANKED = {*SIZES} - {"BOOL", "FP16", "BF16", BYTES}
_CODES = {
    "UINT8": "B",
    "UINT16": "H",
    "UINT32": "I",
    "UINT64": "Q",
    "INT8": "b",
    "INT16": "h",
    "INT32": "i",
    "INT64": "q",
    "FP32": "f",
    "FP64": "d",
}
_FLOATS = {"FP32", "FP64"}
_length = struct.Struct("<I")


def flat(values: list[Any], rank: int) -> list[Any]:
    """Nested lists, at most `rank` deep, as one. Whether what is left are values is for others to see."""
    for _ in range(rank - 1):
        if not values or type(values[0]) is not list:
            break
        if not all(type(each) is list for each in values):
            raise invalid("lists and values stand side by side")
        values = list(chain.from_iterable(values))
    return values


def packed(wire: str, values: Sequence[Any], what: str, limits: Limits) -> bytes:
    """The bytes of a tensor's values as they come out of JSON. Refusal where one is not of the type, or out of range.

    `what` names the tensor for the message.
    """
    kinds = set(map(type, values))
    if wire in _CODES:
        if not kinds <= ({int, float} if wire in _FLOATS else {int}):
            raise _of_wrong_kind(wire, what)
        if wire in _FLOATS and (math.inf in values or -math.inf in values):  # 1e999, for example
            raise _out_of_range(wire, what)
        try:
            return struct.pack(f"<{len(values)}{_CODES[wire]}", *values)
        except (struct.error, OverflowError):
            raise _out_of_range(wire, what) from None
    if wire == "BOOL":
        if not kinds <= {bool}:
            raise _of_wrong_kind(wire, what)
        return bytes(values)
    if wire == BYTES:
        if not kinds <= {str}:
            raise _of_wrong_kind(wire, what)
        try:
            return joined([text.encode() for text in values], what, limits)
        except UnicodeEncodeError:
            raise invalid(f"{what} has a character that is no Unicode text") from None
    raise invalid(f"{what} is {wire}, which JSON has no numbers for; send it as binary data")


def joined(strings: Sequence[bytes], what: str, limits: Limits) -> bytes:
    """A BYTES tensor: each string after its length in four bytes."""
    if len(strings) > limits.strings:
        raise too_large(f"{what} has {len(strings)} strings; at most {limits.strings} are taken")
    return b"".join([part for string in strings for part in (_length.pack(len(string)), string)])


def split(raw: bytes) -> list[bytes]:
    """The strings of a BYTES tensor. ValueError where its lengths do not add up."""
    strings, at, end = [], 0, len(raw)
    while at < end:
        if at + 4 > end:
            raise ValueError("a length is cut off")
        (length,) = _length.unpack_from(raw, at)
        at += 4 + length
        if at > end:
            raise ValueError("a string is cut off")
        strings.append(raw[at - length : at])
    return strings


def check_strings(raw: bytes, elements: int, what: str, limits: Limits) -> None:
    """Refusal unless these are exactly that many strings, each behind its length."""
    if elements > limits.strings:
        raise too_large(f"{what} has {elements} strings; at most {limits.strings} are taken")
    at, end, unpack = 0, len(raw), _length.unpack_from
    for _ in range(elements):
        if at + 4 > end:
            raise invalid(f"{what} should have {elements} strings; its {end} bytes end before")
        at += 4 + unpack(raw, at)[0]
    if at != end:
        raise invalid(f"{what} should have {elements} strings; their lengths make {at} bytes, not {end}")


def listed(wire: str, raw: bytes, what: str) -> list[Any]:
    """A tensor's values for JSON, in a flat list. Refusal where JSON cannot hold them."""
    if wire in _CODES:
        return memoryview(raw).cast(_CODES[wire]).tolist()  # type: ignore[call-overload,no-any-return]
    if wire == "BOOL":
        return memoryview(raw).cast("?").tolist()
    if wire == BYTES:
        try:
            return [string.decode() for string in split(raw)]
        except UnicodeDecodeError:
            raise invalid(f"{what} has bytes that are no text; ask for it with binary_data") from None
    raise invalid(f"{what} is {wire}, which JSON has no numbers for; ask for it with binary_data")


def _of_wrong_kind(wire: str, what: str) -> Exception:
    wanted = {"BOOL": "true or false", BYTES: "strings", "FP32": "numbers", "FP64": "numbers"}.get(
        wire, "whole numbers"
    )
    return invalid(f"{what} is {wire}: its data are {wanted}, in lists no deeper than its shape")


def _out_of_range(wire: str, what: str) -> Exception:
    return invalid(f"{what} has a value that is out of the range of {wire}")
