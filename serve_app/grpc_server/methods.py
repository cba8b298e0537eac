"""What a service consists of: its methods, and a call as a method sees it."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

Metadata: TypeAlias = Sequence[tuple[str, str]]


class Call:
    """What came with a call, and what is to go with its answer.

    `metadata` are the request's headers but for gRPC's own, in their order; `arrived` is in seconds since the epoch.
    `trailers` go to the client with the status. `about` (the model's name, where there is such a model) and
    `request_id` are for the log.
    """

    __slots__ = ("_began", "_timeout", "_write", "about", "arrived", "metadata", "request_id", "trailers")

    def __init__(self, metadata: Metadata, timeout: float | None, write: Callable[[bytes], Awaitable[None]]):
        self.metadata = metadata
        self.arrived = time.time()
        self.trailers: Metadata = ()
        self.about = self.request_id = "-"
        self._timeout = timeout
        self._began = time.perf_counter()
        self._write = write

    def time_remaining(self) -> float | None:
        """Seconds until the client gives up, from then on less than none; None where it never does."""
        return None if self._timeout is None else self._timeout - self.took()

    def took(self) -> float:
        """Seconds until now."""
        return time.perf_counter() - self._began

    async def write(self, message: bytes) -> None:
        """One more answer on a stream. Waits until the client has taken most of it."""
        await self._write(message)


@dataclass(frozen=True)
class Unary:
    """One request, one answer. A Refusal that `answer` raises is the client's answer; successes may be unlogged."""

    name: str
    answer: Callable[[bytes, Call], Awaitable[bytes]]
    is_logged: bool = True


@dataclass(frozen=True)
class Streaming:
    """Requests that come one by one, and answers by `Call.write`, until `answer` returns."""

    name: str
    answer: Callable[[AsyncIterator[bytes], Call], Awaitable[None]]
    is_logged: bool = True


Method: TypeAlias = "Unary | Streaming"
