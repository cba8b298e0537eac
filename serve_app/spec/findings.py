"""What is wrong in a spec: the rules that can be broken, and where one was."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

Place = tuple[str | int, ...]
Severity = Literal["error", "warning"]

RULES: dict[str, Rule] = {}


@dataclass(frozen=True)
class Rule:
    """Something that a spec can have wrong. Its code never changes; `docs/findings.md` is made of these."""

    code: str
    severity: Severity
    title: str
    consequence: str
    remedy: str

    def at(self, place: Place, what: str, *, remedy: str | None = None, consequence: str | None = None) -> Fault:
        """This rule, broken at `place`: `what` says it with the spec's own values; the rest only where it differs."""
        return Fault(self, place, what, consequence or self.consequence, remedy or self.remedy)


@dataclass(frozen=True)
class Fault:
    """A broken rule at a place of the spec."""

    rule: Rule
    place: Place
    what: str
    consequence: str
    remedy: str

    @property
    def message(self) -> str:
        """What is wrong, what comes of it, and what to write."""
        return f"{self.what}: {self.consequence}; {self.remedy}"


Faults = Iterator[Fault]


@dataclass(frozen=True)
class Finding:
    """A fault with its line and column in the file, both from 1."""

    line: int
    column: int
    fault: Fault

    @property
    def code(self) -> str:
        return self.fault.rule.code

    @property
    def severity(self) -> Severity:
        return self.fault.rule.severity

    @property
    def place(self) -> str:
        return show_place(self.fault.place)

    @property
    def message(self) -> str:
        return self.fault.message

    def show(self, file: str) -> str:
        return f"{file}:{self.line}: {self.severity} {self.code} at {self.place}: {self.message}"


def error(code: str, title: str, consequence: str, remedy: str) -> Rule:
    """Register a rule that no spec may break."""
    return _register(Rule(code, "error", title, consequence, remedy))


def warning(code: str, title: str, consequence: str, remedy: str) -> Rule:
    """Register a rule that may be broken knowingly."""
    return _register(Rule(code, "warning", title, consequence, remedy))


def _register(rule: Rule) -> Rule:
    if rule.code in RULES:
        raise ValueError(f"two rules have the code {rule.code}: {RULES[rule.code].title!r} and {rule.title!r}")
    RULES[rule.code] = rule
    return rule


class SpecError(Exception):
    """A spec that cannot be used; holds all findings, in the order of the file."""

    def __init__(self, file: str, findings: Sequence[Finding]):
        super().__init__(file, findings)
        self.file = file
        self.findings = in_order(findings)

    def __str__(self) -> str:
        return "\n".join(finding.show(self.file) for finding in self.findings)


def in_order(findings: Sequence[Finding]) -> list[Finding]:
    """Each once, as they come in the file."""
    return sorted(dict.fromkeys(findings), key=lambda each: (each.line, each.column, each.code, each.place))


def show_place(place: Place) -> str:
    """The way to the value, as `models.arcface.inputs`; a key that is no word is quoted."""
    return ".".join(repr(step) if re.search(r"^$|[^\S ]", str(step)) else str(step) for step in place) or "the spec"
