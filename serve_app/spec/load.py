"""Read a spec: YAML with a place for every value, so that each finding can name its line."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import yaml
from pydantic import ValidationError

from serve_app.spec.checks import cross_checks
from serve_app.spec.code import code_checks
from serve_app.spec.findings import Finding, Place, SpecError, show_place
from serve_app.spec.schema import Spec


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


def _structure_findings(node: yaml.Node, seen: set[int], place: Place) -> Iterator[Finding]:
    """Duplicate keys and aliases, which YAML itself would let pass."""
    line = node.start_mark.line + 1
    if id(node) in seen:
        yield Finding(line, show_place(place), "an alias (*name) is not allowed here; write the value out")
        return
    seen.add(id(node))
    if isinstance(node, yaml.MappingNode):
        keys: dict[str, int] = {}
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                yield Finding(key.start_mark.line + 1, show_place(place), "a key must be a plain word")
                continue
            if key.value in keys:
                message = f"this key is already on line {keys[key.value]}; keep one of the two"
                yield Finding(key.start_mark.line + 1, show_place((*place, key.value)), message)
            keys[key.value] = key.start_mark.line + 1
            yield from _structure_findings(value, seen, (*place, key.value))
    elif isinstance(node, yaml.SequenceNode):
        for index, value in enumerate(node.value):
            yield from _structure_findings(value, seen, (*place, index))


def _message(error: Any) -> str:
    """pydantic's message in the words of this file."""
    if error["type"] == "extra_forbidden":
        return "unknown key; remove it or correct its spelling"
    if error["type"] == "missing":
        return "this key is missing; add it"
    return str(error["msg"]).removeprefix("Value error, ")


def _validate(data: object, lines: Lines, file: str) -> Spec:
    try:
        return Spec.model_validate(data)
    except ValidationError as invalid:
        findings = []
        for error in invalid.errors():
            place = tuple(part for part in error["loc"] if part != "[key]")
            findings.append(Finding(lines.of(place), show_place(place), _message(error)))
        raise SpecError(file, findings) from None


def parse_spec(text: str, file: str = "cluster/spec.yaml") -> tuple[Spec, Lines]:
    """The spec in `text`, each value checked by itself. SpecError lists every finding."""
    try:
        root = yaml.compose(text, _Loader)
    except yaml.MarkedYAMLError as broken:
        mark = broken.problem_mark or broken.context_mark
        line = mark.line + 1 if mark else 1
        raise SpecError(file, [Finding(line, "YAML", f"{broken.problem}; the file is not valid YAML")]) from None
    except yaml.reader.ReaderError as broken:
        message = f"{broken.reason} at position {broken.position}; save the file as plain UTF-8 text"
        raise SpecError(file, [Finding(1, "YAML", message)]) from None
    if not isinstance(root, yaml.MappingNode):
        raise SpecError(file, [Finding(1, "the spec", "the file holds no mapping; start from the project's example")])
    if structure := list(_structure_findings(root, set(), ())):
        raise SpecError(file, structure)
    loader = _Loader("")
    try:
        data = loader.construct_document(root)
    except yaml.constructor.ConstructorError as broken:
        line = broken.problem_mark.line + 1 if broken.problem_mark else 1
        raise SpecError(file, [Finding(line, "YAML", f"{broken.problem}; write plain values only")]) from None
    finally:
        loader.dispose()
    lines = Lines(root)
    return _validate(data, lines, file), lines


def load_spec(path: Path) -> Spec:
    """The checked spec in the file at `path`. SpecError where it cannot be used."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise SpecError(str(path), [Finding(1, "file", "there is no such file; give the path of a spec")]) from None
    except UnicodeDecodeError:
        raise SpecError(str(path), [Finding(1, "file", "the file is not UTF-8 text; save it as such")]) from None
    spec, lines = parse_spec(text, str(path))
    findings = [
        Finding(lines.of(place), show_place(place), message)
        for place, message in [*cross_checks(spec), *code_checks(spec)]
    ]
    if findings:
        raise SpecError(str(path), findings)
    return spec


def digest(spec: Spec) -> str:
    """A short name for exactly this spec: the same after a change of comments or layout, another after any other."""
    return hashlib.sha256(spec.model_dump_json().encode()).hexdigest()[:16]
