"""When wake-up requests are sent, on a clock that the test moves."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from serve_app.triton.wake_up import AFTER_ANSWER_S, BACKSTOP_S, WakeUps


class Clock:
    """Stands for the event loop's timers."""

    def __init__(self) -> None:
        self.now = 0.0
        self.timers: list[Timer] = []

    def call_later(self, delay: float, callback: Callable[[], None]) -> Timer:
        timer = Timer(self.now + delay, callback)
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
    monkeypatch.setattr(asyncio.get_running_loop(), "call_later", clock.call_later)
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
        with wake_ups.outstanding():
            await clock.advance(BACKSTOP_S / 2)
        await clock.advance(1)
    assert sent.times == 0


async def test_an_answer_causes_one_for_those_that_still_wait(clock: Clock) -> None:
    sent = Sent()
    wake_ups = WakeUps(sent.send)
    with wake_ups.outstanding():
        with wake_ups.outstanding(), wake_ups.outstanding():
            pass
        await clock.advance(AFTER_ANSWER_S)
        assert sent.times == 1
    sent.answered.set()


async def test_requests_behind_another_process_cause_one_each_backstop(clock: Clock) -> None:
    sent = Sent()
    wake_ups = WakeUps(sent.send)
    with wake_ups.outstanding():
        await clock.advance(BACKSTOP_S * 5)
        assert sent.times == 5
    await clock.advance(1)
    assert sent.times == 5
    sent.answered.set()


async def test_one_that_is_not_answered_yet_does_not_hold_up_the_next(clock: Clock) -> None:
    """Triton answers a wake-up when it forms the next batch; waiting for that cost half a second a batch."""
    sent = Sent()
    wake_ups = WakeUps(sent.send)
    with wake_ups.outstanding():
        for answers in range(1, 4):
            with wake_ups.outstanding():
                pass
            await clock.advance(AFTER_ANSWER_S)
            assert sent.times == answers
    sent.answered.set()
