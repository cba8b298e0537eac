"""What is no YAML is found and cut out, entry by entry, so that all the rest of a file can be examined.

In its own lines a broken entry is replaced by one with a `gap`, a character that the file does not have. So what is
left is YAML, every value keeps its line, and whoever reads it knows what was lost:

- `key: GAP` and `- GAP`: the value;
- `GAPkey: GAP`: an entry with that key;
- `GAP: GAP`: entries whose keys nobody knows.

The same within brackets, of which no more is cut out than the broken entry.

With several gaps before the key, the entry may have been in as many of the mappings and lists around it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import yaml

from serve_app.spec import flow
from serve_app.spec.blame import Blame, blame
from serve_app.spec.findings import Fault, Finding, Rule, error
from serve_app.spec.indentation import opened, without_stray
from serve_app.spec.part import shown
from serve_app.spec.yaml_lines import Line, Lines
from serve_app.spec.yaml_parser import Level, Parser, Spot
from serve_app.spec.yaml_words import MARKER, NOT_YAML, is_marker, without_odd_characters

CONTROL = error(
    "Y018", "A character that cannot be seen, or is none", "no engine could use the text, and nobody could find why",
    "remove the character",
)  # fmt: skip
NOT_READ_ON = error(
    "Y027", "More mistakes than can be shown", "what else is wrong is not shown yet",
    "correct what is shown, and validate again",
)  # fmt: skip

MOST = 100
INVISIBLE = yaml.reader.Reader.NON_PRINTABLE
# Where more than one character in so many cannot be seen, it is another kind of file.
_TEXT = 4
# So many of these private characters do not fit in a file of a spec's size.
_GAPS = range(0xF0000, 0x10FFFE)
_TRIES = 3  # to replace a line
_READINGS = 5
_IN_FLOW = 500_000  # characters that are parsed anew, for one mistake in brackets after the other
_FEW = 20  # lines with one wrong indentation, of which each key is worth its while


class Recovery:
    """A text, what is no YAML in it, and what is left of it.

    `is_text` is False where nothing can be read, and `is_cut_short` True where nothing below some line was.
    """

    def __init__(self, text: str):
        used = set(text)
        self.gap = next(gap for gap in map(chr, _GAPS) if gap not in used)
        self.findings: list[Finding] = []
        self.text = text
        self.is_text = len(INVISIBLE.findall(text)) * _TEXT <= len(text)
        self.is_cut_short = False
        self._lines = Lines(text)
        self._tries: Counter[int] = Counter()
        self._shown: set[Spot] = set()
        self._seen_in_flow: set[tuple[Spot, Spot]] = set()
        self._left_in_flow = _IN_FLOW
        self._readings = 0
        if INVISIBLE.search(text):
            self._remove_invisible()
        if self.is_text:
            self._read_as_meant()

    def mend(self, broken: yaml.MarkedYAMLError, parser: Parser) -> None:
        """Cut out what is broken at an error of `parser`, and all that is broken below."""
        self._readings += 1
        left: yaml.MarkedYAMLError | None = broken
        while left is not None:
            found = blame(left, parser, self._lines)
            if not self._is_mended_in_flow(found):
                if self._has_to_end(found):
                    del self._lines.texts[found.line :]
                    self.is_cut_short = True
                    break
                self._cut(found)
            parser = Parser(self._lines.text(found.line), found.line, found.within)
            left = _first_error(parser)
        self.text = self._lines.text()

    def _remove_invisible(self) -> None:
        """Do as the remedy says."""
        texts = self._lines.texts
        found = [(number, each) for number, text in enumerate(texts) if (each := INVISIBLE.search(text))]
        for number, each in found[: MOST if self.is_text else 1]:
            self._found(CONTROL, number, each.start(), f"the character {each[0]!r} is not allowed")
        if self.is_text and len(found) > MOST:
            self._found(NOT_READ_ON, found[MOST][0], 0, f"more than {MOST} lines hold characters that cannot be seen")
        self._lines.texts = [INVISIBLE.sub("", text) for text in texts]
        self.text = self._lines.text()

    def _read_as_meant(self) -> None:
        """Read past characters that are not of the spec: each is found, and changes nothing else."""
        found = [
            Finding(line + 1, column + 1, CONTROL.at((), f"the character {end!r} is not allowed in a line"))
            for line, column, end in self._lines.join()
        ]
        texts, holder = self._lines.texts, None
        open_lines: list[Line] = []
        for number in range(len(texts)):
            if len(found) > MOST:
                self.is_cut_short = True
                del texts[found[MOST].line - 1 :]
                break
            if is_marker(texts[number]):
                found.append(Finding(number + 1, 1, MARKER))
                texts[number] = ""
                continue
            line = self._lines[number]
            if holder is not None and (line.indent > holder or not line.content):
                continue  # a text that goes on
            while (odd := self._odd(number, open_lines)) is not None:
                column, fault, texts[number] = odd
                found.append(Finding(number + 1, column + 1, fault))
                line = self._lines[number]
            holder = line.limit if line.value else None
            if line.content:
                open_lines = opened(open_lines, line)
        self.findings += found[:MOST]
        if len(found) > MOST:
            self._found(NOT_READ_ON, found[MOST].line - 1, 0, f"more than {MOST} characters are not of a spec")
        self.text = "\n".join(texts)

    def _odd(self, number: int, open_lines: list[Line]) -> tuple[int, Fault, str] | None:
        if (odd := without_odd_characters(self._lines.texts[number], self.gap)) is not None:
            return odd
        if (stray := without_stray(self._lines, number, open_lines)) is None:
            return None
        column, key, text = stray
        what = f"{shown(self._lines.texts[number][column])} stands before {f'the key {key}' if key else 'an item'}"
        return column, NOT_YAML.at((), what, remedy="remove it, and keep the indentation"), text

    def _has_to_end(self, found: Blame) -> bool:
        """Report what is broken, once. True where nothing below can be made sense of."""
        self._tries[found.line] += 1
        if self._tries[found.line] > _TRIES or self._readings > _READINGS:
            self._found(NOT_READ_ON, found.line, 0, "nothing can be made of what follows")
            return True
        if self._tries[found.line] == 1 and found.spot not in self._shown:
            if len(self._shown) == MOST:
                self._found(NOT_READ_ON, found.line, 0, f"more than {MOST} places are no YAML")
                return True
            self._show(found)
        return False

    def _show(self, found: Blame) -> None:
        self._shown.add(found.spot)
        self.findings.append(Finding(found.spot[0] + 1, found.spot[1] + 1, found.fault))

    def _is_mended_in_flow(self, found: Blame) -> bool:
        """Whether no more than the mistake itself had to be taken out of brackets; it is shown then."""
        if found.flow is None or found.flow in self._seen_in_flow or len(self._shown) == MOST:
            return False
        self._seen_in_flow.add(found.flow)
        end = self._end(found.line, True, None, in_flow=True)
        if found.flow[1][0] >= end:  # in a line that cannot be of the bracket
            return False
        text = "\n".join(self._lines.texts[found.line : end])
        self._left_in_flow -= len(text)
        if self._left_in_flow < 0:
            return False
        start, at = (self._offset(found.line, spot) for spot in found.flow)
        mended = flow.closed(text, start, self.gap) if start == at else flow.without_mistake(text, start, at, self.gap)
        if mended is None:
            return False
        self._lines.texts[found.line : end] = mended.split("\n")
        if found.spot not in self._shown:
            self._show(found)
        return True

    def _offset(self, line: int, spot: Spot) -> int:
        """Of a spot in the text that begins with `line`."""
        return sum(len(text) + 1 for text in self._lines.texts[line : spot[0]]) + spot[1]

    def _found(self, rule: Rule, line: int, column: int, what: str) -> None:
        self.findings.append(Finding(line + 1, column + 1, rule.at((), what)))

    def _cut(self, found: Blame) -> None:
        """Replace the broken entry."""
        line = self._lines[found.line]
        misfit = found.misfit or self._tries[found.line] > 1
        if line.is_empty:
            self._lines.texts[found.line] = ""
            return
        if found.moved is not None:
            for number, each in list(self._lines.below(found.line, found.end)):
                if each.indent == line.indent:
                    self._lines.texts[number] = f"{' ' * found.moved}{self._lines.texts[number].lstrip(' ')}"
            return
        columns = list(_columns(found.within))
        end = found.end or self._end(found.line, found.runs_on or line.goes_on, columns if misfit else None)
        old = dict(self._lines.below(found.line, end))
        self._lines.texts[found.line : end] = [""] * (end - found.line)
        if misfit:
            for number, text in self._lost(found, end, old, columns):
                self._lines.texts[number] = text
        elif line.is_several:
            self._lines.texts[found.line] = f"{' ' * line.indent}{line.dashes}{self.gap}: {self.gap}"
        elif line.key is None and not line.dashes:
            self._lines.texts[found.line] = f"{' ' * line.indent}{self.gap}{line.word}: {self.gap}"
        else:
            key = "" if line.key is None else f"{line.key}: "
            self._lines.texts[found.line] = f"{' ' * line.indent}{line.dashes}{key}{self.gap}"

    def _lost(self, found: Blame, end: int, old: dict[int, Line], columns: list[int]) -> Iterator[tuple[int, str]]:
        """What stands for a line that fits nowhere, and for those below that share its indentation."""
        line, *below = old.values()
        column, is_list = self._slot(found, end)
        is_doubtful = _is_doubtful(line, below, columns) or len(old) > _FEW
        around = len(columns) if line.tab else sum(each > line.indent for each in columns)
        lost = f"{' ' * column}{'- ' if is_list else ''}{self.gap * (around + 1)}"
        for number, each in old.items():
            if each is line or (not is_doubtful and (each.tab or each.indent == line.indent)):
                yield number, f"{lost}{'' if is_doubtful else each.word.replace(self.gap, '')}: {self.gap}"

    def _end(self, first: int, goes_on: bool, columns: list[int] | None, in_flow: bool = False) -> int:
        """The next line that is not of the broken entry. `columns`: those of open levels, for a line that fits none.

        `in_flow`: within brackets, where a tab is a mistake of its line alone.
        """
        line = self._lines[first]
        limit = line.limit if columns is None else line.indent
        is_next = True
        for number, each in self._lines.below(first + 1):
            if line.tab and each.tab:
                continue
            if is_next and columns is not None:
                limit = max(each.indent - 1, 0 if line.tab else limit)
            is_next = False
            in_list = each.indent == limit and each.dashes and not line.dashes
            belongs = goes_on and (each.indent > limit or in_list or each.closes or (in_flow and each.tab))
            strays = columns is not None and each.indent >= line.indent and each.indent not in columns
            if not belongs and not strays:
                return number
        return len(self._lines.texts)

    def _slot(self, found: Blame, end: int) -> tuple[int, bool]:
        """The column at which an entry can stand before the line `end`, and whether it is a list's."""
        below = next((line for _, line in self._lines.below(end)), None)
        column = -1 if found.within is None else found.within.column
        in_list = below is not None and below.indent == column and bool(below.dashes)
        if found.within is not None and not found.is_first:
            above = next((line for _, line in self._lines.above(found.line) if line.indent <= column), None)
            return column, found.within.is_list or (in_list and above is not None and bool(above.dashes))
        if below is not None and (below.indent > column or in_list):
            return below.indent, bool(below.dashes)
        return column + 2 if found.within else 0, False


def _is_doubtful(line: Line, below: list[Line], columns: list[int]) -> bool:
    """Whether the lines below may be others' than those of a line that fits nowhere."""
    if line.tab:
        return any(not each.tab for each in below)
    next_one = below[0].indent if below else -1
    return next_one in columns and not any(line.indent < column < next_one for column in columns)


def _first_error(parser: Parser) -> yaml.MarkedYAMLError | None:
    try:
        parser.finish()
    except yaml.MarkedYAMLError as broken:
        return broken
    return None


def _columns(level: Level | None) -> Iterator[int]:
    while level is not None:
        yield level.column
        level = level.outer
