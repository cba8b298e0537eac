"""Which line of YAML is indented wrongly, where that follows from what the spec has at each place."""

from __future__ import annotations

import re
from collections.abc import Iterator

from serve_app.spec.findings import Place
from serve_app.spec.vocabulary import is_list_at, is_written_short, part_at
from serve_app.spec.yaml_lines import Line, Lines
from serve_app.spec.yaml_parser import Level

_STRAY = re.compile(r"( *)([^\s\-#?\[\]{},\"'])[ ]+((?:- +)*[\w./-]+:(?=\s|$)|- )")
_FIRST_KEY = re.compile(r"\{\s*([\w.-]+)\s*:")


def without_stray(lines: Lines, number: int, open_lines: list[Line]) -> tuple[int, str, str] | None:
    """The column of a single character among the spaces before a key, the key, and the line without that character.

    So it is where the key is at the column of a mapping or list that is open there, and the character is not.
    `open_lines`: as of `opened`, for the lines above.
    """
    found = _STRAY.match(lines.texts[number])
    if found is None:
        return None
    column, indent = found.start(3), found.start(2)
    above = next((each for each in reversed(open_lines) if each.indent <= column), None)
    if above is None:
        return None
    is_sibling = column in (above.indent, above.column)
    is_first = open_lines[-1] is above and not above.value and indent <= above.indent
    if not is_sibling and not (is_first and above.key is not None):
        return None
    below = next((each for _, each in lines.below(number + 1)), None)
    if not is_sibling and below is not None and above.indent < below.indent < column:
        return None
    key = found[3].strip(" -:")
    holder = part_at(_place_above(open_lines, column))
    is_word = holder is None or found[3].startswith("-") or key in holder.model_fields
    if not is_word or _has_any_key(_place_above(open_lines, indent)):
        return None
    return indent, key, f"{found[1]} {lines.texts[number][indent + 1 :]}"


def _has_any_key(place: Place) -> bool:
    """Whether the keys at a place are neither words of the spec nor names, so that they may hold spaces."""
    return part_at(place) is None and part_at((*place, "name")) is None


def _place_above(open_lines: list[Line], column: int) -> Place:
    """The way to the mapping that an entry at a column would be in, by the lines that are open above it."""
    place: list[str | int] = []
    for each in open_lines:
        if each.indent < column:
            place += [0] if each.dashes else []
            place += [each.word] if each.key is not None and each.column < column else []
    return tuple(place)


def opened(open_lines: list[Line], line: Line) -> list[Line]:
    """The lines that are open once `line` has begun: it, and those that its mapping or list stands in."""
    least = line.indent + (1 if line.dashes else 0)
    return [each for each in open_lines if each.indent + bool(each.dashes) < least] + [line]


def meant_column(lines: Lines, level: Level | None, number: int, first: int) -> int | None:
    """The column at which line `first` was meant to be, if it is why line `number` below it fits nowhere.

    So it is where it interrupts a mapping that has it, or begins one, and has no place where it stands. What is between
    the two lines is below it, or shares its indentation and its mistake. `level` is the innermost one above it.
    """
    line, column = lines[number], lines[first].indent
    between = [each for _, each in lines.below(first, number)]
    moved = [each for each in between if each.indent == column]
    if any(each.dashes or each.key is None or each.tab for each in (line, *moved)):
        return None
    holder = next((each for each in _mappings(level) if each.column <= column), None)
    blocks = _blocks(lines, level, line, first)
    if holder is None or holder.column != column or not blocks or not _takes(blocks[-1][1], line):
        return None
    outside, nearest = _place(lines, holder), blocks[-1][0]
    within = min((each.indent for each in between if each.indent > column), default=blocks[0][0] + 1)
    fitting = [at for at, place in blocks if within > at and all(_takes(place, each) for each in moved)]
    stands_well = all(_takes(outside, each) for each in moved)
    if stands_well and _takes(outside, line) and not _empty_key(lines, level, first):
        return None
    return fitting[0] if fitting else None if stands_well or within <= nearest else nearest


def _blocks(lines: Lines, level: Level | None, line: Line, first: int) -> list[tuple[int, Place]]:
    """The mappings that line `first` ends, and the one that it should begin: the columns and places, inside out.

    The last one is that which `line` goes on.
    """
    found = [(each.column, _place(lines, each)) for each in _mappings(level) if each.column >= line.indent]
    if level is not None and (key := _empty_key(lines, level, first)):
        column = max(line.indent, level.column + 1)
        found.insert(0, (column, (*_place(lines, level), key)))
    return found if found and (found[-1][0] == line.indent) else []


def _empty_key(lines: Lines, level: Level | None, first: int) -> str | None:
    """The key above line `first`, where it has no value else."""
    above = next((each for _, each in lines.above(first)), None)
    is_empty = above is not None and level is not None and not above.value and above.column == level.column
    return above.key if above is not None and is_empty else None


def _mappings(level: Level | None) -> Iterator[Level]:
    """The level and those around it, without lists."""
    while level is not None:
        if not level.is_list:
            yield level
        level = level.outer


def is_entry(lines: Lines, level: Level, number: int) -> bool:
    """Whether a line, without its dash, is an entry of what `level` should be, which the spec has no list for."""
    line, place = lines[number], _place(lines, level)
    return line.key is not None and not is_list_at(place) and _takes(place, line)


def _place(lines: Lines, level: Level) -> Place:
    """The way to what the level holds, by the keys above it."""
    outer = level.outer
    if outer is None:
        return ()
    if outer.is_list:
        return (*_place(lines, outer), 0)
    first = level.line + (lines[level.line].column > outer.column and bool(lines[level.line].dashes))
    key = next((each.word for _, each in lines.above(first) if each.column == outer.column), "")
    return (*_place(lines, outer), key)


def _takes(place: Place, line: Line) -> bool:
    """Whether an entry can be in the mapping at a place, by its key, or by its value where the keys are names."""
    if part := part_at(place):
        return line.word in part.model_fields
    item, holder = part_at((*place, line.word)), part_at(place[:-1])
    if holder is not None and line.word in holder.model_fields:
        return False
    if item is None or is_written_short((*place, line.word)):
        return True
    first = _FIRST_KEY.match(line.value)
    fits = first[1] in item.model_fields if first else not line.value or line.value.startswith("{")
    return fits and line.word not in item.model_fields
