"""A service in virtual time, whose cores are shared by all that it works on, and its clients."""

from __future__ import annotations

import heapq
import itertools
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from serve_app.admission import AdmissionLimits
from serve_app.admission.gate import Gate
from serve_app.admission.queue import Request
from serve_app.problem import Problem


@dataclass
class Client:
    """Sends one request after the other, each of so much work in seconds of a core, and waits as long as it is told."""

    priority: int
    work: float
    allowed: float
    kind: str = "/verify"


@dataclass
class Simulation:
    """`outcomes` counts by priority and "answered", "late" or a problem's code; `refused_after` has seconds."""

    limits: AdmissionLimits
    cores: float
    now: float = 0.0
    outcomes: Counter[tuple[int, str]] = field(default_factory=Counter)
    refused_after: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.gate = Gate(self.limits, self._told)
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = itertools.count()
        self._working: dict[Request, float] = {}
        self._clients: dict[Request, tuple[Client, float]] = {}

    def run(self, clients: list[Client], seconds: float) -> None:
        for client in clients:
            self._at(self.now, lambda client=client: self._send(client))  # type: ignore[misc]
        end = self.now + seconds
        while self.now < end:
            request, left = min(self._working.items(), key=lambda each: each[1], default=(None, 0.0))
            done = self.now + left / self._speed if request is not None else end
            due = self._events[0][0] if self._events else end
            self._pass(min(done, due, end) - self.now)
            if due <= done:
                if self._events:
                    heapq.heappop(self._events)[2]()
            elif request is not None:
                self._end(request, "answered")

    @property
    def _speed(self) -> float:
        """Of each request's work, where a request is on one core at a time."""
        return min(1.0, self.cores / max(1, len(self._working)))

    def _at(self, moment: float, action: Callable[[], None]) -> None:
        heapq.heappush(self._events, (moment, next(self._numbers), action))

    def _pass(self, seconds: float) -> None:
        speed = self._speed
        self.now += seconds
        for request in self._working:
            self._working[request] -= seconds * speed

    def _send(self, client: Client) -> None:
        request = Request(client.kind, client.priority, self.now + client.allowed)
        self._clients[request] = client, self.now
        try:
            self.gate.enter(request, self.now)
        except Problem as problem:
            self._over(request, problem.code, problem.retry_after)
            return
        try:
            begins = self.gate.ask(request, self.now)
        except Problem as problem:
            self.gate.leave(request)
            self._over(request, problem.code, problem.retry_after)
            return
        self._at(request.deadline, lambda: self._miss(request))
        if begins:
            self._working[request] = client.work
        elif (wait := self.gate.may_wait(request, self.now)) is not None:
            self._at(self.now + wait, lambda: self._expire(request))

    def _told(self, request: Request, problem: Problem | None) -> None:
        if problem is None:
            self._working[request] = self._clients[request][0].work
        else:
            self.gate.leave(request)
            self._over(request, problem.code, problem.retry_after)

    def _expire(self, request: Request) -> None:
        if request in self.gate.queue:
            self.gate.expire(request, self.now)

    def _miss(self, request: Request) -> None:
        if request in self._working:
            self._end(request, "late")
        elif request in self.gate.queue:
            self.gate.withdraw(request, self.now)
            self.gate.leave(request)
            self._over(request, "waited in vain", None)

    def _end(self, request: Request, outcome: str) -> None:
        del self._working[request]
        self.gate.done(request, self.now, whole=outcome == "answered")
        self.gate.leave(request)
        self._over(request, outcome, None)

    def _over(self, request: Request, outcome: str, retry_after: float | None) -> None:
        client, sent = self._clients.pop(request)
        self.outcomes[client.priority, outcome] += 1
        if retry_after is not None:
            self.refused_after.append(self.now - sent)
        # A client's own time between two requests.
        self._at(self.now + (retry_after or 0.001), lambda: self._send(client))
