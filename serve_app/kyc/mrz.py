"""Machine-readable zones by ICAO Doc 9303: their layouts, their check digits, and what exact lines say.

Layouts are those of part 4 (TD3), part 5 (TD1) and part 6 (TD2), check digits those of part 3, section 4.9.
`mrz_correction` makes exact lines from OCR, `mrz_writing` from what they shall say.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Format = Literal["TD1", "TD2", "TD3"]
Alphabet = Literal["letters", "digits", "digits or filler", "any"]
Span = tuple[int, int, int]  # line, first character, one past the last, counted from 0

FILLER = "<"
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
DIGITS = "0123456789"
CHARACTERS: dict[Alphabet, frozenset[str]] = {
    "letters": frozenset(LETTERS + FILLER),
    "digits": frozenset(DIGITS),
    "digits or filler": frozenset(DIGITS + FILLER),
    "any": frozenset(DIGITS + LETTERS + FILLER),
}
_VALUES = {character: value for value, character in enumerate(DIGITS + LETTERS)} | {FILLER: 0}
_WEIGHTS = (7, 3, 1)


@dataclass(frozen=True)
class Field:
    name: str
    span: Span
    alphabet: Alphabet


@dataclass(frozen=True)
class Check:
    """The check digit at `digit` (line, position) over the spans put end to end."""

    name: str
    digit: tuple[int, int]
    over: tuple[Span, ...]
    alphabet: Alphabet = "digits"


@dataclass(frozen=True)
class Layout:
    format: Format
    lines: int
    width: int
    fields: tuple[Field, ...]
    checks: tuple[Check, ...]

    def alphabets(self) -> dict[tuple[int, int], Alphabet]:
        """The alphabet of every position (line, character)."""
        positions: dict[tuple[int, int], Alphabet] = {}
        for field in self.fields:
            line, start, stop = field.span
            positions |= {(line, position): field.alphabet for position in range(start, stop)}
        return positions | {check.digit: check.alphabet for check in self.checks}


def _two_lines(format: Format, width: int) -> Layout:
    """TD2 and TD3 share all but their width and the check digit that TD3 gives to the optional data."""
    optional = (1, 28, 42 if format == "TD3" else 35)
    number, birth, expiry = (1, 0, 9), (1, 13, 19), (1, 21, 27)
    checks = (
        Check("document_number", (1, 9), (number,), "digits" if format == "TD3" else "digits or filler"),
        Check("date_of_birth", (1, 19), (birth,)),
        Check("date_of_expiry", (1, 27), (expiry,)),
        *((Check("personal_number", (1, 42), (optional,), "digits or filler"),) if format == "TD3" else ()),
        Check("composite", (1, width - 1), ((1, 0, 10), (1, 13, 20), (1, 21, width - 1))),
    )
    fields = (
        Field("document_type", (0, 0, 2), "letters"),
        Field("issuing_state", (0, 2, 5), "letters"),
        Field("names", (0, 5, width), "letters"),
        Field("document_number", number, "any"),
        Field("nationality", (1, 10, 13), "letters"),
        Field("date_of_birth", birth, "digits or filler"),
        Field("sex", (1, 20, 21), "letters"),
        Field("date_of_expiry", expiry, "digits or filler"),
        Field("optional", optional, "any"),
    )
    return Layout(format, 2, width, fields, checks)


_TD1 = Layout(
    "TD1",
    3,
    30,
    (
        Field("document_type", (0, 0, 2), "letters"),
        Field("issuing_state", (0, 2, 5), "letters"),
        Field("document_number", (0, 5, 14), "any"),
        Field("optional", (0, 15, 30), "any"),
        Field("date_of_birth", (1, 0, 6), "digits or filler"),
        Field("sex", (1, 7, 8), "letters"),
        Field("date_of_expiry", (1, 8, 14), "digits or filler"),
        Field("nationality", (1, 15, 18), "letters"),
        Field("optional_2", (1, 18, 29), "any"),
        Field("names", (2, 0, 30), "letters"),
    ),
    (
        Check("document_number", (0, 14), ((0, 5, 14),), "digits or filler"),
        Check("date_of_birth", (1, 6), ((1, 0, 6),)),
        Check("date_of_expiry", (1, 14), ((1, 8, 14),)),
        Check("composite", (1, 29), ((0, 5, 30), (1, 0, 7), (1, 8, 15), (1, 18, 29))),
    ),
)
LAYOUTS: dict[Format, Layout] = {"TD1": _TD1, "TD2": _two_lines("TD2", 36), "TD3": _two_lines("TD3", 44)}


def check_digit(text: str) -> str:
    """The check digit of `text` (0 to 9, A to Z, <): weights 7, 3, 1, modulo 10 (9303 part 3, section 4.9)."""
    return str(sum(_VALUES[character] * _WEIGHTS[i % 3] for i, character in enumerate(text)) % 10)


@dataclass(frozen=True)
class Zone:
    """What a machine-readable zone says. Dates are YYMMDD as printed (`<` for an unknown part), fillers are removed."""

    format: Format
    document_type: str
    issuing_state: str
    document_number: str
    nationality: str
    date_of_birth: str
    sex: Literal["M", "F", "X"] | None
    date_of_expiry: str
    surname: str
    given_names: str
    personal_number: str
    checks: dict[str, bool]

    @property
    def valid(self) -> bool:
        return all(self.checks.values())


def parse(format: Format, lines: Sequence[str]) -> Zone:
    """Read a zone whose lines have the format's number and width.

    A check holds where the digit is right and the field has only characters of its alphabet.
    Raises ValueError where number or width of the lines is another.
    """
    layout = LAYOUTS[format]
    if [len(line) for line in lines] != [layout.width] * layout.lines:
        raise ValueError(f"a {format} zone has {layout.lines} lines of {layout.width} characters")
    raw = {field.name: lines[field.span[0]][field.span[1] : field.span[2]] for field in layout.fields}
    number, rest = _document_number(raw, _at(lines, layout.checks[0].digit))
    surname, _, given = raw["names"].partition(FILLER * 2)
    return Zone(
        format=format,
        document_type=raw["document_type"].strip(FILLER),
        issuing_state=raw["issuing_state"].strip(FILLER),
        document_number=number.strip(FILLER),
        nationality=raw["nationality"].strip(FILLER),
        date_of_birth=raw["date_of_birth"],
        sex={"M": "M", "F": "F", FILLER: "X", "X": "X"}.get(raw["sex"]),  # type: ignore[arg-type]
        date_of_expiry=raw["date_of_expiry"],
        surname=words(surname),
        given_names=words(given),
        personal_number=words(rest + FILLER + raw.get("optional_2", "")),
        checks={check.name: _holds(check, layout, lines, raw) for check in layout.checks},
    )


def _at(lines: Sequence[str], position: tuple[int, int]) -> str:
    return lines[position[0]][position[1]]


def words(text: str) -> str:
    return " ".join(text.replace(FILLER, " ").split())


def _long_number(raw: dict[str, str], digit: str) -> tuple[str, str] | None:
    """Number and check digit where TD1 and TD2 continue the number in the optional data (9303 part 5, note j)."""
    tail = raw["optional"].split(FILLER, 1)[0]
    if digit != FILLER or len(tail) < 2:
        return None
    return raw["document_number"] + tail[:-1], tail[-1]


def _document_number(raw: dict[str, str], digit: str) -> tuple[str, str]:
    """The document number and what remains of the optional data."""
    long = _long_number(raw, digit)
    if long is None:
        return raw["document_number"], raw["optional"]
    return long[0], raw["optional"].partition(FILLER)[2]


def _holds(check: Check, layout: Layout, lines: Sequence[str], raw: dict[str, str]) -> bool:
    digit = _at(lines, check.digit)
    text = "".join(lines[line][start:stop] for line, start, stop in check.over)
    if check.name == "document_number" and (long := _long_number(raw, digit)) is not None:
        text, digit = long
    elif digit == FILLER:  # only TD3's optional data may leave its digit out, and only where it is empty
        return check.name == "personal_number" and not text.strip(FILLER)
    alphabet = next(
        (CHARACTERS[field.alphabet] for field in layout.fields if (field.span,) == check.over), _VALUES.keys()
    )
    return set(text) <= alphabet and digit in DIGITS and check_digit(text) == digit


def birth_date(yymmdd: str, today: datetime.date) -> datetime.date | None:
    """The latest such day that is not after `today`: nobody is born in the future, and of two centuries the younger
    person is taken, so that somebody of 100 years or more reads a century too young. None where a part is unknown or
    there is no such day."""
    return max((day for day in _days(yymmdd, today) if day <= today), default=None)


def expiry_date(yymmdd: str, today: datetime.date) -> datetime.date | None:
    """The such day nearest to `today`: documents are valid for ten years or so, never for fifty."""
    return min(_days(yymmdd, today), key=lambda day: abs(day - today), default=None)


def _days(yymmdd: str, today: datetime.date) -> list[datetime.date]:
    if len(yymmdd) != 6 or not set(yymmdd) <= CHARACTERS["digits"]:
        return []
    year, month, day = int(yymmdd[:2]), int(yymmdd[2:4]), int(yymmdd[4:])
    days = []
    for century in (today.year // 100 - 1, today.year // 100, today.year // 100 + 1):
        try:
            days.append(datetime.date(century * 100 + year, month, day))
        except ValueError:
            continue
    return days
