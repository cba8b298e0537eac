"""Durations and sizes as the spec writes them: always with a unit."""

from __future__ import annotations

import re
from datetime import timedelta
from fractions import Fraction
from typing import Annotated

from pydantic import BeforeValidator, WithJsonSchema

from serve_app.spec.part import invalid

_DURATION_UNITS = {"us": 1, "ms": 1_000, "s": 1_000_000, "min": 60_000_000, "h": 3_600_000_000}
_SIZE_UNITS = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
# A century in microseconds, three petabytes in bytes.
_MOST = 3_155_760_000_000_000
_QUANTITY = re.compile(r"(?P<number>\d+(?:\.\d+)?)\s*(?P<unit>[A-Za-z]+)")


def _parse(text: object, units: dict[str, int], what: str, example: str) -> int:
    """The quantity in the smallest unit; ValueError says how to write it."""
    kind = what.rsplit(maxsplit=1)[-1]
    known = ", ".join(units)
    if not isinstance(text, str):
        raise invalid(kind, f"{text!r} has no unit; write {what} with one of {known}, as {example}")
    match = _QUANTITY.fullmatch(text.strip())
    if match is None or match["unit"] not in units:
        raise invalid(kind, f"{text!r} is not {what}; write a number and one of {known}, as {example}")
    exact = Fraction(match["number"]) * units[match["unit"]]
    if exact > _MOST:
        raise invalid(kind, f"{text!r} is more than both engines can hold; write a smaller one")
    if exact.denominator != 1:
        raise invalid(
            kind, f"{text!r} is finer than the smallest unit, {next(iter(units))}; write a whole number of it"
        )
    return int(exact)


def parse_duration(text: object) -> timedelta:
    """`90ms` → timedelta. ValueError for a bare number or an unknown unit."""
    if isinstance(text, timedelta):  # made by the program, not written in a spec
        return text
    return timedelta(microseconds=_parse(text, _DURATION_UNITS, "a duration", "90ms or 8s"))


def parse_size(text: object) -> int:
    """`10MiB` → bytes. ValueError for a bare number or an unknown unit."""
    return _parse(text, _SIZE_UNITS, "a size", "10MiB")


def microseconds(duration: timedelta) -> int:
    return duration // timedelta(microseconds=1)


def show_duration(duration: timedelta) -> str:
    """The duration as the spec would write it, in the largest unit that keeps it whole."""
    exact = microseconds(duration)
    unit = next((u for u in ("h", "min", "s", "ms") if exact and exact % _DURATION_UNITS[u] == 0), "us")
    return f"{exact // _DURATION_UNITS[unit]}{unit}"


def _quantity(units: dict[str, int]) -> WithJsonSchema:
    return WithJsonSchema({"type": "string", "pattern": rf"^\s*\d+(\.\d+)?\s*({'|'.join(units)})\s*$"})


Duration = Annotated[timedelta, BeforeValidator(parse_duration), _quantity(_DURATION_UNITS)]
Size = Annotated[int, BeforeValidator(parse_size), _quantity(_SIZE_UNITS)]
