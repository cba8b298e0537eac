"""Findings as a person reads them at a terminal."""

from __future__ import annotations

import textwrap

import click

from serve_app.spec.findings import Finding
from serve_app.spec.load import Report

_COLOURS = {"error": "red", "warning": "yellow"}
_INDENT = "    "


def render_text(report: Report, width: int | None = None) -> str:
    """The findings in the order of the file, and their count; with colours, which `click.echo` keeps for terminals.

    Each begins with `file:line:column`, which editors and terminals jump to. Below are what comes of it and, after an
    arrow, what to write. Lines are wrapped to `width` columns, where one is given.
    """
    blocks = [_finding(report.file, finding, width) for finding in report.findings]
    return "\n\n".join([*blocks, click.style(summary(report), bold=True)]) + "\n"


def summary(report: Report) -> str:
    """`2 errors, 1 warning`, or that all is fine."""
    counts = {"error": len(report.errors), "warning": len(report.warnings)}
    return ", ".join(count(number, word) for word, number in counts.items() if number) or f"{report.file}: fine"


def count(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


def _finding(file: str, finding: Finding, width: int | None) -> str:
    where = f"{file}:{finding.line}:{finding.column}"
    kind = f"{finding.severity} {finding.code}"
    first = _wrapped(f"{where} {kind} {finding.place}: {finding.fault.what}", width, "")
    styled = click.style(kind, fg=_COLOURS[finding.severity], bold=True)
    return "\n".join(
        [
            first.replace(f" {kind} ", f" {styled} ", 1),
            _wrapped(finding.fault.consequence, width, _INDENT),
            _wrapped(f"→ {finding.fault.remedy}", width, _INDENT),
        ]
    )


def _wrapped(text: str, width: int | None, indent: str) -> str:
    """The text in lines of at most `width`; one word, such as a path, may be longer."""
    if width is None:
        return indent + " ".join(text.split())
    return textwrap.fill(
        text,
        max(width, 40),
        initial_indent=indent,
        subsequent_indent=_INDENT,
        break_long_words=False,
        break_on_hyphens=False,
    )
