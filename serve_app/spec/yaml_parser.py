"""PyYAML's parser, which also remembers how the text is laid out: what `recovery.py` needs where the text is broken."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import yaml

DEEPEST = 64
TOO_DEEP = "nested too deeply"
NO_CHARACTER = "this escape names no character"
# A key or a dash whose value may be in the next line ends in one of these.
_OPEN_ENDS = (yaml.ValueToken, yaml.BlockEntryToken, yaml.KeyToken, yaml.AnchorToken, yaml.TagToken)

Spot = tuple[int, int]
"""Line and column, from 0."""


@dataclass(frozen=True)
class Level:
    """A mapping or list in block style that is open: its column, the line it begins in, and what it stands in."""

    column: int
    line: int
    is_list: bool
    outer: Level | None


@dataclass(frozen=True)
class Span:
    """A text of several lines."""

    start: Spot
    end: Spot
    quoted: bool


class Parser(yaml.SafeLoader):
    """Parses `text`; with `within`, the rest of a text from `line` on, where that is the innermost open level."""

    def __init__(self, text: str, line: int = 0, within: Level | None = None):
        self._given = _outside_in(within)
        head = "".join(f"{' ' * level.column}{'-' if level.is_list else 'x:'}\n" for level in self._given)
        super().__init__(head + text)
        self.line = line - len(self._given)
        self.texts: list[Span] = []
        self._levels: list[tuple[int, Level | None]] = [(self.line, None)]
        self._brackets: list[tuple[Spot, Spot | None]] = []
        self._ends: dict[int, bool] = {}
        self._quote: Any = None
        self._depth = 0

    def event(self) -> Any:
        """The next event. Every error is a MarkedYAMLError; one of them is that the text is too deep for a spec."""
        try:
            event = self.get_event()  # type: ignore[no-untyped-call]
        except (ValueError, OverflowError):  # of chr(), for "\UFFFFFFFF"
            raise yaml.MarkedYAMLError("in a quoted scalar", self._quote, NO_CHARACTER, self._here()) from None
        if isinstance(event, yaml.CollectionStartEvent):
            if self._depth == DEEPEST:
                raise yaml.MarkedYAMLError(None, None, TOO_DEEP, cast(Any, event.start_mark))
            self._depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            self._depth -= 1
        return event

    def finish(self) -> None:
        """Parse on to the end of the document."""
        documents = 0
        while documents < 2 and not isinstance(event := self.event(), yaml.StreamEndEvent):
            documents += isinstance(event, yaml.DocumentStartEvent)

    def level_above(self, line: int) -> Level | None:
        """The innermost level that is open before a line begins."""
        return next((level for at, level in reversed(self._levels) if at < line), None)

    def is_open_above(self, line: int) -> bool:
        """Whether the last key or dash above a line has no value yet."""
        return next((self._ends[at] for at in reversed(self._ends) if at < line), False)

    def bracket_around(self, spot: Spot) -> Spot | None:
        """Where the outermost bracket begins that is open at a spot, or is closed before it in the same line."""
        return next(
            (start for start, end in reversed(self._brackets) if start < spot and (end is None or spot[0] <= end[0])),
            None,
        )

    def texts_ending(self, spot: Spot) -> list[Span]:
        """The texts of several lines that end before a spot in its line, the last one last."""
        found: list[Span] = []
        for text in reversed(self.texts):
            if text.end[0] < spot[0]:
                break
            if text.end[0] == spot[0] and text.end <= spot:
                found.insert(0, text)
        return found

    def _here(self) -> Any:
        return self.get_mark()

    @property
    def _open(self) -> Level | None:
        return self._levels[-1][1]

    def add_indent(self, column: int) -> bool:
        is_list = column == self.column and self.peek() == "-"
        added: bool = super().add_indent(column)
        if added:
            level = self._given.pop(0) if self._given else Level(column, self.line, is_list, self._open)
            self._levels.append((self.line, level))
        return added

    def unwind_indent(self, column: int) -> None:
        super().unwind_indent(column)
        while self._open is not None and self._open.column > self.indent:
            self._levels.append((self.line, self._open.outer))

    def fetch_more_tokens(self) -> None:
        super().fetch_more_tokens()
        last = self.tokens[-1]
        self._ends[last.start_mark.line] = isinstance(last, _OPEN_ENDS)

    def fetch_flow_collection_start(self, token: Any) -> None:
        if not self.flow_level:
            self._brackets.append(((self.line, self.column), None))
        super().fetch_flow_collection_start(token)

    def fetch_flow_collection_end(self, token: Any) -> None:
        super().fetch_flow_collection_end(token)
        if not self.flow_level:
            self._brackets[-1] = (self._brackets[-1][0], (self.line, self.column))

    def scan_flow_scalar(self, style: str) -> Any:
        self._quote = self._here()
        return self._span(super().scan_flow_scalar(style), quoted=True)

    def scan_plain(self) -> Any:
        return self._span(super().scan_plain(), quoted=False)

    def _span(self, token: Any, quoted: bool) -> Any:
        start, end = token.start_mark, token.end_mark
        if start.line < end.line:
            self.texts.append(Span((start.line, start.column), (end.line, end.column), quoted))
        return token


def _outside_in(level: Level | None) -> list[Level]:
    return [] if level is None else [*_outside_in(level.outer), level]
