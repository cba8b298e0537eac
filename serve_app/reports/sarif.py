"""Findings as SARIF 2.1.0 (OASIS, Static Analysis Results Interchange Format), for code scanning and editors."""

from __future__ import annotations

import json
from importlib.metadata import version
from pathlib import Path
from typing import Any
from urllib.parse import quote

from serve_app.spec.findings import Finding, Rule
from serve_app.spec.load import Report

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def render_sarif(report: Report) -> str:
    """A log with one run: the rules that were broken, and a result for each finding."""
    rules = {finding.code: finding.fault.rule for finding in report.findings}
    numbers = {code: index for index, code in enumerate(sorted(rules))}
    run = {
        "tool": {
            "driver": {
                "name": "tandem",
                "version": version("tandem-serve"),
                "rules": [_rule(rules[code]) for code in numbers],
            }
        },
        "columnKind": "unicodeCodePoints",
        "results": [_result(report.file, finding, numbers[finding.code]) for finding in report.findings],
    }
    log = {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}
    return json.dumps(log, indent=2, ensure_ascii=False) + "\n"


def _rule(rule: Rule) -> dict[str, Any]:
    return {
        "id": rule.code,
        "shortDescription": {"text": rule.title},
        "fullDescription": {"text": f"{rule.title}: {rule.consequence}"},
        "help": {"text": rule.remedy},
        "defaultConfiguration": {"level": rule.severity},
    }


def _result(file: str, finding: Finding, number: int) -> dict[str, Any]:
    return {
        "ruleId": finding.code,
        "ruleIndex": number,
        "level": finding.severity,
        "message": {"text": finding.message},
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": {"uri": _uri(file)},
                    "region": {"startLine": finding.line, "startColumn": finding.column},
                },
                "logicalLocations": [{"fullyQualifiedName": finding.place}],
            }
        ],
    }


def _uri(file: str) -> str:
    """A path as the relative reference, or the file: URI, that RFC 3986 makes of it."""
    return Path(file).as_uri() if Path(file).is_absolute() else quote(file)
