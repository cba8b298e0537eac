"""Warnings that a spec says are meant."""

from __future__ import annotations

from typing import Any

import pytest

from serve_app.spec.findings import Rule
from tests.rules.case import report

LEVELS: dict[str, Any] = {"models": {"m": {"batching": {"priorities": "none", "queue": {"size": 64}}}}}
LATER = Rule("Z901", "warning", "A warning of a test", "nothing", "nothing")


def accepting(code: str, at: str) -> dict[str, Any]:
    return {**LEVELS, "accept": [{"code": code, "at": at, "because": "it is meant"}]}


def codes(patch: dict[str, Any]) -> list[str]:
    return [finding.code for finding in report(patch).findings]


@pytest.mark.parametrize("at", ["models.m.batching.queue", "models.m"])
def test_a_warning_that_is_accepted_there_or_above_is_left_out(at: str) -> None:
    assert codes(LEVELS) == ["T116"]
    assert codes(accepting("T116", at)) == []


@pytest.mark.parametrize(
    ("code", "at"), [("T116", "models.n"), ("T116", "models.m.batching.que"), ("T117", "models.m")]
)
def test_a_warning_elsewhere_or_of_another_code_stays(code: str, at: str) -> None:
    assert codes(accepting(code, at)) == ["T116"]


def test_an_error_cannot_be_accepted() -> None:
    patch = {
        "models": {"m": {"batching": {"preferred_sizes": [16]}}},
        "accept": [{"code": "T104", "at": "models.m", "because": "it is meant"}],
    }
    assert codes(patch) == ["T104", "Y026"]


def test_what_is_found_beyond_the_text_is_accepted_too() -> None:
    accepted = report({"accept": [{"code": "Z901", "at": "models.m", "because": "it is meant"}]})
    assert accepted.adding([LATER.at(("models", "m"), "x")]).findings == []
    assert [finding.code for finding in accepted.adding([LATER.at(("models",), "x")]).findings] == ["Z901"]


def test_a_warning_that_may_be_accepted_is_left_out_of_a_spec_that_is_broken_elsewhere() -> None:
    wrong = {"service": {"sla": "8"}}
    assert codes({**accepting("T116", "models.m"), **wrong}) == ["Y020"]
    assert codes({**accepting("T116", "models.n"), **wrong}) == ["Y020", "T116"]
    unknown = {"code": 5, "at": "models.m", "because": "it is meant"}
    assert codes({**LEVELS, "accept": [unknown]}) == ["Y012"]
