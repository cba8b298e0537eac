"""YAML as the spec uses it: mappings, lists and plain values, and where each of them stands in the file.

Nothing that hides or surprises is read: no aliases, tags, merge keys or second documents, and `no`, `0x10` and
`2026-01-01` are texts. The parser's events are read one by one, so that a file can neither exhaust the memory (no alias
is ever expanded) nor the stack.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import yaml

from serve_app.spec.findings import Finding, Place, Rule, error
from serve_app.spec.yaml_words import NOT_YAML, in_our_words

NO_MAPPING = error("Y003", "The file holds no mapping", "it is no spec", "start from the project's example")
ALIAS = error(
    "Y004", "An alias (*name) or a merge key (<<)", "one value would hide behind another's name", "write the values out"
)
TWICE = error("Y005", "A key that is there twice", "YAML would drop the first one in silence", "keep one of the two")
NOT_A_WORD = error("Y006", "A key that is not a plain word", "no part of the spec has such a key", "write a plain word")
TOO_DEEP = error(
    "Y008", "A file nested too deeply for a spec", "no part of a spec is that deep", "correct its brackets"
)
SEVERAL = error(
    "Y009", "Several documents in one file (---)", "all but the first would be passed over",
    "keep one, and put each other spec into a file of its own",
)  # fmt: skip
TAG = error(
    "Y017", "A YAML tag (!name)", "what a value is follows from its key, never from a tag", "write the value without it"
)
CONTROL = error(
    "Y018", "A character that cannot be seen, or is none", "no engine could use the text, and nobody could find why",
    "remove the character",
)  # fmt: skip

DEEPEST = 64
_INVISIBLE = yaml.reader.Reader.NON_PRINTABLE
# These too would show a text in another order than it is written in.
_INVISIBLE_IN_TEXT = re.compile(f"{_INVISIBLE.pattern}|[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
# Up to 18 digits fit the engines' 64-bit integers; more are no number that anybody means.
_INTEGER = re.compile(r"-?(0|[1-9][0-9]{0,17})")
_DECIMAL = re.compile(r"-?(0|[1-9][0-9]{0,17})\.[0-9]+")
_WORDS = {"true": True, "false": False, "null": None, "~": None, "": None}


@dataclass
class Position:
    """Where a value stands, from 1: at its key, or at itself in a list; and the positions of what it holds."""

    line: int
    column: int
    within: dict[str | int, Position] = field(default_factory=dict)

    def of(self, place: Place) -> Position:
        """The position of the deepest value on the way to `place` that the document has."""
        found = self
        for step in place:
            if step in found.within:
                found = found.within[step]
            elif isinstance(step, str):  # a list of one may be written as its item, which has no number
                break
        return found

    def rename(self, place: Place, name: str) -> None:
        """Find what stands at `place` under another key too."""
        holder = self.of(place[:-1])
        if place[-1] in holder.within:
            holder.within.setdefault(name, holder.within[place[-1]])


@dataclass
class Document:
    """What a text holds: plain values, the places of those that could not be read, and what was found on the way.

    `data` is None where the text is no mapping that can be read to its end.
    """

    data: dict[str, Any] | None
    root: Position
    unreadable: list[Place]
    findings: list[Finding]


def read_document(text: str) -> Document:
    """Read YAML. What is wrong is found, and never raised."""
    text = text.removeprefix("\ufeff")
    if found := _INVISIBLE.search(text):
        line, column = text.count("\n", 0, found.start()) + 1, found.start() - text.rfind("\n", 0, found.start())
        fault = CONTROL.at((), f"the character {found[0]!r} is not allowed")
        return Document(None, Position(1, 1), [], [Finding(line, column, fault)])
    reader = _Reader(text)
    try:
        data = reader.document()
    except _Stop:
        data = None
    return Document(data, reader.root, reader.unreadable, reader.findings)


class _Stop(Exception):
    """No more of the text can be read; there is a finding that says why."""


class _Reader:
    def __init__(self, text: str):
        self._yaml: Any = yaml.SafeLoader(text)
        self._lines = text.splitlines()
        self.root = Position(1, 1)
        self.unreadable: list[Place] = []
        self.findings: list[Finding] = []
        self._depth = 0

    def document(self) -> dict[str, Any]:
        self._next()  # the start of the stream
        event = self._next()
        if isinstance(event, yaml.StreamEndEvent):
            self._found(NO_MAPPING, event, (), "the file is empty")
            raise _Stop
        event = self._next()
        if not isinstance(event, yaml.MappingStartEvent):
            self._found(NO_MAPPING, event, (), "the file holds no mapping")
            raise _Stop
        data: dict[str, Any] = self._value(event, (), self.root)
        self._next()  # the end of the document
        event = self._next()
        if not isinstance(event, yaml.StreamEndEvent):
            self._found(SEVERAL, event, (), "another document starts here")
        return data

    def _next(self) -> Any:
        try:
            return self._yaml.get_event()
        except yaml.MarkedYAMLError as broken:
            mark = broken.problem_mark or broken.context_mark
            line = self._lines[mark.line] if mark and mark.line < len(self._lines) else ""
            fault = in_our_words(broken, line)
            self.findings.append(Finding(mark.line + 1 if mark else 1, mark.column + 1 if mark else 1, fault))
        except (ValueError, OverflowError):  # an escape such as "\UFFFFFFFF"
            line, column = self._yaml.line + 1, self._yaml.column + 1
            fault = NOT_YAML.at((), "this escape names no character", remedy="write the character itself")
            self.findings.append(Finding(line, column, fault))
        raise _Stop

    def _value(self, event: Any, place: Place, position: Position) -> Any:
        if isinstance(event, yaml.AliasEvent):
            self._found(ALIAS, event, place, f"the alias *{event.anchor} is not allowed here")
            self.unreadable.append(place)
            return None
        if event.tag is not None:
            tag = event.tag.replace("tag:yaml.org,2002:", "!!")
            self._found(TAG, event, place, f"the tag {tag} is not allowed")
        if isinstance(event, yaml.ScalarEvent):
            return self._scalar(event, place)
        if self._depth == DEEPEST:
            self._found(TOO_DEEP, event, (), f"brackets or indentation are more than {DEEPEST} deep here")
            raise _Stop
        self._depth += 1
        read = self._list if isinstance(event, yaml.SequenceStartEvent) else self._mapping
        value = read(place, position)
        self._depth -= 1
        return value

    def _scalar(self, event: yaml.ScalarEvent, place: Place) -> Any:
        if found := _INVISIBLE_IN_TEXT.search(event.value):
            self._found(CONTROL, event, place, f"the text holds the character {found[0]!r}")
        if found or event.tag is not None:
            self.unreadable.append(place)
            return None
        return _plain(event.value) if event.style is None else event.value

    def _list(self, place: Place, position: Position) -> list[Any]:
        items: list[Any] = []
        while not isinstance(event := self._next(), yaml.SequenceEndEvent):
            index = len(items)
            within = position.within[index] = _position(event)
            items.append(self._value(event, (*place, index), within))
        return items

    def _mapping(self, place: Place, position: Position) -> dict[str, Any]:
        items: dict[str, Any] = {}
        while not isinstance(key := self._next(), yaml.MappingEndEvent):
            name = self._key(key, place)
            if name is None:
                with self._unread(place):
                    self._value(self._next(), place, Position(1, 1))
                continue
            here = (*place, name)
            within = _position(key)
            value = self._value(self._next(), here, within)
            if name in items:
                first = position.within[name]
                self._found(TWICE, key, here, f"this key is already on line {first.line}")
                value = self._joined(items[name], value, here)
                within.within = {**first.within, **within.within}
            items[name] = value
            position.within[name] = within
        return items

    def _key(self, event: Any, place: Place) -> str | None:
        """The key's text as it is written: `1` and `true` are words too. None where the entry cannot be used."""
        if not isinstance(event, yaml.ScalarEvent):
            with self._unread(place):
                self._value(event, place, Position(1, 1))
            what = "alias" if isinstance(event, yaml.AliasEvent) else "list or mapping"
            self._found(NOT_A_WORD, event, place, f"the key is a{'n' if what == 'alias' else ''} {what}")
        elif event.value == "<<" and event.style is None:
            self._found(ALIAS, event, place, "the merge key << is not allowed")
            self.unreadable.append(place)
        elif not event.value:
            self._found(NOT_A_WORD, event, place, "the key is empty")
        elif event.tag is not None:
            self._found(TAG, event, place, "a key has a tag")
        elif found := _INVISIBLE_IN_TEXT.search(event.value):
            self._found(CONTROL, event, place, f"the key holds the character {found[0]!r}")
        else:
            return str(event.value)
        return None

    def _joined(self, first: Any, second: Any, place: Place) -> Any:
        """What stands for a key that is there twice: both mappings together; nothing certain where they differ."""
        if isinstance(first, dict) and isinstance(second, dict):
            both = {name: self._joined(first[name], second[name], (*place, name)) for name in first.keys() & second}
            return {**first, **second, **both}
        if first != second:
            self.unreadable.append(place)
        return second

    @contextmanager
    def _unread(self, place: Place) -> Iterator[None]:
        """Read over what has its finding already."""
        findings, unreadable = len(self.findings), len(self.unreadable)
        yield
        del self.findings[findings:], self.unreadable[unreadable:]

    def _found(self, rule: Rule, event: Any, place: Place, what: str) -> None:
        mark = event.start_mark
        self.findings.append(Finding(mark.line + 1, mark.column + 1, rule.at(place, what)))


def _position(event: Any) -> Position:
    return Position(event.start_mark.line + 1, event.start_mark.column + 1)


def _plain(text: str) -> Any:
    """The value of a text without quotes."""
    if text in _WORDS:
        return _WORDS[text]
    if _INTEGER.fullmatch(text):
        return int(text)
    return float(text) if _DECIMAL.fullmatch(text) else text
