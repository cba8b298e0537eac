"""When wake-up requests are sent, on a clock that the test moves."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import ExitStack, suppress

import pytest

from serve_app.spec import Spec
from serve_app.triton.client import WakeUpsOf
from serve_app.triton.wake_up import AFTER_ANSWER_S, BACKSTOP_S, WakeUps
from tests.rules.case import patched


class Clock:
    """Stands for the event loop's timers."""

    def __init__(self) -> None:
        self.now = 0.0
        self.timers: list[Timer] = []

    def time(self) -> float:
        return self.now

    def call_at(self, when: float, callback: Callable[[], None]) -> Timer:
        timer = Timer(when, callback)
        self.timers.append(timer)
        return timer

    async def advance(self, seconds: float) -> None:
        end = self.now + seconds
        while due := [timer for timer in self.timers if not timer.cancelled and timer.when <= end]:
            first = min(due, key=lambda timer: timer.when)
            self.timers.remove(first)
            self.now = first.when
            first.callback()
        self.now = end
        await asyncio.sleep(0)


class Timer:
    def __init__(self, when: float, callback: Callable[[], None]):
        self.when, self.callback, self.cancelled = when, callback, False

    def cancel(self) -> None:
        self.cancelled = True


@pytest.fixture
async def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(asyncio.get_running_loop(), "call_at", clock.call_at)
    monkeypatch.setattr(asyncio.get_running_loop(), "time", clock.time)
    return clock


class Sent:
    def __init__(self) -> None:
        self.times = 0
        self.answered = asyncio.Event()

    async def send(self) -> None:
        self.times += 1
        await self.answered.wait()


async def test_a_request_that_is_answered_at_once_causes_none(clock: Clock) -> None:
    sent = Sent()
    wake_ups = WakeUps(sent.send)
    for _ in range(100):
        with wake_ups:
            await clock.advance(BACKSTOP_S / 2)
        await clock.advance(1)
    assert sent.times == 0


async def test_an_answer_causes_one_for_those_that_still_wait(clock: Clock) -> None:
    sent = Sent()
    wake_ups = WakeUps(sent.send)
    with wake_ups:
        with wake_ups, wake_ups:
            pass
        await clock.advance(AFTER_ANSWER_S)
        assert sent.times == 1
    sent.answered.set()


async def test_requests_behind_another_process_cause_one_each_backstop(clock: Clock) -> None:
    sent = Sent()
    wake_ups = WakeUps(sent.send)
    with wake_ups:
        await clock.advance(BACKSTOP_S * 5)
        assert sent.times == 5
    await clock.advance(1)
    assert sent.times == 5
    sent.answered.set()


async def test_one_that_is_not_answered_yet_does_not_hold_up_the_next(clock: Clock) -> None:
    """Triton answers a wake-up when it forms the next batch; waiting for that cost half a second a batch."""
    sent = Sent()
    wake_ups = WakeUps(sent.send)
    with wake_ups:
        for answers in range(1, 4):
            with wake_ups:
                pass
            await clock.advance(AFTER_ANSWER_S)
            assert sent.times == answers
    sent.answered.set()


async def test_requests_that_follow_an_answer_wake_it_themselves(clock: Clock) -> None:
    sent = Sent()
    wake_ups = WakeUps(sent.send)
    with ExitStack() as others:
        others.enter_context(wake_ups)
        for _ in range(100):
            with wake_ups:
                await clock.advance(AFTER_ANSWER_S / 2)
        assert sent.times == 0
        await clock.advance(AFTER_ANSWER_S)
        assert sent.times == 1
    sent.answered.set()


async def test_requests_that_are_refused_wake_nobody(clock: Clock) -> None:
    """Of a full queue; it has to be worked off however many more come."""
    sent = Sent()
    wake_ups = WakeUps(sent.send)
    with wake_ups:
        with wake_ups:
            pass
        for _ in range(10):
            with suppress(RuntimeError), wake_ups:
                await clock.advance(AFTER_ANSWER_S / 2)
                raise RuntimeError("refused")
        assert sent.times >= 1
    sent.answered.set()


class Unconnected:
    """Counts wake-up requests."""

    def __init__(self) -> None:
        self.woken = 0

    async def wake(self, request: object) -> None:
        self.woken += 1


async def test_all_who_call_a_model_over_one_connection_share_its_wake_ups(clock: Clock) -> None:
    """Also by an ensemble, whose requests wait in the queues of its steps; twice in one is one queue."""
    step = {"model": "m", "takes": {"x": "x"}, "gives": {"y": "between"}}
    last = {"model": "m", "takes": {"x": "between"}, "gives": {"y": "y"}}
    ensemble = {"inputs": {"x": "float32[4]"}, "outputs": {"y": "float32[4]"}, "max_batch": 8, "steps": [step, last]}
    spec = Spec.model_validate(patched({"ensembles": {"twice": ensemble}}))
    connection = Unconnected()
    wake_ups = WakeUpsOf(connection, spec, "embedded")  # type: ignore[arg-type]
    with wake_ups.outstanding("m"), wake_ups.outstanding("twice"), wake_ups.outstanding("m"):
        await clock.advance(BACKSTOP_S)
        assert connection.woken == 1
    await clock.advance(1)
    assert connection.woken == 1


async def test_a_model_without_queues_of_its_own_is_never_woken(clock: Clock) -> None:
    spec = Spec.model_validate(patched({"models": {"m": {"batching": {"priorities": "none"}}}}))
    connection = Unconnected()
    with WakeUpsOf(connection, spec, "embedded").outstanding("m"):  # type: ignore[arg-type]
        await clock.advance(1)
    assert connection.woken == 0
