"""Closed and open loops, against a service that is a function."""

from __future__ import annotations

import asyncio
import itertools
import random

import pytest

from serve_app.bench import loops
from serve_app.bench.loops import ClosedLoop, OpenLoop
from serve_app.bench.samples import Outcome, Sample

ANSWERED = Outcome("answered", "200")


class Service:
    """Answers after a while, and sets `stop` after so many requests."""

    def __init__(self, requests: int):
        self.left = requests
        self.stop = asyncio.Event()
        self.samples: list[Sample] = []
        self.in_flight = self.most = 0

    async def send(self) -> Outcome:
        self.in_flight += 1
        self.most = max(self.most, self.in_flight)
        self.left -= 1
        if not self.left:
            self.stop.set()
        for _ in range(3):
            await asyncio.sleep(0)
        self.in_flight -= 1
        return ANSWERED


async def test_each_client_of_a_closed_loop_waits_for_its_answer() -> None:
    service = Service(100)
    assert await ClosedLoop(7).run(service.send, service.stop, service.samples.append) == 0
    assert service.most == 7
    assert (service.in_flight, len(service.samples)) == (0, 100 - service.left)


async def test_an_open_loop_sends_at_the_moments_of_a_poisson_process_whatever_is_answered() -> None:
    service = Service(50)
    assert await OpenLoop(2000, seed=3).run(service.send, service.stop, service.samples.append) == 0
    drawn = random.Random(3)
    due = sorted(sample.sent for sample in service.samples)
    steps = [later - earlier for earlier, later in itertools.pairwise(due)]
    first, *wanted = [drawn.expovariate(2000) for _ in due]
    assert first > 0
    assert steps == pytest.approx(wanted, abs=1e-6)


async def test_an_open_loop_says_how_many_requests_it_had_no_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loops, "MOST_IN_FLIGHT", 2)
    stop, turns = asyncio.Event(), itertools.count()
    samples: list[Sample] = []

    async def never() -> Outcome:
        next(turns)
        await stop.wait()
        return ANSWERED

    running = asyncio.ensure_future(OpenLoop(5000).run(never, stop, samples.append))
    await asyncio.sleep(0.05)
    stop.set()
    assert await running > 0
    assert (len(samples), next(turns)) == (2, 2)


async def test_what_goes_wrong_in_a_request_comes_up() -> None:
    async def broken() -> Outcome:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await ClosedLoop(2).run(broken, asyncio.Event(), print)
