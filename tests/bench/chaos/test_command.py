"""`tandem bench chaos` before it starts anything."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from click.testing import CliRunner, Result

from serve_app.bench.chaos import room, run
from serve_app.bench.chaos.faults import FAULTS
from serve_app.cli import main


def chaos(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["bench", "chaos", *arguments])


def test_the_faults_are_listed_with_what_each_does() -> None:
    lines = chaos("--list").stdout.splitlines()
    assert [line.split()[0] for line in lines] == list(FAULTS)
    assert all(len(line.split()) > 2 for line in lines)


def test_what_ends_the_deployment_comes_last() -> None:
    assert [fault.ends for fault in FAULTS.values()].index(True) == len(FAULTS) - 1


def test_a_fault_that_there_is_not_is_wrong_usage() -> None:
    result = chaos("--fault", "earthquake")
    assert (result.exit_code, "there is no 'earthquake'; there are triton-killed" in result.stderr) == (2, True)


def test_a_soak_is_without_faults() -> None:
    assert chaos("--soak", "60", "--fault", "triton-killed").exit_code == 2


def test_an_interrupted_run_shows_the_faults_that_it_has_done(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(source: Any, faults: Any, tell: Callable[[run.Result], None], progress: Any) -> None:
        tell(run.Result("triton-killed", 30.0, healthy_s=1.25))
        raise SystemExit(143)

    monkeypatch.setattr(room, "enter", lambda: None)
    monkeypatch.setattr(run, "chaos", interrupted)
    result = chaos("--json")
    assert result.exit_code == 143
    assert [(each["fault"], each["healthy_s"]) for each in json.loads(result.stdout)] == [("triton-killed", 1.25)]
