"""How many requests the ingress works on at a time, and how many may wait for that; more are refused at once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from serve_app.problem import Problem
from serve_app.spec.replicas import Replicas


class Admission:
    """Places for requests in one replica, first come first served."""

    def __init__(self, replicas: Replicas, retry_after: float):
        """`retry_after` is seconds, what a refused client is told to wait."""
        self._replicas = replicas
        self._retry_after = retry_after
        self._places = asyncio.Semaphore(replicas.max_ongoing_requests)
        self.requests = 0

    @asynccontextmanager
    async def place(self) -> AsyncIterator[None]:
        """Hold a place. Problem where too many hold one or wait for it."""
        if self.requests >= self._replicas.max_ongoing_requests + self._replicas.max_queued_requests:
            raise Problem(
                self._replicas.backpressure.status,
                "service_full",
                f"too many requests wait; retry in {self._retry_after:g} s",
                retry_after=self._retry_after,
            )
        self.requests += 1
        try:
            async with self._places:
                yield
        finally:
            self.requests -= 1
