"""Findings as people read them, and in the forms that machines do."""

from __future__ import annotations

import json
import re
from typing import Any

import click
import pytest

from serve_app.reports import render_github, render_json, render_sarif, render_text
from serve_app.spec.findings import Finding, Rule
from serve_app.spec.load import Report, examine

ERROR = Rule("X001", "error", "A wrong thing, at 100%", "nothing works", "write the right thing")
WARNING = Rule("X002", "warning", "An odd thing", "it is slow", "think again")
WHAT = "50% of a:b,c\nare wrong"


def report(*findings: Finding, file: str = "cluster/spec.yaml") -> Report:
    return Report(file, None, list(findings))


BOTH = report(
    Finding(3, 5, ERROR.at(("models", "m", "inputs"), WHAT)),
    Finding(8, 1, WARNING.at(("ray",), "it is odd", remedy="write ray: {}", consequence="it costs time")),
)
FINE = report()


def lines(text: str) -> list[str]:
    return click.unstyle(text).splitlines()


def test_a_finding_begins_with_where_it_is_and_goes_on_with_why_and_what_to_write() -> None:
    assert lines(render_text(BOTH)) == [
        "cluster/spec.yaml:3:5 error X001 models.m.inputs: 50% of a:b,c are wrong",
        "    nothing works",
        "    → write the right thing",
        "",
        "cluster/spec.yaml:8:1 warning X002 ray: it is odd",
        "    it costs time",
        "    → write ray: {}",
        "",
        "1 error, 1 warning",
    ]


def test_several_findings_are_counted_and_none_is_fine() -> None:
    assert lines(render_text(report(*BOTH.findings, *BOTH.findings)))[-1] == "2 errors, 2 warnings"
    assert lines(render_text(report(BOTH.findings[1])))[-1] == "1 warning"
    assert lines(render_text(FINE)) == ["cluster/spec.yaml: fine"]


def test_lines_are_as_wide_as_the_terminal() -> None:
    long = report(Finding(1, 1, ERROR.at(("a",), "word " * 40)), Finding(1, 1, ERROR.at(("a",), "w", remedy="r " * 90)))
    for width in (50, 80):
        shown = lines(render_text(long, width))
        assert max(map(len, shown)) <= width
        assert all(line.startswith(("cluster", "    ", "2 errors")) for line in shown if line)


def test_a_word_longer_than_the_terminal_is_not_cut() -> None:
    assert "x" * 200 in render_text(report(Finding(1, 1, ERROR.at(("a",), "x" * 200))), 80)


def test_errors_and_warnings_have_colours_of_their_own() -> None:
    shown = render_text(BOTH)
    assert "\x1b[31m\x1b[1merror X001\x1b[0m" in shown
    assert "\x1b[33m\x1b[1mwarning X002\x1b[0m" in shown


def test_json_has_the_documented_shape() -> None:
    assert json.loads(render_json(BOTH)) == {
        "file": "cluster/spec.yaml",
        "findings": [
            {
                "code": "X001",
                "severity": "error",
                "file": "cluster/spec.yaml",
                "line": 3,
                "column": 5,
                "place": "models.m.inputs",
                "message": WHAT,
                "consequence": "nothing works",
                "remedy": "write the right thing",
            },
            {
                "code": "X002",
                "severity": "warning",
                "file": "cluster/spec.yaml",
                "line": 8,
                "column": 1,
                "place": "ray",
                "message": "it is odd",
                "consequence": "it costs time",
                "remedy": "write ray: {}",
            },
        ],
        "summary": {"errors": 1, "warnings": 1},
    }
    assert json.loads(render_json(FINE))["findings"] == []


def test_github_gets_one_line_for_each_finding_with_its_escapes() -> None:
    """From the documentation: % CR LF in messages, and colon and comma in properties too."""
    assert render_github(BOTH) == (
        "::error file=cluster/spec.yaml,line=3,col=5,title=X001%3A A wrong thing%2C at 100%25"
        "::models.m.inputs: 50%25 of a:b,c%0Aare wrong: nothing works; write the right thing\n"
        "::warning file=cluster/spec.yaml,line=8,col=1,title=X002%3A An odd thing"
        "::ray: it is odd: it costs time; write ray: {}\n"
    )
    assert render_github(FINE) == ""


def test_sarif_has_what_the_standard_requires() -> None:
    """Required by the SARIF 2.1.0 schema: version, runs; tool.driver.name; rules' ids; results' messages."""
    log = json.loads(render_sarif(BOTH))
    assert log["version"] == "2.1.0"
    assert log["$schema"].endswith("sarif-2.1.0.json")
    (run,) = log["runs"]
    driver = run["tool"]["driver"]
    assert driver["name"] == "tandem"
    assert [rule["id"] for rule in driver["rules"]] == ["X001", "X002"]
    assert [rule["defaultConfiguration"]["level"] for rule in driver["rules"]] == ["error", "warning"]
    first, second = run["results"]
    assert (first["ruleId"], first["level"], second["ruleId"], second["level"]) == ("X001", "error", "X002", "warning")
    assert first["message"]["text"] == f"{WHAT}: nothing works; write the right thing"
    (location,) = first["locations"]
    assert location["physicalLocation"] == {
        "artifactLocation": {"uri": "cluster/spec.yaml"},
        "region": {"startLine": 3, "startColumn": 5},
    }
    assert location["logicalLocations"] == [{"fullyQualifiedName": "models.m.inputs"}]


def test_each_result_points_at_its_rule() -> None:
    (run,) = json.loads(render_sarif(report(*reversed(BOTH.findings), BOTH.findings[0])))["runs"]
    rules = run["tool"]["driver"]["rules"]
    assert [rules[result["ruleIndex"]]["id"] for result in run["results"]] == ["X002", "X001", "X001"]


def test_a_log_without_results_says_that_there_are_none() -> None:
    (run,) = json.loads(render_sarif(FINE))["runs"]
    assert run["results"] == []


@pytest.mark.parametrize(
    ("file", "uri"),
    [("my specs/a%b.yaml", "my%20specs/a%25b.yaml"), ("/srv/größe.yaml", "file:///srv/gr%C3%B6%C3%9Fe.yaml")],
)
def test_a_path_is_a_uri_in_sarif(file: str, uri: str) -> None:
    (run,) = json.loads(render_sarif(report(BOTH.findings[0], file=file)))["runs"]
    assert run["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == uri


@pytest.mark.parametrize("render", [render_text, render_json, render_github, render_sarif])
def test_any_report_can_be_rendered(render: Any) -> None:
    strange = examine('a: {"x\\ty": 1, "\\u2028": 1, é: 2}\n' + "service: " + "x" * 5000, "größe,a:b.yaml")
    text = render(strange)
    text.encode()
    assert strange.findings
    if render is render_github:
        assert len(text.splitlines()) == len(strange.findings)
        assert all(
            re.match(r"::error file=größe%2Ca%3Ab\.yaml,line=\d+,col=\d+,title=", line)
            for line in text.split("\n")[:-1]
        )
