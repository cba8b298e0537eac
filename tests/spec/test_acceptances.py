"""Warnings that a spec says are meant."""

from __future__ import annotations

from typing import Any

import pytest

from serve_app.live.findings import REFUSES
from tests.rules.case import Case, report
from tests.rules.tables import CASES

LEVELS: dict[str, Any] = {"models": {"m": {"batching": {"priorities": "none", "queue": {"size": 64}}}}}


def accepting(code: str, at: str) -> dict[str, Any]:
    return {**LEVELS, "accept": [{"code": code, "at": at, "because": "it is meant"}]}


def codes(patch: dict[str, Any]) -> list[str]:
    return [finding.code for finding in report(patch).findings]


@pytest.mark.parametrize("at", ["models.m.batching.queue", "models.m"])
def test_a_warning_that_is_accepted_there_or_above_is_left_out(at: str) -> None:
    assert codes(LEVELS) == ["T116"]
    assert codes(accepting("T116", at)) == []


@pytest.mark.parametrize(
    ("code", "at", "besides"),
    [
        ("T116", "models.n", "Y029"),
        ("T116", "models.m.batching.que", "Y029"),
        ("T116", "models.m.batching.preferred_sizes", "Y030"),
        ("T117", "models.m", "Y030"),
        ("T999", "models.m", "Y028"),
    ],
)
def test_a_warning_elsewhere_or_of_another_code_stays(code: str, at: str, besides: str) -> None:
    assert sorted(codes(accepting(code, at))) == ["T116", besides]


def test_a_code_that_does_not_exist_is_answered_with_one_that_does() -> None:
    (found,) = report({"accept": [{"code": "T611", "at": "models", "because": "x"}]}).findings
    assert (found.code, found.place) == ("Y028", "accept.0.code")
    assert found.fault.remedy.startswith("did you mean T")


@pytest.mark.parametrize(
    ("at", "says"),
    [
        ("models.mm", "there is no 'mm' in models: nothing is ever found there; did you mean m?"),
        (
            "models.m.batchin.queue",
            "there is no 'batchin' in models.m: nothing is ever found there; did you mean batch",
        ),
        ("accept.1", "there is no '1' in accept"),
        ("", "there is no '' in the spec"),
    ],
)
def test_a_place_that_does_not_exist_is_answered_with_one_that_does(at: str, says: str) -> None:
    (found,) = report({"accept": [{"code": "T116", "at": at, "because": "x"}]}).findings
    assert (found.code, found.place) == ("Y029", "accept.0.at")
    assert says in found.message


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_wherever_something_is_found_it_can_be_accepted(case: Case) -> None:
    places = [finding.place for finding in report(case.patch).warnings]
    entries = [{"code": "T116", "at": place, "because": "it is meant"} for place in places]
    assert "Y029" not in codes({**case.patch, "accept": entries})


def test_an_acceptance_that_meets_nothing_can_be_meant_too() -> None:
    accepted = [
        {"code": "T116", "at": "models.m.batching.queue", "because": "it comes and goes"},
        {"code": "Y030", "at": "accept.0", "because": "it comes and goes"},
    ]
    assert codes({"accept": accepted}) == []
    assert codes({**LEVELS, "accept": accepted}) == []


@pytest.mark.parametrize("code", ["W015", "L007", "L999", "W999"])
def test_nothing_is_said_of_what_only_files_or_a_live_check_can_show(code: str) -> None:
    assert codes({"accept": [{"code": code, "at": "models.m", "because": "it is meant"}]}) == []


def test_an_acceptance_that_a_later_check_does_not_meet_is_found_after_it() -> None:
    accepting_both = [{"code": code, "at": "models.m", "because": "it is meant"} for code in ("L007", "L012")]
    checked = report({"accept": accepting_both}).adding([REFUSES.at(("models", "m"), "x")])
    assert checked.findings == []
    assert checked.settled("W").findings == []
    assert [(finding.code, finding.place) for finding in checked.settled("L").findings] == [("Y030", "accept.1")]


def test_an_error_cannot_be_accepted() -> None:
    patch = {
        "models": {"m": {"batching": {"preferred_sizes": [16]}}},
        "accept": [{"code": "T104", "at": "models.m", "because": "it is meant"}],
    }
    assert codes(patch) == ["T104", "Y026"]


def test_what_is_found_beyond_the_text_is_accepted_too() -> None:
    accepted = report({"accept": [{"code": "L007", "at": "models.m", "because": "it is meant"}]})
    assert accepted.adding([REFUSES.at(("models", "m"), "x")]).findings == []
    assert [finding.code for finding in accepted.adding([REFUSES.at(("models",), "x")]).findings] == ["L007"]


def test_a_warning_that_may_be_accepted_is_left_out_of_a_spec_that_is_broken_elsewhere() -> None:
    wrong = {"service": {"sla": "8"}}
    assert codes({**accepting("T116", "models.m"), **wrong}) == ["Y020"]
    assert codes({**accepting("T116", "models.m.inputs"), **wrong}) == ["Y020", "T116"]
    unknown = {"code": 5, "at": "models.m", "because": "it is meant"}
    assert codes({**LEVELS, "accept": [unknown]}) == ["Y012"]
