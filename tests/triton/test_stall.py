"""What is a standstill, on a clock that the test moves."""

from __future__ import annotations

from typing import Any

import pytest

from serve_app.spec import Spec
from serve_app.triton.stall import StallWatch, Work, stall_limits
from tests.rules.case import patched
from tests.rules.server_cases import limited, triton

LIMIT = 10.0


class Watched:
    """A watch over the model m, looked at every second."""

    def __init__(self, limit: float = LIMIT) -> None:
        self.watch = StallWatch({"m": limit}, 1.0)
        self.now = 0.0

    def look(self, pending: int, executions: int, after: float = 1.0) -> list[tuple[str, bool]]:
        self.now += after
        stalls = self.watch.observe(self.now, {"m": Work(pending, executions)})
        return [(stall.model, stall.reload) for stall in stalls]

    def looks(self, count: int, pending: int, executions: int) -> list[tuple[str, bool]]:
        return [stall for _ in range(count) for stall in self.look(pending, executions)]


def test_a_model_whose_requests_wait_for_longer_than_the_limit_while_no_batch_ends_stands_still() -> None:
    m = Watched()
    assert m.looks(11, pending=3, executions=5) == []
    assert m.look(pending=3, executions=5) == [("m", True)]


def test_a_model_without_requests_never_stands_still() -> None:
    assert Watched().looks(100, pending=0, executions=5) == []


def test_a_model_that_works_through_its_queue_never_stands_still() -> None:
    m = Watched()
    for batch in range(20):
        assert m.looks(9, pending=1000, executions=batch) == []


def test_a_model_that_few_ask_in_vain_one_after_the_other_stands_still_too() -> None:
    m = Watched()
    for _ in range(2):
        assert m.looks(5, pending=1, executions=5) == []
        assert m.looks(100, pending=0, executions=5) == []
    assert m.looks(5, pending=1, executions=5) == [("m", True)]


def test_a_batch_that_ends_now_and_then_is_no_standstill_however_few_there_are() -> None:
    m = Watched()
    for batch in range(100):
        assert m.looks(3, pending=1, executions=batch) == []
        assert m.looks(100, pending=0, executions=batch) == []


def test_time_in_which_nobody_looked_does_not_count() -> None:
    """The process that watches may be stopped, or wait for a core, as long as the server's may."""
    m = Watched()
    m.look(pending=1, executions=5)
    assert m.look(pending=1, executions=5, after=100 * LIMIT) == []
    assert m.watch.observe(m.now + 1, {}) == []
    assert m.looks(11, pending=1, executions=5) == []


def test_a_model_that_still_stands_still_after_it_was_reloaded_is_not_reloaded_again() -> None:
    m = Watched()
    assert m.looks(24, pending=1, executions=5) == [("m", True), ("m", False)]


def test_a_model_that_took_long_to_load_anew_and_stands_still_again_is_not_reloaded_again() -> None:
    m = Watched()
    assert m.looks(12, pending=1, executions=5) == [("m", True)]
    m.now += 10 * LIMIT
    m.watch.reloaded("m", m.now)
    assert m.looks(12, pending=1, executions=5) == [("m", False)]


def test_a_model_that_worked_well_for_a_while_is_reloaded_again() -> None:
    m = Watched()
    assert m.looks(12, pending=1, executions=5) == [("m", True)]
    for batch in range(30):
        assert m.look(pending=1, executions=6 + batch) == []
    assert m.looks(12, pending=1, executions=35) == [("m", True)]


def test_each_model_is_judged_by_its_own_limit_and_only_where_it_has_one() -> None:
    watch = StallWatch({"quick": 2.0, "slow": 4.0}, 1.0)
    waiting = dict.fromkeys(("quick", "slow", "unwatched"), Work(1, 0))
    found = [(second, stall.model) for second in range(6) for stall in watch.observe(float(second), waiting)]
    assert found == [(3, "quick"), (5, "slow")]


@pytest.mark.parametrize(
    ("patch", "limits"),
    [
        ({"service": {"sla": "8s"}}, {"m": 16}),
        ({"service": {"sla": "2s"}}, {"m": 10}),
        (triton(watchdog={"limit": "30s"}), {"m": 30}),
        (triton(watchdog={"enabled": False}), {}),
        (limited({"memory": 1}, stock={"memory": 1}), {}),
        (
            {
                **triton(watchdog={"limit": "30s"}),
                "models": {"m": {"sequence": {"idle_timeout": "1min", "direct": {}}}},
            },
            {"m": 90},
        ),
    ],
    ids=["twice the SLA", "ten seconds at the least", "as given", "off", "waits for resources", "a sequence's pauses"],
)
def test_the_limit_of_a_model(patch: dict[str, Any], limits: dict[str, float]) -> None:
    assert stall_limits(Spec.model_validate(patched(patch)), "embedded") == limits
