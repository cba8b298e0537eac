"""Durations, sizes and shares as the spec writes them: always with a unit."""

from __future__ import annotations

import re
from datetime import timedelta
from fractions import Fraction
from typing import Annotated, TypeVar

from pydantic import AfterValidator, BeforeValidator, WithJsonSchema

from serve_app.spec.part import invalid, shown

# Each unit in the smallest one, and how many digits a number of it may have: decades, and petabytes.
_DURATION_UNITS = {
    "us": (1, 15),
    "ms": (1_000, 12),
    "s": (1_000_000, 9),
    "min": (60_000_000, 7),
    "h": (3_600_000_000, 5),
}
_SECOND_UNITS = {"s": (1, 9), "min": (60, 7), "h": (3_600, 5)}
_SIZE_UNITS = {"B": (1, 15), "KiB": (2**10, 12), "MiB": (2**20, 9), "GiB": (2**30, 6)}
_DECIMALS = 3
_TOO_LARGE = "it would be refused, or become another number"
_TOO_FINE = "what is finer would be cut off"
_QUANTITY = re.compile(r"(?P<number>[0-9]+(?:\.(?P<decimals>[0-9]+))?) *(?P<unit>[A-Za-z]+)")
_PERCENT = re.compile(r" *([0-9]{1,2}(?:\.[0-9]{1,3})?|100(?:\.0{1,3})?) *% *")
# Other names of the units, and those that are near: a megabyte is not quite a mebibyte.
_MEANT = {
    **dict.fromkeys(("usec", "µs", "microsecond", "microseconds"), "us"),
    **dict.fromkeys(("msec", "millis", "millisecond", "milliseconds"), "ms"),
    **dict.fromkeys(("sec", "secs", "second", "seconds"), "s"),
    **dict.fromkeys(("m", "mins", "minute", "minutes"), "min"),
    **dict.fromkeys(("hr", "hrs", "hour", "hours"), "h"),
    **dict.fromkeys(("b", "byte", "bytes"), "B"),
    **dict.fromkeys(("k", "ki", "kb", "kib"), "KiB"),
    **dict.fromkeys(("mi", "mb", "mib"), "MiB"),
    **dict.fromkeys(("g", "gi", "gb", "gib"), "GiB"),
}
_Quantity = TypeVar("_Quantity", timedelta, float)


def _parse(
    text: object, units: dict[str, tuple[int, int]], what: str, example: str, most_decimals: int = _DECIMALS
) -> int:
    """The quantity in the smallest unit, of which a rest is cut off; ValueError says how to write it."""
    kind = what.rsplit(maxsplit=1)[-1]
    known = ", ".join(units)
    if not isinstance(text, str):
        raise invalid(kind, f"{shown(text)} has no unit; write {what} with one of {known}, as {example}")
    match = _QUANTITY.fullmatch(text.strip(" "))
    if match is None or match["unit"] not in units:
        example = _in_unit(text, units) or example
        raise invalid(kind, f"{shown(text)} is not {what}; write a number and one of {known}, as {example}")
    factor, digits = units[match["unit"]]
    whole, decimals = match["number"].partition(".")[0], match["decimals"] or ""
    if len(whole) > digits:
        raise invalid(kind, f"{shown(text)} is more than both engines can hold; write a smaller one", _TOO_LARGE)
    if len(decimals) > (most_decimals if factor > 1 else 0):
        smallest = next(iter(units))
        few = f"at most {most_decimals} decimals, and none of {smallest}" if most_decimals else "no decimals"
        raise invalid(kind, f"{shown(text)} is finer than the smallest unit, {smallest}; write {few}", _TOO_FINE)
    return int(Fraction(match["number"]) * factor)


def _in_unit(text: str, units: dict[str, tuple[int, int]]) -> str | None:
    """The text with the unit that its own probably means, or None."""
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)[ _]*([A-Za-zµ]+)", text.strip())
    unit = _MEANT.get(match[2].lower()) if match else None
    if match is None or unit not in units:
        unit = "MiB" if match and match[2] == "M" and "MiB" in units else None
    return f"{match[1]}{unit}" if match and unit else None


def parse_duration(text: object) -> timedelta:
    """`90ms` → timedelta. ValueError for a bare number or an unknown unit."""
    if isinstance(text, timedelta):  # made by the program, not written in a spec
        return text
    return timedelta(microseconds=_parse(text, _DURATION_UNITS, "a duration", "90ms or 8s"))


def parse_seconds(text: object) -> timedelta:
    """`90s` → timedelta, for what is counted in whole seconds. ValueError for anything finer."""
    if isinstance(text, timedelta):
        return text
    return timedelta(seconds=_parse(text, _SECOND_UNITS, "a duration in whole seconds", "90s", most_decimals=0))


def parse_size(text: object) -> int:
    """`10MiB` → bytes. ValueError for a bare number or an unknown unit."""
    return _parse(text, _SIZE_UNITS, "a size", "10MiB")


def parse_percent(text: object) -> float:
    """`20%` → 20.0. ValueError for a bare number and for more than 100 %."""
    match = _PERCENT.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        raise invalid("percentage", f"{shown(text)} is not a percentage; write a number up to 100 and its sign, as 20%")
    return float(match[1])


def _more_than_nothing(quantity: _Quantity) -> _Quantity:
    if not quantity:
        raise invalid("nothing", "it is nothing at all; write more than 0")
    return quantity


def _whole(percent: float) -> float:
    if not percent.is_integer():
        raise invalid("percentage", f"{percent:g}% is not whole; write whole percent, as 25%")
    return percent


def microseconds(duration: timedelta) -> int:
    return duration // timedelta(microseconds=1)


def show_duration(duration: timedelta) -> str:
    """The duration as the spec would write it, in the largest unit that keeps it whole."""
    exact = microseconds(duration)
    if not exact:
        return "0s"
    unit = next((u for u in ("h", "min", "s", "ms") if exact % _DURATION_UNITS[u][0] == 0), "us")
    return f"{exact // _DURATION_UNITS[unit][0]}{unit}"


def show_size(size: int) -> str:
    """The bytes as the spec would write them, in the largest unit that keeps them whole."""
    unit = next((u for u in ("GiB", "MiB", "KiB") if size and size % _SIZE_UNITS[u][0] == 0), "B")
    return f"{size // _SIZE_UNITS[unit][0]}{unit}"


def _quantity(units: dict[str, tuple[int, int]], most_decimals: int = _DECIMALS) -> dict[str, str]:
    """The JSON Schema of what `_parse` takes."""
    decimals = rf"(?:\.[0-9]{{1,{most_decimals}}})?" if most_decimals else ""
    numbers = [
        rf"[0-9]{{1,{digits}}}" + (decimals if factor > 1 else "") + f" *{unit}"
        for unit, (factor, digits) in units.items()
    ]
    return {"type": "string", "pattern": f"^ *(?:{'|'.join(numbers)}) *$"}


DURATION_SCHEMA = _quantity(_DURATION_UNITS)
SIZE_SCHEMA = _quantity(_SIZE_UNITS)
_PERCENT_SCHEMA = {"type": "string", "title": "a percentage, as 20%", "pattern": f"^{_PERCENT.pattern}$"}
_SOMETHING = {"not": {"pattern": "^[ 0.]+[A-Za-z%]"}}

Duration = Annotated[timedelta, BeforeValidator(parse_duration), WithJsonSchema(DURATION_SCHEMA)]
Size = Annotated[int, BeforeValidator(parse_size), WithJsonSchema(SIZE_SCHEMA)]
Percent = Annotated[float, BeforeValidator(parse_percent), WithJsonSchema(_PERCENT_SCHEMA)]
_SECONDS_SCHEMA = {**_quantity(_SECOND_UNITS, 0), "title": "a duration in whole seconds, as 90s"}
Seconds = Annotated[timedelta, BeforeValidator(parse_seconds), WithJsonSchema(_SECONDS_SCHEMA)]
SomeSeconds = Annotated[Seconds, AfterValidator(_more_than_nothing), WithJsonSchema({**_SECONDS_SCHEMA, **_SOMETHING})]
SomeSize = Annotated[Size, AfterValidator(_more_than_nothing), WithJsonSchema({**SIZE_SCHEMA, **_SOMETHING})]
SomeTime = Annotated[Duration, AfterValidator(_more_than_nothing), WithJsonSchema({**DURATION_SCHEMA, **_SOMETHING})]
WholePercent = Annotated[
    Percent,
    AfterValidator(_whole),
    WithJsonSchema(
        {
            "type": "string",
            "title": "a whole percentage, as 25%",
            "pattern": r"^ *(?:[0-9]{1,2}|100)(?:\.0{1,3})? *% *$",
        }
    ),
]
SomePercent = Annotated[Percent, AfterValidator(_more_than_nothing), WithJsonSchema({**_PERCENT_SCHEMA, **_SOMETHING})]
