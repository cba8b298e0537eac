"""Wake-up requests: they keep Triton's batcher from sleeping while requests wait.

Any model with priorities or a queue policy has Triton's prefetching off. Its batcher then waits for an idle instance on
a condition that is signalled when a batch ends, a moment before the instance counts as idle. The signal is lost, and
only the next accepted request, or half a second, wakes the batcher. So while requests are outstanding a client sends
one that is accepted and then expires at once: it goes to a priority level of its own whose queue timeout is a
microsecond, and is dropped when the next batch is formed.

One is sent shortly after each answer, for the requests of this process that still wait, and one after every
`BACKSTOP_S`, for those that wait behind another process's requests.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager

AFTER_ANSWER_S = 0.0005
BACKSTOP_S = 0.020


class WakeUps:
    """Sends wake-up requests for one model while requests of this process are outstanding.

    `send` sends one; whatever Triton answers to it means nothing.
    """

    def __init__(self, send: Callable[[], Coroutine[None, None, None]]):
        self._send = send
        self._outstanding = 0
        self._due: asyncio.TimerHandle | None = None
        self._sending: set[asyncio.Task[None]] = set()

    @contextmanager
    def outstanding(self) -> Iterator[None]:
        """Around each request to the model."""
        self._outstanding += 1
        if self._due is None:
            self._schedule(BACKSTOP_S)
        try:
            yield
        finally:
            self._outstanding -= 1
            if self._due is not None:
                self._due.cancel()
                self._due = None
            if self._outstanding:
                self._schedule(AFTER_ANSWER_S)

    def _schedule(self, delay: float) -> None:
        self._due = asyncio.get_running_loop().call_later(delay, self._fire)

    def _fire(self) -> None:
        self._schedule(BACKSTOP_S)
        # Those sent before may still be unanswered: Triton answers them when it forms the next batch, but each of them
        # has woken it once only.
        task = asyncio.get_running_loop().create_task(self._send())
        self._sending.add(task)
        task.add_done_callback(self._sending.discard)
