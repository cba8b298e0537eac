"""Finds a machine-readable zone among lines of OCR text and undoes what recognition did to it.

Three kinds of repair, the first two of which need no check digit to be right afterwards:

- characters: a field whose alphabet lacks a character gets the one it is mistaken for (O in a date is 0, 0 in a name
  is O);
- length: runs of fillers come out too short or too long, and characters at a line's edge or doubled ones get lost;
- mending: where a check digit still fails, O/0, I/1, B/8 and the like may be confused in a field that has both.

A check digit alone cannot tell a slip from a changed character: of n possible repairs one satisfies it by chance with
probability n/10. So a field is mended only where that makes it what the printed text says, letter for letter, and a
length is repaired within or before the document number only to a number that is printed as well. Digits are never
exchanged for digits. All else stays as read, and invalid.
"""

from __future__ import annotations

import itertools
import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from serve_app.kyc import mrz
from serve_app.kyc.answers import Mrz
from serve_app.kyc.mrz import FILLER

# Signs that stand for a character of the zone: angle quotes, brackets, the vertical bar, circles, the times sign.
_SIGNS = str.maketrans(
    dict.fromkeys("\u2039\u3008\u2264\u227a\u2220\u304f([{", FILLER)
    | dict.fromkeys("|l!)]}\u4e28", "I")
    | dict.fromkeys("\u25cb\u3007\u25ef\u00b0", "O")
    | {"\u00d7": "X"}
)
_DOUBLE = re.compile("[«《]")
_TO_DIGIT = dict(zip("OQDUILZASGTB", "000011245678", strict=True))
_TO_LETTER = dict(zip("01245678", "OIZASGTB", strict=True))
_FOLD = str.maketrans("OQDILZSGB", "000112568")
_FILLER_LIKE = "KCES"  # letters that a filler is read as
_LOST_FILLERS, _LOST, _EXTRA = 14, 2, 3
_SHORTEST_PRINTED = 5
_MOST_PLACES = 4


@dataclass(frozen=True)
class _Fit:
    """A line of the right length, what that cost, and from which position characters stand elsewhere than as read."""

    text: str
    cost: int
    moved_from: int


@dataclass(frozen=True)
class _Reading:
    lines: tuple[str, ...]
    changes: int
    resized: bool
    number_moved: bool


def find(rows: Sequence[str]) -> Mrz | None:
    """The zone in `rows`, one text per printed row from the top; None where there is none.

    Of all places and repairs the one with the most right check digits is taken, then the one that changes least.
    """
    cleaned = [_clean(row) for row in rows]
    candidates = [
        (-sum(zone.checks.values()), reading.changes, format, reading.lines, printed)
        for format, layout in mrz.LAYOUTS.items()
        for first, readings in _places(layout, cleaned)
        for printed in [_Printed.of([*rows[:first], *rows[first + layout.lines :]])]
        for reading in readings
        for zone in [mrz.parse(format, reading.lines)]
        if _plausible(zone, reading) and _number_stands(zone, reading, printed)
    ]
    if not candidates:
        return None
    _, changes, format, read, printed = min(candidates, key=lambda candidate: candidate[:2])
    lines, mended = _mend(format, read, printed)
    zone = mrz.parse(format, lines)
    return Mrz(format=format, lines=list(lines), valid=zone.valid, checks=zone.checks, corrected=changes, mended=mended)


def _places(layout: mrz.Layout, rows: Sequence[tuple[str, int]]) -> Iterator[tuple[int, list[_Reading]]]:
    """Where a zone may begin and how it may read there, from the bottom up, where documents have it.

    No more than a few places: a page full of such rows is no document, and each place takes time.
    """
    places = (
        (first, readings)
        for first in reversed(range(len(rows) - layout.lines + 1))
        if (readings := list(_readings(layout, rows[first : first + layout.lines])))
    )
    return itertools.islice(places, _MOST_PLACES)


def _clean(row: str) -> tuple[str, int]:
    """The row without spaces and in the zone's characters as far as signs look like them, and how many did not."""
    text = "".join(_DOUBLE.sub(FILLER * 2, row).split())
    clean = unicodedata.normalize("NFKC", text.translate(_SIGNS)).upper()
    return clean, sum(a != b for a, b in zip(text.upper(), clean, strict=False))


@dataclass(frozen=True)
class _Printed:
    """The rows that are not the zone's: letters and digits only, exactly and with those that are confused as one."""

    exact: list[str]
    folded: list[str]

    @classmethod
    def of(cls, rows: Sequence[str]) -> _Printed:
        exact = [_plain(row) for row in rows]
        return cls(exact, [row.translate(_FOLD) for row in exact])

    def versions(self, text: str) -> set[str]:
        """What is printed where `text` would be, but for confused characters: pieces of the same length."""
        folded = _plain(text).translate(_FOLD)
        return {
            exact[match.start() : match.start() + len(folded)]
            for exact, row in zip(self.exact, self.folded, strict=True)
            for match in re.finditer(f"(?={re.escape(folded)})", row)
            if len(folded) >= _SHORTEST_PRINTED
        }


def _plain(text: str) -> str:
    return "".join(character for character in text.upper() if character.isalnum())


def _plausible(zone: mrz.Zone, reading: _Reading) -> bool:
    """Whether dates, states and document type have their places, and, where a line was made longer or shorter or the
    type got lost, one check digit of a field holds."""
    holds = any(right for name, right in zone.checks.items() if name != "composite")
    type_lost = reading.lines[0].startswith(FILLER * 2)
    return (
        sum(c.isdigit() for c in zone.date_of_birth + zone.date_of_expiry) >= 10
        and all(re.fullmatch("[A-Z]+", state) for state in (zone.issuing_state, zone.nationality))
        and (type_lost or reading.lines[0][0] in ("P" if zone.format == "TD3" else "ACI"))
        and (holds or not (reading.resized or type_lost))
    )


def _number_stands(zone: mrz.Zone, reading: _Reading, printed: _Printed) -> bool:
    moved_to_fit = reading.number_moved and zone.checks["document_number"]
    return not moved_to_fit or bool(printed.versions(zone.document_number))


def _readings(layout: mrz.Layout, read: Sequence[tuple[str, int]]) -> Iterator[_Reading]:
    """What the zone may have been; nothing where a line is too long, too short or too foreign for the layout."""
    spans = {field.name: field.span for field in layout.fields}
    names, number = spans["names"][0], spans["document_number"]
    if not all(_shaped(text, layout, line == names) for line, (text, _) in enumerate(read)):
        return
    choices = [
        [_fit_names(text, layout)] if line == names else list(_fit(text, layout.width))
        for line, (text, _) in enumerate(read)
    ]
    signs = sum(count for _, count in read)
    for fits in itertools.product(*choices):
        lines, changed = _to_alphabets(layout, [fit.text for fit in fits])
        yield _Reading(
            lines=tuple(lines),
            changes=signs + changed + sum(fit.cost for fit in fits),
            resized=any(len(text) != layout.width for text, _ in read),
            number_moved=fits[number[0]].moved_from <= number[2],
        )


def _shaped(text: str, layout: mrz.Layout, names: bool) -> bool:
    foreign = sum(character not in mrz.CHARACTERS["any"] for character in text)
    long_enough = FILLER * 2 in text if names else len(text) >= layout.width - _LOST_FILLERS
    return long_enough and len(text) <= layout.width + _EXTRA and foreign <= 2


def _fit_names(text: str, layout: mrz.Layout) -> _Fit:
    """A line that ends in names: its trailing fillers can be as many as it takes.

    Where it begins with the document's type, a filler in front says that the type's first letter got lost; a passport's
    can only have been P.
    """
    lead = ""
    if layout.lines == 2 and text.startswith(FILLER):
        lead = "P" if layout.format == "TD3" else FILLER
    fitted = (lead + text).rstrip(FILLER).ljust(layout.width, FILLER)[: layout.width]
    return _Fit(fitted, len(lead) + abs(len(lead + text) - layout.width), layout.width)


def _fit(text: str, width: int) -> Iterator[_Fit]:
    """`text` brought to `width` in every way that recognition could have lost or added characters."""
    lack = width - len(text)
    runs = [run.span() for run in re.finditer(f"{FILLER}+", text)]
    if lack == 0:
        options = [_Fit(text, 0, width)]
    elif lack > 0:
        options = [_Fit(text.ljust(width, FILLER), lack, len(text))]
        options += [_Fit(text[:start] + FILLER * lack + text[start:], lack, start) for start, _ in runs]
        if lack <= _LOST:
            options.append(_Fit(text.rjust(width, FILLER), lack + 1, 0))
        if lack == 1:  # CTC takes a doubled character for one
            options += [_Fit(text[:at] + text[at] + text[at:], 3, at) for at in range(len(text))]
    else:
        options = [_Fit(text[:width], 1 - lack, width), _Fit(text[-width:], 1 - lack, 0)]
        options += [_Fit(text[: b + lack] + text[b:], -lack, a) for a, b in runs if b - a > -lack]
    for fit in options:
        yield fit
        quiet = re.sub(rf"(?<={FILLER * 2})[{_FILLER_LIKE}](?={FILLER}|$)", FILLER, fit.text)
        if quiet != fit.text:
            yield _Fit(quiet, fit.cost + sum(a != b for a, b in zip(fit.text, quiet, strict=True)), fit.moved_from)


def _to_alphabets(layout: mrz.Layout, lines: Sequence[str]) -> tuple[list[str], int]:
    """Every character in its field's alphabet where it has a counterpart there, and how many were changed."""
    zone = [list(line) for line in lines]
    for (line, position), alphabet in layout.alphabets().items():
        character = zone[line][position]
        if character not in mrz.CHARACTERS[alphabet]:
            table = _TO_LETTER if alphabet == "letters" else _TO_DIGIT
            zone[line][position] = table.get(character, character)
    if zone[0][1] == "K":  # no state uses it as the second letter of a document's type
        zone[0][1] = FILLER
    for field in layout.fields:
        if field.name == "names":
            line, start, stop = field.span
            zone[line][start:stop] = _quiet_tail("".join(zone[line][start:stop]))
    changed = sum(a != b for old, new in zip(lines, zone, strict=True) for a, b in zip(old, new, strict=True))
    return ["".join(line) for line in zone], changed


def _quiet_tail(names: str) -> str:
    """Nothing follows the given names but fillers: a letter or sign that looks like one there is one."""
    surname, separator, given = names.partition(FILLER * 2)
    given, end, tail = given.partition(FILLER * 2)
    return surname + separator + given + end + re.sub(f"[{_FILLER_LIKE}]|[^A-Z]", FILLER, tail)


def _mend(format: mrz.Format, lines: tuple[str, ...], printed: _Printed) -> tuple[tuple[str, ...], int]:
    """The lines with failing check digits made right where that is certain, and how many characters it took."""
    layout = mrz.LAYOUTS[format]
    own = {span: check.name for check in layout.checks for span in check.over if len(check.over) == 1}
    mended = 0
    for field in layout.fields:
        line, start, stop = field.span
        text = lines[line][start:stop]
        check = own.get(field.span, "composite")
        if field.alphabet != "any" or FILLER in text.rstrip(FILLER) or mrz.parse(format, lines).checks[check]:
            continue
        solutions = [
            candidate
            for version in printed.versions(text)
            for changed in [lines[line][:start] + version.ljust(stop - start, FILLER) + lines[line][stop:]]
            for candidate in [(*lines[:line], changed, *lines[line + 1 :])]
            if mrz.parse(format, candidate).checks[check]
        ]
        if len(solutions) == 1:
            mended += sum(a != b for a, b in zip(lines[line], solutions[0][line], strict=True))
            lines = solutions[0]
    return lines, mended
