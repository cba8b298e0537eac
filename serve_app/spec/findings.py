"""What is wrong in a spec, and where."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

Place = tuple[str | int, ...]


@dataclass(frozen=True, order=True)
class Finding:
    """Something wrong in a spec: where, and what to write instead."""

    line: int
    place: str
    message: str

    def show(self, file: str) -> str:
        return f"{file}:{self.line}: {self.place}: {self.message}"


class SpecError(Exception):
    """A spec that cannot be used; holds all findings, in the order of the file."""

    def __init__(self, file: str, findings: Sequence[Finding]):
        super().__init__(file, findings)
        self.file = file
        self.findings = sorted(findings)

    def __str__(self) -> str:
        return "\n".join(finding.show(self.file) for finding in self.findings)


def show_place(place: Place) -> str:
    return ".".join(map(str, place)) or "the spec"
