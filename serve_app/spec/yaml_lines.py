"""Lines of YAML as people see them: how far each is indented, its key, and whether it goes on below."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

# A key may hold private characters, as those of `recovery.py` do.
_LINE = re.compile(
    r"""(?P<indent>[ ]*) (?P<tab>\t\s*)? (?P<dashes>(?:-(?:[ ]+|$))*)
        (?:(?P<key>"[^"]*"|'[^']*'|[\w./\U000f0000-\U0010fffd-]+)[ ]*:(?=\s|$))? \s*
        (?P<value>.*)""",
    re.VERBOSE,
)
_ENDS = re.compile(r"\r\n|[\n\r\x85\u2028\u2029]")
_ENTRY = re.compile(r"\s*(?:-\s+)*[\w./-]+:(?=\s|$)|\s*-\s|\s*#")
# What ends a line for YAML, and for hardly an editor.
_ODD_ENDS = re.compile(r"\r(?!\n)|[\x85\u2028\u2029]")
# `embedded` and `sla:8s`, of which the colon or the space behind it was forgotten.
_WORD = re.compile(r"([\w.-]+)(?=:|\s*$|\s+#)")
_EMPTY = re.compile(r"[\]},\s]*|\.\.\.|%(YAML|TAG)\b.*")
_QUOTED = re.compile(r'"(?:\\.|[^"\\])*"|\'[^\']*\'')
_COMMENT = re.compile(r"(^|\s)#.*")
# A value that is empty, of several lines, an anchor or tag alone, or in the middle of something.
_OPEN = re.compile(r"^$|^[|>]|^[&!]\S*$|[,:]$|(^|[\[{,:])\s*[\"']")


@dataclass(frozen=True)
class Line:
    """The indentation of a line, the dashes and the key that it begins with, and what is behind them."""

    indent: int
    tab: bool
    dashes: str
    key: str | None
    value: str

    @property
    def content(self) -> bool:
        """Whether it holds more than a comment."""
        return bool(self.dashes or self.key is not None or self.value)

    @property
    def is_empty(self) -> bool:
        """Whether nothing of a spec is lost with it, as with closing brackets alone, or the end of a document."""
        return not self.dashes and self.key is None and _EMPTY.fullmatch(self.value) is not None

    @property
    def column(self) -> int:
        """Where its key or value begins."""
        return self.indent + len(self.dashes)

    @property
    def limit(self) -> int:
        """What is indented by more belongs to its entry."""
        return self.indent + len(self.dashes.rstrip()) - 1 if self.dashes and self.key is None else self.column

    @property
    def word(self) -> str:
        """Its key, or the word that is probably meant to be one, if there is any."""
        if self.key is not None:
            return self.key.strip("\"'")
        found = _WORD.match(self.value)
        return found[1] if found else ""

    @property
    def goes_on(self) -> bool:
        """Whether its entry may go on in the lines below."""
        if self.key is None:
            return not self.tab
        left = _COMMENT.sub("", _QUOTED.sub("x", self.value)).strip()
        return _OPEN.search(left) is not None or sum(map(left.count, "[{")) > sum(map(left.count, "]}"))

    @property
    def is_several(self) -> bool:
        """Whether it is an item of which the brace before several entries is missing: `- a: 1, b: 2}`."""
        return bool(self.dashes) and re.match(r"[^\[{\"'].*,\s*[\w.-]+:\s", self.value) is not None

    @property
    def closes(self) -> bool:
        """Whether it begins with a bracket that closes."""
        return not self.dashes and self.value.startswith(("]", "}"))


class Lines:
    """The lines of a text, by their numbers from 0."""

    def __init__(self, text: str):
        self.texts = _ENDS.split(text)
        self._ends = _ENDS.findall(text)

    def __getitem__(self, number: int) -> Line:
        found = _LINE.match(self.texts[number])
        assert found is not None  # every part of it may be empty
        value = "" if found["value"].startswith("#") else found["value"]
        return Line(len(found["indent"]), bool(found["tab"]), found["dashes"], found["key"], value)

    def below(self, first: int, end: int | None = None) -> Iterator[tuple[int, Line]]:
        """The lines from `first` on that hold more than a comment, with their numbers."""
        return self._content(range(first, len(self.texts) if end is None else min(end, len(self.texts))))

    def above(self, number: int) -> Iterator[tuple[int, Line]]:
        """The same before line `number`, the nearest first."""
        return self._content(range(min(number, len(self.texts)) - 1, -1, -1))

    def join(self) -> list[tuple[int, int, str]]:
        """Take out the ends of lines that are none, and say where they were: the line, the column, the character."""
        found: list[tuple[int, int, str]] = []
        if set(self._ends) == {"\r"}:
            return found
        texts = [""]
        for text, end in zip(self.texts, ["\n", *self._ends], strict=True):
            if not _ODD_ENDS.fullmatch(end) or _is_apart(texts[-1], end, text):
                texts.append(text)
                continue
            if text.strip():
                found.append((len(texts) - 2, len(texts[-1]), end))
            texts[-1] += text
        self.texts = texts[1:]
        return found

    def text(self, first: int = 0) -> str:
        return "\n".join(self.texts[first:]) + "\n"

    def _content(self, numbers: range) -> Iterator[tuple[int, Line]]:
        for number in numbers:
            if (line := self[number]).content:
                yield number, line


def _is_apart(above: str, end: str, below: str) -> bool:
    """Whether two lines with an odd end between them are two entries."""
    if end != "\r" and above.lstrip().startswith("#"):
        return False
    return bool(_ENTRY.match(above) or not above.strip()) and _ENTRY.match(below) is not None
