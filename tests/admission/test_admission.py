"""Who may work, who waits, and who is sent away."""

from __future__ import annotations

import asyncio

import pytest

from serve_app.admission import Admission, AdmissionLimits
from serve_app.problem import Problem


def limits(ongoing: int, queued: int = 10, status: int = 429) -> AdmissionLimits:
    return AdmissionLimits(ongoing, queued, status, 1.5)


class Requests:
    """Requests of which each works until it is told to end."""

    def __init__(self, admission: Admission):
        self.admission = admission
        self.working: list[str] = []
        self.ends: dict[str, asyncio.Event] = {}

    async def begin(self, name: str, priority: int = 1) -> asyncio.Task[None]:
        self.ends[name] = asyncio.Event()

        async def work() -> None:
            with self.admission.admitted():
                async with self.admission.working(priority):
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


async def test_no_more_work_at_a_time_than_may() -> None:
    requests = Requests(Admission(limits(2)))
    for name in "abc":
        await requests.begin(name)
    assert requests.working == ["a", "b"]
    await requests.end("b")
    assert requests.working == ["a", "b", "c"]
    assert requests.admission.requests == 2


async def test_the_more_urgent_comes_first_and_then_the_earlier() -> None:
    requests = Requests(Admission(limits(1)))
    for name, priority in {"first": 1, "bulk": 3, "standard": 2, "late": 2, "urgent": 1}.items():
        await requests.begin(name, priority)
    for name in ("first", "urgent", "standard", "late", "bulk"):
        assert requests.working[-1] == name
        await requests.end(name)


async def test_one_too_many_is_refused_as_the_spec_says() -> None:
    requests = Requests(Admission(limits(1, 1, status=503)))
    for name in "ab":
        await requests.begin(name)
    refused = await requests.begin("c")
    problem = refused.exception()
    assert isinstance(problem, Problem)
    assert (problem.status, problem.code, problem.retry_after) == (503, "service_full", 1.5)
    await requests.end("a")
    await requests.begin("d")
    assert requests.admission.requests == 2


async def test_who_gives_up_waiting_takes_nobodys_place() -> None:
    requests = Requests(Admission(limits(1)))
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


async def test_who_gives_up_as_its_turn_comes_passes_it_on() -> None:
    requests = Requests(Admission(limits(1)))
    await requests.begin("a")
    gone = await requests.begin("b")
    await requests.begin("c")
    requests.ends["a"].set()
    await asyncio.sleep(0)  # a has ended, and b not run yet
    gone.cancel()
    await settled()
    assert requests.working == ["a", "c"]


@pytest.mark.parametrize(("more", "working"), [(3, ["a", "b", "c"]), (1, ["a"])])
async def test_other_limits_hold_at_once(more: int, working: list[str]) -> None:
    requests = Requests(Admission(limits(1)))
    for name in "abcd":
        await requests.begin(name)
    requests.admission.change(limits(more))
    await settled()
    assert requests.working == working
