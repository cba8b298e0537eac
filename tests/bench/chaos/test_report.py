"""The table and the JSON of a run."""

from __future__ import annotations

import json

from serve_app.bench.chaos.outcomes import Tally
from serve_app.bench.chaos.report import as_json, table
from serve_app.bench.chaos.run import Result

WELL = Result("triton-killed", 30.0, Tally(20, {"503": 3, "504 deadline_exceeded": 1}), 2.25)
LEAKING = Result("stage-killed", 60.0, Tally(5), 1.0, ["2 ports more in documents"])
STRANGE = Result("model-raises", 30.0, Tally(5, {}, {"500 internal_error": 2}), 1.0)
LOST = Result("model-hangs", 90.0, Tally(5))
SKIPPED = Result("log-disk-full", 30.0, skipped="it needs a mount namespace")
FAILED = Result("redeploy", 30.0, Tally(1), 0.0, failed="Ray's dashboard failed")


def test_a_row_shows_what_was_answered_and_refused_and_when_all_was_well() -> None:
    head, row = table([WELL]).splitlines()
    assert head.split("  ")[0] == "fault"
    assert "20" in row
    assert "3 of 503, 1 of 504 deadline_exceeded" in row
    assert row.endswith("nothing")
    assert "2.2 s" in row


def test_what_was_wrong_has_a_line_of_its_own() -> None:
    text = table([LEAKING, STRANGE, LOST, SKIPPED, FAILED])
    assert "stage-killed left behind: 2 ports more in documents" in text
    assert "2 of 500 internal_error" in text
    assert "not in 90 s" in text
    assert "log-disk-full was not done: it needs a mount namespace" in text
    assert "redeploy failed: Ray's dashboard failed" in text


def test_only_what_recovers_and_leaves_and_shows_nothing_strange_is_well() -> None:
    results = [WELL, LEAKING, STRANGE, LOST, SKIPPED, FAILED]
    assert [each["well"] for each in json.loads(as_json(results))] == [True, False, False, False, True, False]
    assert json.loads(as_json([WELL]))[0]["seen"]["refused"] == {"503": 3, "504 deadline_exceeded": 1}
