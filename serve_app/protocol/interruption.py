"""Ending what a task awaits, from outside it, with an error of one's own."""

from __future__ import annotations

import asyncio
from types import TracebackType


class Interruptible:
    """Within `with`, `interrupt` cancels what is awaited, and the block ends with the given error instead.

    A cancellation of the task itself stays one.
    """

    def __enter__(self) -> Interruptible:
        self._task = asyncio.current_task()
        self._error: BaseException | None = None
        return self

    def interrupt(self, error: BaseException) -> None:
        if self._task is not None and self._error is None:
            self._error = error
            self._task.cancel()

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        task, self._task = self._task, None
        if self._error is not None and kind is asyncio.CancelledError:
            # Python 3.10 does not count cancellations.
            others = task.uncancel() if task is not None and hasattr(task, "uncancel") else 0
            if not others:
                raise self._error from None
