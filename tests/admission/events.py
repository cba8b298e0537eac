"""A gate and the requests at it, by names, with a clock that the test moves."""

from __future__ import annotations

from serve_app.admission import AdmissionLimits, TierLimits
from serve_app.admission.gate import Gate
from serve_app.admission.queue import Request
from serve_app.problem import Problem


def limits(ongoing: int, queued: int = 10, *tiers: TierLimits, **changes: object) -> AdmissionLimits:
    return AdmissionLimits(ongoing, queued, 429, 1.5, tiers=tiers, **changes)  # type: ignore[arg-type]


class Events:
    """What happens to requests: `working` and `waiting` names, and the problem of those that were sent away."""

    def __init__(self, limits: AdmissionLimits):
        self.now = 1000.0
        self.gate = Gate(limits, self._told)
        self.working: list[str] = []
        self.waiting: list[str] = []
        self.problems: dict[str, Problem] = {}
        self.requests: dict[str, Request] = {}

    def come(self, name: str, priority: int = 1, allowed: float = 100.0, kind: str = "/v1/verify") -> None:
        """A request whose body is here with its head."""
        request = self.requests[name] = Request(kind, priority, self.now + allowed)
        try:
            self.gate.enter(request, self.now)
        except Problem as problem:
            self.problems[name] = problem
            return
        try:
            begins = self.gate.ask(request, self.now)
        except Problem as problem:
            self.gate.leave(request)
            self.problems[name] = problem
            return
        (self.working if begins else self.waiting).append(name)

    def end(self, name: str, *, after: float = 0.0, whole: bool = True) -> None:
        self.now += after
        self.working.remove(name)
        self.gate.done(self.requests[name], self.now, whole=whole)
        self.gate.leave(self.requests[name])

    def hang_up(self, name: str) -> None:
        (self.working if name in self.working else self.waiting).remove(name)
        self.gate.withdraw(self.requests[name], self.now)
        self.gate.leave(self.requests[name])

    def learn(self, seconds: float, kind: str = "/v1/verify") -> None:
        """A request of this kind takes so long, alone."""
        self.come("earlier", kind=kind)
        self.end("earlier", after=seconds)

    def code(self, name: str) -> str:
        return self.problems[name].code

    def _told(self, request: Request, problem: Problem | None) -> None:
        name = next(name for name, each in self.requests.items() if each is request)
        self.waiting.remove(name)
        if problem is None:
            self.working.append(name)
        else:
            self.gate.leave(request)
            self.problems[name] = problem
