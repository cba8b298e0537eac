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
from typing import Any, NamedTuple

import yaml

from serve_app.spec.findings import Finding, Place, Rule, error
from serve_app.spec.recovery import CONTROL, INVISIBLE, Recovery
from serve_app.spec.yaml_parser import Parser
from serve_app.spec.yaml_words import without_colon

NO_MAPPING = error("Y003", "The file holds no mapping", "it is no spec", "start from the project's example")
ALIAS = error(
    "Y004", "An alias (*name) or a merge key (<<)", "one value would hide behind another's name", "write the values out"
)
TWICE = error("Y005", "A key that is there twice", "YAML would drop the first one in silence", "keep one of the two")
NOT_A_WORD = error("Y006", "A key that is not a plain word", "no part of the spec has such a key", "write a plain word")
SEVERAL = error(
    "Y009", "Several documents in one file (---)", "all but the first would be passed over",
    "keep one, and put each other spec into a file of its own",
)  # fmt: skip
TAG = error(
    "Y017", "A YAML tag (!name)", "what a value is follows from its key, never from a tag", "write the value without it"
)
# These too would show a text in another order than it is written in.
_INVISIBLE_IN_TEXT = re.compile(f"{INVISIBLE.pattern}|[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
# `second:{priority: 2}`, which YAML reads as the key `second:{priority`.
_RUN_ON = re.compile(r"([\w.-]+):[\[{\"']")
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


class Lost(NamedTuple):
    """An entry that may be lost from the mapping at `place`, or from another of the `levels` that end there.

    Where its key could be read, it is in the data without a value.
    """

    place: Place
    key: str | None
    levels: int


@dataclass
class Document:
    """What a text holds: plain values, the places of those that could not be read, and what was found on the way.

    `data` is None where the text is no mapping. `empty`: the places of keys with nothing behind them, not even `null`.
    """

    data: dict[str, Any] | None
    root: Position
    unreadable: list[Place]
    lost: list[Lost]
    findings: list[Finding]
    empty: list[Place] = field(default_factory=list)


def read_document(text: str) -> Document:
    """Read YAML. What is wrong is found, and never raised; what is no YAML is passed over."""
    recovery = Recovery(text.removeprefix("\ufeff"))
    if not recovery.is_text:
        return Document(None, Position(1, 1), [], [], recovery.findings)
    while True:
        reader = _Reader(recovery.text, recovery.gap)
        try:
            data = reader.document()
        except _Stop:
            data = None
        except yaml.MarkedYAMLError as broken:
            recovery.mend(broken, reader.parser)
            continue
        if recovery.is_cut_short:
            reader.lost.append(Lost(last := _last_place(data), None, len(last) + 1))
        findings = recovery.findings + reader.findings
        return Document(data, reader.root, reader.unreadable, reader.lost, findings, reader.empty)


class _Stop(Exception):
    """No more of the text can be read; there is a finding that says why."""


class _Reader:
    """Reads a text in which `gap` stands for what was no YAML."""

    def __init__(self, text: str, gap: str):
        self.parser = Parser(text)
        self._gap = gap
        self.root = Position(1, 1)
        self.unreadable: list[Place] = []
        self.lost: list[Lost] = []
        self.empty: list[Place] = []
        self._incomplete: set[Place] = set()
        self.findings: list[Finding] = []

    def document(self) -> dict[str, Any]:
        self.parser.event()  # the start of the stream
        event = self.parser.event()
        if isinstance(event, yaml.StreamEndEvent):
            self._found(NO_MAPPING, event, (), "the file is empty")
            raise _Stop
        event = self.parser.event()
        if not isinstance(event, yaml.MappingStartEvent):
            self.parser.finish()  # as it may be a mapping of which the first line is broken
            self._found(NO_MAPPING, event, (), "the file holds no mapping")
            raise _Stop
        data: dict[str, Any] = self._value(event, (), self.root)
        self.parser.event()  # the end of the document
        event = self.parser.event()
        if not isinstance(event, yaml.StreamEndEvent):
            self._found(SEVERAL, event, (), "another document starts here")
        return data

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
        read = self._list if isinstance(event, yaml.SequenceStartEvent) else self._mapping
        return read(place, position)

    def _scalar(self, event: yaml.ScalarEvent, place: Place) -> Any:
        if self._gap in event.value:
            self.unreadable.append(place)
            return None
        if found := _INVISIBLE_IN_TEXT.search(event.value):
            self._found(CONTROL, event, place, f"the text holds the character {found[0]!r}")
        if found or event.tag is not None:
            self.unreadable.append(place)
            return None
        if event.style is None and not event.value:
            self.empty.append(place)
        return _plain(event.value) if event.style is None else event.value

    def _list(self, place: Place, position: Position) -> list[Any]:
        items: list[Any] = []
        while not isinstance(event := self.parser.event(), yaml.SequenceEndEvent):
            index = len(items)
            within = position.within[index] = _position(event)
            items.append(self._value(event, (*place, index), within))
        return items

    def _mapping(self, place: Place, position: Position) -> dict[str, Any]:
        items: dict[str, Any] = {}
        while not isinstance(key := self.parser.event(), yaml.MappingEndEvent):
            name = self._key(key, place)
            if self._gap in str(name):
                self._lose(str(name), place, items)
                name = None
            if name is None:
                with self._unread(place):
                    self._value(self.parser.event(), place, Position(1, 1))
                continue
            here = (*place, name)
            within = _position(key)
            value = self._value(self.parser.event(), here, within)
            if name in position.within:
                first = position.within[name]
                self._found(TWICE, key, here, f"this key is already on line {first.line}")
                value = self._joined(items[name], value, here)
                within.within = {**first.within, **within.within}
            items[name] = value
            position.within[name] = within
        if not position.within and place in self._incomplete:
            self.unreadable.append(place)  # as it may be no mapping at all
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
        elif event.style is None and (run_on := _RUN_ON.match(event.value)):
            at = _position(event)
            self.findings.append(Finding(at.line, at.column, without_colon(event.value)))
            return f"{self._gap}{run_on[1]}"
        elif found := _INVISIBLE_IN_TEXT.search(event.value):
            self._found(CONTROL, event, place, f"the key holds the character {found[0]!r}")
        else:
            return str(event.value)
        return None

    def _lose(self, key: str, place: Place, items: dict[str, Any]) -> None:
        name = key.replace(self._gap, "")
        self.lost.append(Lost(place, name or None, key.count(self._gap)))
        self._incomplete.add(place)
        if name:
            items.setdefault(name, None)

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
        findings, unreadable, empty = len(self.findings), len(self.unreadable), len(self.empty)
        yield
        del self.findings[findings:], self.unreadable[unreadable:], self.empty[empty:]

    def _found(self, rule: Rule, event: Any, place: Place, what: str) -> None:
        mark = event.start_mark
        self.findings.append(Finding(mark.line + 1, mark.column + 1, rule.at(place, what)))


def _position(event: Any) -> Position:
    return Position(event.start_mark.line + 1, event.start_mark.column + 1)


def _last_place(data: Any) -> Place:
    """The way to what stands last."""
    place: list[str | int] = []
    while isinstance(data, dict | list) and data:
        place.append(list(data)[-1] if isinstance(data, dict) else len(data) - 1)
        data = data[place[-1]]  # type: ignore[index]
    return tuple(place)


def _plain(text: str) -> Any:
    """The value of a text without quotes."""
    if text in _WORDS:
        return _WORDS[text]
    if _INTEGER.fullmatch(text):
        return int(text)
    return float(text) if _DECIMAL.fullmatch(text) else text
