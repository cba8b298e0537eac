"""How many requests an ingress works on at a time, and how many may wait for that; more are refused at once."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from itertools import count

from serve_app.problem import Problem
from serve_app.spec import Spec


@dataclass(frozen=True)
class AdmissionLimits:
    """`user_config` of the ingress in serve_config.yaml: Ray Serve hands a change of it to replicas that run.

    `status_code` and `retry_after_s` are what a client is told beyond both limits.
    """

    max_ongoing_requests: int
    max_queued_requests: int
    status_code: int
    retry_after_s: float

    @classmethod
    def of(cls, spec: Spec) -> AdmissionLimits:
        ingress = spec.ingress
        retry_after = ingress.backpressure.retry_after or spec.service.retry_after
        return cls(
            ingress.max_ongoing_requests,
            ingress.max_queued_requests,
            ingress.backpressure.status,
            retry_after.total_seconds(),
        )


class Admission:
    """The requests of one replica. Those that wait are taken by priority, then in their order."""

    def __init__(self, limits: AdmissionLimits):
        self._limits = limits
        self._working = 0
        self._numbers = count()
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []
        self.requests = 0

    def change(self, limits: AdmissionLimits) -> None:
        """From now on these hold; what was admitted stays so."""
        self._limits = limits
        self._wake()

    @contextmanager
    def admitted(self) -> Iterator[None]:
        """Around all of a request. Problem where too many are here already."""
        limits = self._limits
        if self.requests >= limits.max_ongoing_requests + limits.max_queued_requests:
            raise Problem(
                limits.status_code,
                "service_full",
                f"too many requests wait; retry in {limits.retry_after_s:g} s",
                retry_after=limits.retry_after_s,
            )
        self.requests += 1
        try:
            yield
        finally:
            self.requests -= 1

    @asynccontextmanager
    async def working(self, priority: int) -> AsyncIterator[None]:
        """Around the work on a request whose body is here: a client that sends slowly keeps nobody from working."""
        if self._working < self._limits.max_ongoing_requests:
            self._working += 1
        else:
            await self._turn(priority)
        try:
            yield
        finally:
            self._working -= 1
            self._wake()

    async def _turn(self, priority: int) -> None:
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._waiting, (priority, next(self._numbers), turn))
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():  # it came at the same moment
                self._working -= 1
                self._wake()
            raise

    def _wake(self) -> None:
        while self._waiting and self._working < self._limits.max_ongoing_requests:
            turn = heapq.heappop(self._waiting)[2]
            if not turn.done():
                self._working += 1
                turn.set_result(None)
