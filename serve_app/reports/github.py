"""Findings as GitHub Actions' workflow commands, which it shows at the lines of a pull request.

Source of the form and of its escapes: "Workflow commands for GitHub Actions" and actions/toolkit, `core/command.ts`.
"""

from __future__ import annotations

from serve_app.spec.findings import Finding
from serve_app.spec.load import Report


def render_github(report: Report) -> str:
    """A line for each finding: `::error file=…,line=…,col=…,title=…::message`."""
    return "".join(f"{_command(report.file, finding)}\n" for finding in report.findings)


def _command(file: str, finding: Finding) -> str:
    properties = {
        "file": file,
        "line": str(finding.line),
        "col": str(finding.column),
        "title": f"{finding.code}: {finding.fault.rule.title}",
    }
    shown = ",".join(f"{key}={_property(value)}" for key, value in properties.items())
    return f"::{finding.severity} {shown}::{_message(f'{finding.place}: {finding.message}')}"


def _message(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _message(text).replace(":", "%3A").replace(",", "%2C")
