"""Admission as the doors use it: around all of a request, and around the work on it."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable
from dataclasses import replace
from types import TracebackType

from serve_app.admission.gate import Gate
from serve_app.admission.limits import AdmissionLimits
from serve_app.admission.queue import Request
from serve_app.context import RequestContext
from serve_app.problem import Problem


class Admission:
    """The requests of one replica. `clock` is that of their deadlines.

    `disturbed` answers the last moment by it at which the work could not go on, of which nothing is learned; infinity
    while it cannot.
    """

    def __init__(
        self,
        limits: AdmissionLimits,
        clock: Callable[[], float] = time.time,
        disturbed: Callable[[], float] = lambda: -math.inf,
    ):
        self._gate = Gate(limits, _tell)
        self._clock = clock
        self._disturbed = disturbed

    @property
    def requests(self) -> int:
        """How many are here, those that wait too."""
        return self._gate.here

    def change(self, limits: AdmissionLimits) -> None:
        """From now on these hold; what was admitted stays so."""
        self._gate.change(limits, self._clock())

    def admitted(self, context: RequestContext, kind: str) -> Admitted:
        """Around all of a request, before its body is read. Problem where it cannot be answered.

        `kind` is what it asks for, a route or a model: such requests take about as long as each other.
        """
        return Admitted(self._gate, self._clock, self._disturbed, context, kind)


class Admitted:
    """A request that is here within `with`, of `Admission.admitted`."""

    __slots__ = ("_clock", "_context", "_disturbed", "_gate", "_request")

    def __init__(
        self,
        gate: Gate,
        clock: Callable[[], float],
        disturbed: Callable[[], float],
        context: RequestContext,
        kind: str,
    ):
        self._gate = gate
        self._clock = clock
        self._disturbed = disturbed
        self._context = context
        self._request = Request(kind, context.priority, context.deadline)

    def __enter__(self) -> Admitted:
        self._gate.enter(self._request, self._clock())
        return self

    def __exit__(self, *_: object) -> None:
        self._gate.leave(self._request)

    async def __aenter__(self) -> RequestContext:
        """Around the work on the request, whose body is here: who sends slowly keeps nobody from working.

        Answers the context to work with: what begins for its tier's floor is as urgent as anything, so that Triton does
        not let it wait for ever. Problem where it would wait, or has waited, in vain.
        """
        if not self._gate.ask(self._request, self._clock()):
            await self._turn()
        return replace(self._context, priority=1) if self._request.for_floor else self._context

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        whole = kind is not asyncio.CancelledError
        self._gate.done(self._request, self._clock(), whole=whole, disturbed=self._disturbed())

    async def _turn(self) -> None:
        gate, request = self._gate, self._request
        loop = asyncio.get_running_loop()
        turn: asyncio.Future[Problem | None] = loop.create_future()
        request.turn = turn
        spare = gate.may_wait(request, self._clock())
        due = None if spare is None else loop.call_later(spare, self._expire)
        try:
            problem = await turn
        except asyncio.CancelledError:
            gate.withdraw(request, self._clock())
            raise
        finally:
            if due is not None:
                due.cancel()
        if problem is not None:
            raise problem

    def _expire(self) -> None:
        if not self._request.turn.done():
            self._gate.expire(self._request, self._clock())


def _tell(request: Request, problem: Problem | None) -> None:
    if not request.turn.done():  # it may have been cancelled at the same moment, and will withdraw
        request.turn.set_result(problem)
