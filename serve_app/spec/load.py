"""Read a spec: YAML with a place for every value, so that each finding can name its line."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import yaml

from serve_app.spec.checks import run_checks
from serve_app.spec.findings import Fault, Faults, Finding, Place, SpecError, error, in_order
from serve_app.spec.schema import Spec
from serve_app.spec.structure import read_structure

NO_FILE = error("Y001", "The file cannot be read", "there is nothing to serve", "give the path of a spec, a UTF-8 text")
NOT_YAML = error("Y002", "The file is not YAML", "nothing in it can be used", "correct it at that line")
NO_MAPPING = error("Y003", "The file holds no mapping", "it is no spec", "start from the project's example")
ALIAS = error("Y004", "An alias (*name)", "one value would hide behind another's name", "write the value out")
TWICE = error("Y005", "A key that is there twice", "YAML would drop the first one in silence", "keep one of the two")
NOT_A_WORD = error("Y006", "A key that is not a plain word", "no part of the spec has such a key", "write a plain word")
TOO_LARGE = error("Y007", "A file too large for a spec", "reading it would take minutes", "split off what is no spec")
TOO_DEEP = error(
    "Y008", "A file nested too deeply for a spec", "no part of a spec is that deep", "correct its brackets"
)

LARGEST = 4 * 2**20
DEEPEST = 64


class Lines:
    """The line of each value in a YAML document."""

    def __init__(self, root: yaml.Node):
        self._root = root

    def of(self, place: Place) -> int:
        """The line (from 1) of the deepest value on the way to `place` that the document has."""
        node, line = self._root, self._root.start_mark.line + 1
        for part in place:
            if isinstance(node, yaml.MappingNode):
                found = [(key, value) for key, value in node.value if key.value == str(part)]
                if not found:
                    continue
                key, node = found[0]
                line = key.start_mark.line + 1
            elif isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
                node = node.value[part]
                line = node.start_mark.line + 1
        return line


class _Loader(yaml.SafeLoader):
    """YAML in which only true, false, null and plain decimal numbers are not text: `no` is a word, not a boolean."""

    yaml_implicit_resolvers: ClassVar[dict[str, Any]] = {}  # type: ignore[misc]


for _tag, _pattern, _first in [
    ("bool", "true|false", "tf"),
    ("null", "null|~|", ["n", "~", ""]),
    ("int", r"-?(0|[1-9]\d*)", "-0123456789"),
    ("float", r"-?(0|[1-9]\d*)\.\d+", "-0123456789"),
]:
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(f"^(?:{_pattern})$"), list(_first))


def _node_faults(node: yaml.Node, seen: set[int], place: Place) -> Faults:
    """Duplicate keys and aliases, which YAML itself would let pass."""
    if id(node) in seen:
        yield ALIAS.at(place, "an alias is not allowed here")
        return
    seen.add(id(node))
    if isinstance(node, yaml.MappingNode):
        keys: dict[str, int] = {}
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                yield NOT_A_WORD.at(place, f"the key on line {key.start_mark.line + 1} is a {key.id}")
                continue
            if key.value in keys:
                yield TWICE.at((*place, key.value), f"this key is already on line {keys[key.value]}")
            keys[key.value] = key.start_mark.line + 1
            yield from _node_faults(value, seen, (*place, key.value))
    elif isinstance(node, yaml.SequenceNode):
        for index, value in enumerate(node.value):
            yield from _node_faults(value, seen, (*place, index))


@dataclass(frozen=True)
class Report:
    """What came of reading a spec: the Spec, unless too little of it could be read, and all findings in order."""

    file: str
    spec: Spec | None
    findings: list[Finding]

    @property
    def errors(self) -> list[Finding]:
        return [finding for finding in self.findings if finding.severity == "error"]

    def usable(self) -> Spec:
        """The Spec. SpecError with all findings where one of them is an error."""
        if self.spec is None or self.errors:
            raise SpecError(self.file, self.findings)
        return self.spec


def examine(text: str, file: str = "cluster/spec.yaml") -> Report:
    """Read the spec in `text` and check all of it."""
    try:
        root = yaml.compose(text, _Loader)
    except yaml.MarkedYAMLError as broken:
        mark = broken.problem_mark or broken.context_mark
        return _unreadable(file, NOT_YAML.at((), str(broken.problem)), mark.line + 1 if mark else 1)
    except yaml.reader.ReaderError as broken:
        remedy = "save the file as plain UTF-8 text"
        return _unreadable(file, NOT_YAML.at((), f"{broken.reason} at position {broken.position}", remedy=remedy))
    if not isinstance(root, yaml.MappingNode):
        return _unreadable(file, NO_MAPPING.at((), "the file holds no mapping"))
    lines = Lines(root)
    faults = list(_node_faults(root, set(), ()))
    loader = _Loader("")
    try:
        data = loader.construct_document(root)
    except yaml.constructor.ConstructorError as broken:
        line = broken.problem_mark.line + 1 if broken.problem_mark else 1
        return _unreadable(file, NOT_YAML.at((), str(broken.problem), remedy="write plain values only"), line)
    finally:
        loader.dispose()
    spec, misshapen = read_structure(data)
    faults += misshapen
    if spec is not None:
        faults += run_checks(spec)
    findings = in_order([Finding(lines.of(fault.place), fault) for fault in faults])
    return Report(file, spec if not misshapen else None, findings)


def _unreadable(file: str, fault: Fault, line: int = 1) -> Report:
    return Report(file, None, [Finding(line, fault)])


def examine_file(path: Path) -> Report:
    """Read the spec in the file at `path` and check all of it."""
    try:
        with path.open("rb") as file:
            raw = file.read(LARGEST + 1)
    except OSError as broken:
        return _unreadable(str(path), NO_FILE.at((), broken.strerror or str(broken)))
    if len(raw) > LARGEST:
        return _unreadable(str(path), TOO_LARGE.at((), f"the file has more than {LARGEST // 2**20} MiB"))
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as broken:
        return _unreadable(str(path), NO_FILE.at((), f"it is not UTF-8 text (byte {broken.start})"))
    return examine(text, str(path))


def load_spec(path: Path) -> Spec:
    """The checked spec in the file at `path`. SpecError where it cannot be used; warnings are passed over."""
    return examine_file(path).usable()


def digest(spec: Spec) -> str:
    """A short name for exactly this spec: the same after a change of comments or layout, another after any other."""
    return hashlib.sha256(spec.model_dump_json().encode()).hexdigest()[:16]
