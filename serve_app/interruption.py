"""Ending what a task awaits, from outside it, with an error of one's own."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from types import TracebackType
from typing import Any

# A client that hangs up need not be noticed sooner, and most answers are there before.
_WATCH_AFTER_S = 0.02


class Interruptible:
    """Within `with`, `interrupt` cancels what is awaited, and the block ends with the given error instead.

    A cancellation of the task itself stays one.
    """

    def __init__(self) -> None:
        self._task: asyncio.Task[Any] | None = None
        self._error: BaseException | None = None
        self._due: asyncio.TimerHandle | None = None

    def __enter__(self) -> Interruptible:
        self._task = asyncio.current_task()
        return self

    def interrupt(self, error: BaseException) -> None:
        if self._task is not None and self._error is None:
            self._error = error
            self._task.cancel()

    def interrupt_after(self, seconds: float, error: Callable[[], BaseException]) -> None:
        """The same when so much time has passed within the block; the error is made then."""
        self._due = asyncio.get_running_loop().call_later(seconds, lambda: self.interrupt(error()))

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._due is not None:
            self._due.cancel()
        task, self._task = self._task, None
        if self._error is not None and kind is asyncio.CancelledError:
            # Python 3.10 does not count cancellations.
            others = task.uncancel() if task is not None and hasattr(task, "uncancel") else 0
            if not others:
                raise self._error from None


class WhileConnected:
    """Interrupts the work with `gone` where the client hangs up meanwhile. The request's body has been read."""

    def __init__(
        self, receive: Callable[[], Awaitable[MutableMapping[str, Any]]], work: Interruptible, gone: BaseException
    ):
        self._receive = receive
        self._work = work
        self._gone = gone
        self._watching: asyncio.Task[None] | None = None

    def __enter__(self) -> None:
        self._due = asyncio.get_running_loop().call_later(_WATCH_AFTER_S, self._begin)

    def __exit__(self, *_: object) -> None:
        self._due.cancel()
        if self._watching is not None:
            self._watching.cancel()

    def _begin(self) -> None:
        self._watching = asyncio.get_running_loop().create_task(self._watch())

    async def _watch(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self._work.interrupt(self._gone)
