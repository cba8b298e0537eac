"""A breaker for one model in one process: while the model is silent, calls fail at once instead of at their deadline.

It opens after some calls in a row that got no answer. Then it lets one call through every so often, and closes when
one is answered. Only silence opens it, since that alone costs requests their time, and since no client must be able to
take a model from the others:

- A call counts if it waited for `patience`, however it ended: at its deadline, or given up by whoever asked. How soon a
  client gives up tells nothing of the model; nor does such a call keep others from trying.
- A call does not count if the model answered any other meanwhile. A long queue is for admission to keep short.
- What the model raises is an answer. Bad input can be the cause, and it comes at once.
- What Triton says by itself counts neither way: a full queue, a timeout in it, a tensor that does not fit.
- A server that went away is looked for by the connection, and requests may wait for its successor. Nothing counts from
  before there was one, so that it is asked at once.

Moments are seconds by one clock. Nothing here waits or sends.
"""

from __future__ import annotations

import math
from collections.abc import Callable


class Breaker:
    """`tell` is given whether it is open, each time that changes; `patience` and `open_for` are in seconds.

    `renewed` is since when a lost server's successor is there; infinity while it is looked for.
    """

    def __init__(self, failures: int, open_for: float, patience: float, tell: Callable[[bool], None]):
        self._most = failures
        self._open_for = open_for
        self._patience = patience
        self._tell = tell
        self._failures = 0
        self._failed = self._answered = -math.inf
        self._trial: float | None = None
        # When the next call may try; None while it is closed.
        self._retry: float | None = None

    def ask(self, now: float, timeout: float, renewed: float = -math.inf) -> float:
        """0 where a call with so much time may be made, else after how many seconds another is worth it."""
        self._forget(renewed)
        if self._retry is None:
            return 0.0
        if now < self._retry:
            return self._retry - now
        if timeout < self._patience:
            return self._open_for
        self._trial, self._retry = now, now + self._open_for
        return 0.0

    def answered(self, now: float) -> None:
        """The model has answered a call."""
        self._answered = now
        self._close()

    def unanswered(self, began: float, now: float, renewed: float = -math.inf) -> None:
        """A call of the moment `began` has ended without an answer: its time was up, or its caller gave it up."""
        self._forget(renewed)
        if now - began < self._patience:
            self.inconclusive(began, now)
        elif began >= renewed and began > self._answered:
            self._failures += 1
            self._failed = now
            if self._retry is None and self._failures >= self._most:
                self._retry = now + self._open_for
                self._tell(True)

    def inconclusive(self, began: float, now: float) -> None:
        """A call of the moment `began` has ended, which says nothing of the model."""
        if self._retry is not None and began == self._trial:
            self._retry = now

    def _forget(self, renewed: float) -> None:
        if renewed > self._failed:
            self._close()

    def _close(self) -> None:
        self._failures = 0
        if self._retry is not None:
            self._retry = self._trial = None
            self._tell(False)
