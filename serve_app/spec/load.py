"""Read a spec: YAML with a place for every value, so that each finding can name its line."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from serve_app.files import TooLarge, read_file
from serve_app.spec.checks import run_checks
from serve_app.spec.checks.acceptances import BEYOND_THE_TEXT, UNMET
from serve_app.spec.document import Position, read_document
from serve_app.spec.findings import RULES, Fault, Finding, SpecError, error, in_order
from serve_app.spec.part import UNKNOWN
from serve_app.spec.schema import Acceptance, Spec
from serve_app.spec.structure import Structure, read_structure

NO_FILE = error("Y001", "The file cannot be read", "there is nothing to serve", "give the path of a spec, a UTF-8 text")
TOO_LARGE = error("Y007", "A file too large for a spec", "reading it would take minutes", "split off what is no spec")

LARGEST = 2**18


@dataclass(frozen=True)
class Report:
    """What came of reading a spec: the Spec, unless too little of it could be read, and all findings in order."""

    file: str
    spec: Spec | None
    findings: list[Finding]
    root: Position = field(default_factory=lambda: Position(1, 1), repr=False)
    accepted: Sequence[Acceptance] = ()
    met: frozenset[int] = frozenset()  # the indices of those that left out a warning

    def adding(self, faults: Iterable[Fault]) -> Report:
        """The report with faults that were found beyond the spec's text, at their places in it.

        Warnings that the spec accepts are left out.
        """
        unexpected: list[Finding] = []
        met: set[int] = set()
        for finding in (_finding(self.root, fault) for fault in faults):
            takers = {index for index, each in enumerate(self.accepted) if _accepts(each, finding)}
            met |= takers
            if not takers:
                unexpected.append(finding)
        return replace(self, findings=in_order([*self.findings, *unexpected]), met=self.met | met)

    def settled(self, families: str) -> Report:
        """The report after every check for codes of these families has run, with the acceptances that met nothing.

        Where there is an error, which may hide what they are for, it stays as it is.
        """
        if self.spec is None or self.errors:
            return self
        return self.adding(
            UNMET.at(("accept", index), f"there is no {each.code} at {each.at}")
            for index, each in enumerate(self.accepted)
            if index not in self.met and each.code[0] in families and each.code != UNMET.code
        )

    @property
    def errors(self) -> list[Finding]:
        return [finding for finding in self.findings if finding.severity == "error"]

    @property
    def warnings(self) -> list[Finding]:
        return [finding for finding in self.findings if finding.severity == "warning"]

    def usable(self) -> Spec:
        """The Spec. SpecError with all findings where one of them is an error."""
        if self.spec is None or self.errors:
            raise SpecError(self.file, self.findings)
        return self.spec


def examine(text: str, file: str = "cluster/spec.yaml") -> Report:
    """Read the spec in `text` and check all of it."""
    document = read_document(text)
    if document.data is None:
        return Report(file, None, in_order(document.findings))
    structure = read_structure(document.data, document.unreadable, document.lost, document.empty)
    for place, name in structure.renamed:
        document.root.rename(place, name)
    broken = structure.faults or document.findings
    faults = structure.faults + _checked(structure, whole=not broken)
    spec = None if broken else structure.spec
    report = Report(file, spec, document.findings, document.root, _accepted(structure.spec)).adding(faults)
    return report.settled("".join({code[0] for code in RULES} - {*BEYOND_THE_TEXT}))


def _checked(structure: Structure, whole: bool) -> list[Fault]:
    """What does not fit together, whether or not there was more in the spec than could be read."""
    if structure.spec is None:
        return []
    faults = run_checks(structure.spec, whole=whole)
    if structure.bare is None:
        return faults
    found = {(fault.rule.code, fault.place) for fault in faults}
    return [fault for fault in run_checks(structure.bare, whole=False) if (fault.rule.code, fault.place) in found]


def _accepted(spec: Spec | None) -> list[Acceptance]:
    """Each of them may be UNKNOWN, or have what is."""
    if spec is None:
        return []
    return [spec.accept] if spec.accept is UNKNOWN else spec.accept


def _accepts(acceptance: Acceptance, finding: Finding) -> bool:
    """Whether the warning is accepted, or may be for all that is known."""
    if finding.severity != "warning" or acceptance is UNKNOWN:
        return finding.severity == "warning"
    if acceptance.code is not UNKNOWN and acceptance.code != finding.code:
        return False
    return acceptance.at is UNKNOWN or f"{finding.place}.".startswith(f"{acceptance.at}.")


def _finding(root: Position, fault: Fault) -> Finding:
    position = root.of(fault.place)
    return Finding(position.line, position.column, fault)


def _unreadable(file: str, fault: Fault, line: int = 1) -> Report:
    return Report(file, None, [Finding(line, 1, fault)])


def examine_to_write(text: str, file: str) -> Report:
    """What `examine_file` will say of the spec in `text`, once it is in the file."""
    if (size := len(text.encode(errors="surrogatepass"))) > LARGEST:
        return _unreadable(file, TOO_LARGE.at((), f"it has {size} bytes, more than {LARGEST}"))
    return examine(text, file)


def examine_file(path: Path) -> Report:
    """Read the spec in the file at `path` and check all of it."""
    try:
        raw = read_file(path, LARGEST, pipe=True)
    except TooLarge as broken:
        return _unreadable(str(path), TOO_LARGE.at((), str(broken.strerror)))
    except OSError as broken:
        return _unreadable(str(path), NO_FILE.at((), broken.strerror or str(broken)))
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")):
        return _unreadable(str(path), NO_FILE.at((), "it is UTF-16 or UTF-32 text", remedy="save it as UTF-8"))
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as broken:
        what = f"the byte 0x{raw[broken.start]:02x} is not UTF-8 text"
        fault = NO_FILE.at((), what, remedy="save it as UTF-8")
        return _unreadable(str(path), fault, raw.count(b"\n", 0, broken.start) + 1)
    return examine(text, str(path))


def load_spec(path: Path) -> Spec:
    """The checked spec in the file at `path`. SpecError where it cannot be used; warnings are passed over."""
    return examine_file(path).usable()
