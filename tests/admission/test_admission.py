"""Admission around asyncio's tasks: who is cancelled, also at the very moment of its turn, takes nobody's place."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable

import pytest

from serve_app.admission import Admission, AdmissionLimits, TierLimits
from serve_app.context import RequestContext
from serve_app.problem import Problem
from tests.admission.events import limits

KIND = "/v1/verify"


class Requests:
    """Requests of which each works until it is told to end, by a clock that the test moves."""

    def __init__(self, limits: AdmissionLimits):
        self.now = 1000.0
        self.disturbed = 0.0
        self.admission = Admission(limits, clock=lambda: self.now, disturbed=lambda: self.disturbed)
        self.working: list[str] = []
        self.priorities: dict[str, int] = {}
        self.ends: dict[str, asyncio.Event] = {}

    async def begin(self, name: str, priority: int = 1, allowed: float = 100.0) -> asyncio.Task[None]:
        self.ends[name] = asyncio.Event()
        context = RequestContext(name, priority, self.now + allowed)

        async def work() -> None:
            with self.admission.admitted(context, KIND) as admitted:
                async with admitted as granted:
                    self.priorities[name] = granted.priority
                    self.working.append(name)
                    await self.ends[name].wait()

        task = asyncio.create_task(work())
        await settled()
        return task

    async def end(self, name: str) -> None:
        self.ends[name].set()
        await settled()


async def settled() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def problem_of(task: asyncio.Task[None]) -> Problem:
    problem = task.exception()
    assert isinstance(problem, Problem)
    return problem


async def test_one_after_the_other_gets_its_turn() -> None:
    requests = Requests(limits(2))
    for name in "abc":
        await requests.begin(name)
    assert requests.working == ["a", "b"]
    await requests.end("b")
    assert requests.working == ["a", "b", "c"]
    assert requests.admission.requests == 2


async def test_one_too_many_is_refused_as_the_spec_says() -> None:
    requests = Requests(AdmissionLimits(1, 1, 503, 1.5))
    for name in "ab":
        await requests.begin(name)
    problem = problem_of(await requests.begin("c"))
    assert (problem.status, problem.code, problem.retry_after) == (503, "service_full", 1.5)
    await requests.end("a")
    await requests.begin("d")
    assert requests.admission.requests == 2


async def test_who_waits_and_has_to_go_for_a_more_urgent_one_is_told_so() -> None:
    requests = Requests(limits(1, 1))
    await requests.begin("a", 2)
    bulk = await requests.begin("bulk", 2)
    urgent = await requests.begin("urgent", 1)
    await settled()
    assert problem_of(bulk).code == "service_full"
    assert not urgent.done()
    assert requests.admission.requests == 2


async def test_who_waits_is_refused_when_too_little_time_is_left() -> None:
    requests = Requests(limits(1))
    await requests.begin("a")
    requests.now += 2
    await requests.end("a")  # such requests take two seconds
    await requests.begin("b")
    late = await requests.begin("late", allowed=4.01)  # and hardly any longer than four
    await asyncio.wait([late])
    assert problem_of(late).code == "too_late"
    assert (requests.working, requests.admission.requests) == (["a", "b"], 1)


@pytest.mark.parametrize("back", [math.inf, 1002.0], ids=["still away", "back again"])
async def test_what_waited_for_a_server_that_was_away_sends_nobody_away(back: float) -> None:
    adaptive = limits(4, work_within_s={KIND: 1.0})
    requests = Requests(adaptive)
    for name in "abcd":
        await requests.begin(name)
    requests.now += 2
    requests.disturbed = back
    for name in "abcd":
        await requests.end(name)
    for name in "efgh":
        await requests.begin(name)
    assert requests.working == [*"abcdefgh"]
    in_time = await requests.begin("i", allowed=2.0)
    also = await requests.begin("j", allowed=2.0)
    assert not in_time.done()
    assert not also.done()


async def test_who_gives_up_waiting_takes_nobodys_place() -> None:
    requests = Requests(limits(1))
    await requests.begin("a")
    gone = await requests.begin("b")
    await requests.begin("c")
    gone.cancel()
    await settled()
    await requests.end("a")
    assert requests.working == ["a", "c"]
    await requests.end("c")
    await requests.begin("d")
    assert requests.working == ["a", "c", "d"]


@pytest.mark.parametrize("first", ["its turn", "its end"])
async def test_who_gives_up_as_its_turn_comes_passes_it_on(first: str) -> None:
    requests = Requests(limits(1))
    await requests.begin("a")
    gone = await requests.begin("b")
    await requests.begin("c")
    steps: list[Callable[[], object]] = [requests.ends["a"].set, gone.cancel]
    if first == "its turn":
        steps[0]()
        await asyncio.sleep(0)  # a has ended, and b not run yet
        steps[1]()
    else:
        steps[1]()
        steps[0]()
    await settled()
    assert requests.working == ["a", "c"]
    await requests.end("c")
    assert requests.admission.requests == 0


async def test_what_is_begun_for_a_floor_is_as_urgent_as_anything() -> None:
    requests = Requests(limits(1, 10, TierLimits(1, 1, 10), TierLimits(2, 1, 10, 0.5)))
    for name, priority in {"a": 1, "b": 1, "bulk": 2, "more": 2}.items():
        await requests.begin(name, priority)
    for name in ("a", "bulk", "b", "more"):
        await requests.end(name)
    assert requests.working == ["a", "bulk", "b", "more"]
    assert requests.priorities == {"a": 1, "bulk": 1, "b": 1, "more": 2}


@pytest.mark.parametrize(("more", "working"), [(3, ["a", "b", "c"]), (1, ["a"])])
async def test_other_limits_hold_at_once(more: int, working: list[str]) -> None:
    requests = Requests(limits(1))
    for name in "abcd":
        await requests.begin(name)
    requests.admission.change(limits(more))
    await settled()
    assert requests.working == working
