"""What travels with a request: who asked, how urgent it is, until when, and where its time went.

Stage code never mentions any of it: it is held in context variables, which asyncio tasks and threads inherit.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from datetime import timedelta

from serve_app.problem import Problem


@dataclass(frozen=True)
class RequestContext:
    """One request's identity and urgency.

    `priority` is Triton's priority level, 1 first. `deadline` is in seconds since the epoch, so that it means the same
    on every node whose clock is kept.
    """

    request_id: str
    priority: int
    deadline: float

    def remaining(self) -> float:
        """Seconds left. Problem 504 where none are."""
        left = self.deadline - time.time()
        if left <= 0:
            raise deadline_exceeded()
        return left

    def part_of(self, time_limit: timedelta | None) -> RequestContext:
        """For work that may fail: until `time_limit` from now, or half of what is left, so that the rest is in time.

        Problem 504 where nothing is left.
        """
        half = self.remaining() / 2
        seconds = half if time_limit is None else min(time_limit.total_seconds(), half)
        return replace(self, deadline=time.time() + seconds)


def deadline_exceeded() -> Problem:
    return Problem(
        504, "deadline_exceeded", "the deadline passed before the answer was ready; allow more time or retry later"
    )


class Timings:
    """Milliseconds spent in each named thing, of one request. Overlapping times of one name count once."""

    def __init__(self) -> None:
        self.ms: dict[str, float] = {}
        self._running: dict[str, tuple[int, float]] = {}

    @contextmanager
    def measure(self, name: str) -> Iterator[None]:
        count, since = self._running.get(name, (0, time.perf_counter()))
        self._running[name] = (count + 1, since)
        try:
            yield
        finally:
            count, since = self._running.pop(name)
            if count > 1:
                self._running[name] = (count - 1, since)
            else:
                self.ms[name] = self.ms.get(name, 0.0) + (time.perf_counter() - since) * 1e3


request_context: ContextVar[RequestContext] = ContextVar("request_context")
timings: ContextVar[Timings] = ContextVar("timings")


@contextmanager
def serving(context: RequestContext) -> Iterator[Timings]:
    """Make `context` the current request's; answers where its time will be noted."""
    measured = Timings()
    tokens = request_context.set(context), timings.set(measured)
    try:
        yield measured
    finally:
        request_context.reset(tokens[0])
        timings.reset(tokens[1])
