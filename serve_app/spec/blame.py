"""Which line is to blame for an error of YAML's parser, which may come to see it only lines further down."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import islice

import yaml

from serve_app.spec.findings import Fault, error
from serve_app.spec.indentation import is_entry, meant_column
from serve_app.spec.yaml_lines import Lines
from serve_app.spec.yaml_parser import DEEPEST, TOO_DEEP, Level, Parser, Spot
from serve_app.spec.yaml_words import DASH, DEEPER, LESS, in_our_words, never_closed, without_colon

DEEP = error("Y008", "A file nested too deeply for a spec", "no part of a spec is that deep", "correct its brackets")
_END = 2**31
# Lines above a misfit that are looked at, and of these the ones that may be indented wrongly together.
_SEEN_ABOVE = 200
_MOVED = 10
# What the parser says of a line that begins where nothing can.
_MISFIT = ("expected <block end>", "expected '<document start>'", "expected the node content")


@dataclass(frozen=True)
class Blame:
    """A fault at a spot, and the line that the broken entry begins with.

    `within`: the innermost mapping or list that the entry stands in; `is_first`: it begins the value of that one's last
    key. `misfit`: the line is indented so that no entry can stand there. `runs_on`: the entry is open at the line's
    end. `end`: the line below it, where that is known. `moved`: the column at which the line and those up to `end` that
    share its indentation were meant to be. `flow`: where the outermost bracket around a mistake begins, and where in it
    the mistake is; at its beginning where that bracket is never closed.
    """

    spot: Spot
    line: int
    fault: Fault
    within: Level | None
    is_first: bool
    misfit: bool = False
    runs_on: bool = False
    end: int | None = None
    moved: int | None = None
    flow: tuple[Spot, Spot] | None = None


def blame(broken: yaml.MarkedYAMLError, parser: Parser, lines: Lines) -> Blame:
    return _Case(broken, parser, lines).blame()


class _Case:
    def __init__(self, broken: yaml.MarkedYAMLError, parser: Parser, lines: Lines):
        self._broken = broken
        self._what = str(broken.problem)
        self._parser = parser
        self._lines = lines
        mark = broken.problem_mark or broken.context_mark
        self._at: Spot = (mark.line, mark.column) if mark else (0, 0)
        mark = broken.context_mark or mark
        self._context: Spot = (mark.line, mark.column) if mark else (0, 0)
        self._at_end = "stream" in self._what
        self._in_quotes = "quoted scalar" in str(broken.context)
        texts = parser.texts_ending(self._at)
        self._quotes = [self._context] if self._in_quotes else [text.start for text in texts if text.quoted]
        self._plain = [text.start for text in texts if not text.quoted]
        self._bracket = parser.bracket_around(self._at)
        self._start = min([self._at, *self._quotes, self._bracket or self._at])

    def blame(self) -> Blame:
        return self._never_closed() or self._keyless() or self._misfit() or self._broken_entry()

    def _at_line(
        self, spot: Spot, number: int, fault: Fault, *, misfit: bool = False, runs_on: bool = False, flow: bool = False
    ) -> Blame:
        above = self._parser.level_above(number), self._parser.is_open_above(number)
        found = Blame(spot, number, fault, *above, misfit or self._lines[number].tab, runs_on)
        if flow and not found.misfit and self._bracket is not None and self._bracket <= spot:
            return replace(found, flow=(self._bracket, spot))
        return found

    def _never_closed(self) -> Blame | None:
        """A quote or a bracket that takes in a line that cannot be meant to be in it."""
        for quote in self._quotes:
            ended = self._in_quotes and (self._at_end or "separator" in self._what)
            if ended or self._is_passed(quote[0]):
                return self._at_line(quote, self._start[0], never_closed("quote"), runs_on=True, flow=True)
        if self._bracket is not None and (self._at_end or self._is_passed(self._bracket[0])):
            return self._at_line(self._bracket, self._start[0], never_closed("bracket"), runs_on=True, flow=True)
        return None

    def _is_passed(self, first: int) -> bool:
        """Whether a line up to the error's cannot be of the entry in line `first`, by its indentation."""
        limit = self._lines[first].limit
        below = self._lines.below(first + 1, self._at[0] + 1)
        return any(line.indent <= limit and not line.tab and not line.closes for _, line in below)

    def _keyless(self) -> Blame | None:
        """A line without a key, which YAML takes for a text that may go on in the next line."""
        spot = None
        if self._what.startswith("could not find expected ':'"):
            spot = self._context
        elif self._what.startswith("mapping values"):
            spot = self._plain[-1] if self._plain else (self._at[0], self._lines[self._at[0]].column)
            line = self._lines[spot[0]]
            is_deeper = spot[0] == self._at[0] or line.indent < self._lines[self._at[0]].indent
            if is_deeper and (spot[1] > line.column or line.key is not None):
                return None
        elif self._is_indented_wrongly and (above := next(self._lines.above(self._at[0]), None)):
            number, line = above
            is_whole = not self._parser.texts_ending((number, _END)) and not self._parser.bracket_around((number, 0))
            is_text = line.key is None and not line.dashes and not line.is_empty
            if is_whole and is_text and (line.indent <= self._at[1] or "document start" in self._what):
                spot = (number, line.column)
        if spot is None:
            return None
        level = self._parser.level_above(spot[0])
        is_item = level is not None and level.is_list and level.column == spot[1]
        return self._at_line(spot, spot[0], without_colon(self._lines.texts[spot[0]]), misfit=is_item)

    @property
    def _is_indented_wrongly(self) -> bool:
        if self._at[0] >= len(self._lines.texts):  # the text's end, where a parser begins with what is above it
            return False
        is_first = self._start == self._at and self._at[1] == self._lines[self._at[0]].indent
        return is_first and self._what.startswith(_MISFIT)

    def _misfit(self) -> Blame | None:
        """A line at an indentation where nothing can stand, or the one above it that all others differ from."""
        is_deeper = self._what.startswith("mapping values") and bool(self._plain)
        if not is_deeper and not self._is_indented_wrongly:
            return None
        number = self._at[0]
        line = self._lines[number]
        ended = next(self._lines.above(number), None)
        if ended is not None and ended[1].value == "...":
            return self._at_line(self._at, ended[0], in_our_words(self._broken, ""))
        if (less := self._dedented(number)) is not None:
            return less
        fault = DEEPER if is_deeper else in_our_words(self._broken, self._lines.texts[number])
        if (first := self._first_item(number)) is not None:
            return Blame((first, line.indent), first, fault, self._parser.level_above(number), True, True, end=number)
        odd = self._odd_one(number)
        if odd is None:
            fault = DASH if self._has_a_dash_too_many(number) else fault
            return self._at_line((number, line.indent), number, fault, misfit=True)
        if odd.is_list and odd.column == line.indent and is_entry(self._lines, odd, odd.line):
            fault = DASH
        return Blame((odd.line, odd.column), odd.line, fault, odd.outer, True, misfit=True, end=number)

    def _dedented(self, number: int) -> Blame | None:
        """Lines above that belong to the mapping that line `number` goes on, and are indented by less."""
        limit, column, tries = self._lines[number].indent, None, 0
        for above, line in islice(self._lines.above(number), _SEEN_ABOVE):
            if column is None and line.indent < limit:
                column = line.indent
            if tries == _MOVED or (column is not None and line.indent < column):
                break
            if line.indent != column:
                continue
            tries += 1
            level = self._parser.level_above(above)
            meant = meant_column(self._lines, level, number, above)
            if meant is not None:
                return Blame((above, line.column), above, LESS, level, False, end=number, moved=meant)
        return None

    def _first_item(self, number: int) -> int | None:
        """The line of a list's first item at the column of the list's key, where those from `number` on are deeper."""
        line, level = self._lines[number], self._parser.level_above(number)
        if level is None or not line.dashes or line.indent <= level.column:
            return None
        beside = ((at, each) for at, each in self._lines.above(number) if each.indent <= level.column)
        (first, item), (_, holder) = next(beside, (0, line)), next(beside, (0, line))
        below = next((each for _, each in self._lines.below(number + 1) if each.indent <= line.indent), line)
        is_alone = item.indent == holder.indent and not holder.dashes and not holder.value
        return first if item.dashes and is_alone and below is not line and below.indent == line.indent else None

    def _has_a_dash_too_many(self, number: int) -> bool:
        line = self._lines[number]
        level = self._parser.level_above(number)
        while level is not None and level.column > line.indent:
            level = level.outer
        if level is None or level.is_list or level.column != line.indent or not line.dashes:
            return False
        return is_entry(self._lines, level, number)

    def _odd_one(self, number: int) -> Level | None:
        """The level of a single entry above the line, where the line and those below share another indentation."""
        line = self._lines[number]
        level = self._parser.level_above(number)
        odd = level if level is not None and level.column < line.indent else None
        while level is not None and (level.column > line.indent or (level.column == line.indent and level.is_list)):
            odd, level = level, level.outer
        is_fine = level is not None and level.column == line.indent
        if odd is None or is_fine or line.dashes or line.closes:
            return None
        if any(each.indent <= odd.column for _, each in self._lines.below(odd.line + 1, number)):
            return None
        below = [each.indent for _, each in islice(self._lines.below(number + 1), 1)]
        if odd.column < line.indent and not line.value and below == [line.indent]:
            return None  # what is below is the line's own
        if odd.is_list and odd.column == line.indent:  # of which the one item is the only line with a dash
            return odd
        sibling = next((each.indent for _, each in self._lines.below(number + 1) if each.indent <= line.indent), None)
        return odd if sibling == line.indent else None

    def _broken_entry(self) -> Blame:
        """An entry that is broken somewhere in it."""
        number = min(self._start[0], len(self._lines.texts) - 1)
        text = self._lines.texts[self._at[0]] if self._at[0] < len(self._lines.texts) else ""
        too_deep = DEEP.at((), f"brackets or indentation are more than {DEEPEST} deep here")
        fault = too_deep if self._what == TOO_DEEP else in_our_words(self._broken, text)
        return self._at_line(self._at, number, fault, runs_on=number < self._at[0], flow=self._what != TOO_DEEP)
