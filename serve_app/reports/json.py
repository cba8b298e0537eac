"""Findings as JSON, for scripts."""

from __future__ import annotations

import json
from typing import Any

from serve_app.spec.findings import Finding
from serve_app.spec.load import Report


def render_json(report: Report) -> str:
    """One object, whose keys stay; more may come.

    {"file", "findings": [{"code", "severity": "error" | "warning", "file", "line", "column", "place", "message",
    "consequence", "remedy"}], "summary": {"errors", "warnings"}}. Lines and columns count from 1; a place is the way to
    the value, as `models.arcface.inputs`.
    """
    whole = {
        "file": report.file,
        "findings": [_finding(report.file, finding) for finding in report.findings],
        "summary": {"errors": len(report.errors), "warnings": len(report.warnings)},
    }
    return json.dumps(whole, indent=2, ensure_ascii=False) + "\n"


def _finding(file: str, finding: Finding) -> dict[str, Any]:
    return {
        "code": finding.code,
        "severity": finding.severity,
        "file": file,
        "line": finding.line,
        "column": finding.column,
        "place": finding.place,
        "message": finding.fault.what,
        "consequence": finding.fault.consequence,
        "remedy": finding.fault.remedy,
    }
