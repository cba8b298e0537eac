"""Durations and sizes as the spec writes them: always with a unit."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Annotated

from pydantic import BeforeValidator

_DURATION_UNITS = {"us": 1, "ms": 1_000, "s": 1_000_000, "min": 60_000_000, "h": 3_600_000_000}
_SIZE_UNITS = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
_QUANTITY = re.compile(r"(?P<number>\d+(?:\.\d+)?)\s*(?P<unit>[A-Za-z]+)")


def _parse(text: object, units: dict[str, int], what: str, example: str) -> int:
    """The quantity in the smallest unit; ValueError says how to write it."""
    known = ", ".join(units)
    if not isinstance(text, str):
        raise ValueError(f"{text!r} has no unit; write {what} with one of {known}, as {example}")
    match = _QUANTITY.fullmatch(text.strip())
    if match is None or match["unit"] not in units:
        raise ValueError(f"{text!r} is not {what}; write a number and one of {known}, as {example}")
    exact = float(match["number"]) * units[match["unit"]]
    if exact != int(exact):
        raise ValueError(f"{text!r} is finer than the smallest unit, {next(iter(units))}; write a whole number of it")
    return int(exact)


def parse_duration(text: object) -> timedelta:
    """`90ms` → timedelta. ValueError for a bare number or an unknown unit."""
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


Duration = Annotated[timedelta, BeforeValidator(parse_duration)]
Size = Annotated[int, BeforeValidator(parse_size)]
