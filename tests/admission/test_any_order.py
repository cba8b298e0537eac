"""Whatever happens at a gate, in whichever order: bounds hold, nobody is passed over, and no place is lost."""

from __future__ import annotations

from collections import Counter

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from serve_app.admission import AdmissionLimits, TierLimits
from serve_app.admission.gate import Gate
from serve_app.admission.queue import Request
from serve_app.problem import Problem

PRIORITIES = (1, 2, 3)
TIERS = st.tuples(
    *(
        st.builds(
            TierLimits, st.just(priority), st.integers(1, 5), st.integers(0, 8), st.sampled_from([0.0, 0.05, 0.3])
        )
        for priority in PRIORITIES
    )
)
LIMITS = st.builds(
    AdmissionLimits,
    st.integers(1, 5),
    st.integers(1, 8),
    st.sampled_from([429, 503]),
    st.sampled_from([0.5, 3.0]),
    st.booleans(),
    st.sampled_from([{}, {"/v2": 2.0, "/v1/verify": 4.0}]),
    TIERS,
)


class AnyOrder(RuleBasedStateMachine):
    """A model of the gate: who uploads, waits (in the order in which they came) and works."""

    def __init__(self) -> None:
        super().__init__()
        self.limits = AdmissionLimits(2, 3, 429, 1.0)
        self.gate = Gate(self.limits, self.told)
        self.now = 1000.0
        self.uploading: list[Request] = []
        self.waiting: list[Request] = []
        self.working: list[Request] = []

    # -- what must hold whenever something is decided

    def told(self, request: Request, problem: Problem | None) -> None:
        if problem is None:
            tier = [each for each in self.waiting if each.priority == request.priority]
            assert next(filter(self.has_place, tier)) is request
            assert request.deadline > self.now
            passed_over = [each for each in self.waiting if each.priority < request.priority and self.may_begin(each)]
            assert not passed_over or request.for_floor
            assert not request.for_floor or self.limits.floors.get(request.priority)
            self.waiting.remove(request)
            self.begun(request)
        else:
            self.waiting.remove(request)
            self.refused(request, problem)
            self.gate.leave(request)

    def begun(self, request: Request) -> None:
        assert self.may_begin(request) or (self.has_place(request) and request.for_floor)
        self.working.append(request)

    def refused(self, request: Request, problem: Problem) -> None:
        if problem.code == "deadline_exceeded":
            assert request.deadline <= self.now
            return
        assert problem.code == "service_full" or (problem.code == "too_late" and self.limits.refuse_late)
        assert problem.status == self.limits.status_code
        assert problem.retry_after is not None
        assert problem.retry_after >= self.limits.retry_after_s
        if problem.code == "service_full":  # nobody less urgent is let wait instead
            kept = self.limits.kept
            count = Counter(each.priority for each in self.waiting)
            less_urgent = [tier for tier in count if tier > request.priority and count[tier] > kept.get(tier, 0)]
            assert not less_urgent or self.tier_is_full(request) or self.as_urgent_are_all(request)

    def has_place(self, request: Request) -> bool:
        of_kind = sum(each.kind == request.kind for each in self.working)
        return len(self.working) < self.limits.max_ongoing_requests and of_kind < self.gate.limit(request.kind)

    def may_begin(self, request: Request) -> bool:
        """Also where nothing is due to its tier."""
        of_tier = sum(each.priority == request.priority and not each.for_floor for each in self.working)
        return self.has_place(request) and of_tier < self.limits.max_ongoing(request.priority)

    def is_due(self, request: Request) -> bool:
        others = (each.priority for each in [*self.working, *self.waiting])
        return self.gate.queue.is_due(request.priority) and any(each < request.priority for each in others)

    def tier_is_full(self, request: Request) -> bool:
        waiting = sum(each.priority == request.priority for each in self.waiting)
        return waiting >= self.limits.max_queued(request.priority)

    def as_urgent_are_all(self, request: Request) -> bool:
        """Or are being worked on."""
        here = [each for each in [*self.uploading, *self.waiting] if each.priority <= request.priority]
        return len(here) + len(self.working) >= self.limits.max_ongoing_requests + self.limits.max_queued_requests

    # -- what may happen

    @rule(
        kind=st.sampled_from(["/v1/verify", "/v1/faces/embed", "arcface"]),
        priority=st.sampled_from(PRIORITIES),
        allowed=st.floats(0.1, 20.0),
        uploads=st.booleans(),
    )
    def come(self, kind: str, priority: int, allowed: float, uploads: bool) -> None:
        request = Request(kind, priority, self.now + allowed)
        try:
            self.gate.enter(request, self.now)
        except Problem as problem:
            self.refused(request, problem)
            return
        if uploads:
            self.uploading.append(request)
        else:
            self.ask(request)

    @precondition(lambda self: self.uploading)
    @rule(data=st.data())
    def be_uploaded(self, data: st.DataObject) -> None:
        self.ask(self.one_of(self.uploading, data))

    def ask(self, request: Request) -> None:
        try:
            begins = self.gate.ask(request, self.now)
        except Problem as problem:
            self.refused(request, problem)
            self.gate.leave(request)
            return
        if begins:
            self.begun(request)
        else:
            self.waiting.append(request)

    @precondition(lambda self: self.working)
    @rule(data=st.data(), whole=st.booleans())
    def end(self, data: st.DataObject, whole: bool) -> None:
        request = self.one_of(self.working, data)
        self.gate.done(request, self.now, whole=whole)
        self.gate.leave(request)

    @precondition(lambda self: self.uploading)
    @rule(data=st.data())
    def break_off(self, data: st.DataObject) -> None:
        self.gate.leave(self.one_of(self.uploading, data))

    @precondition(lambda self: self.waiting)
    @rule(data=st.data())
    def hang_up(self, data: st.DataObject) -> None:
        request = self.one_of(self.waiting, data)
        self.gate.withdraw(request, self.now)
        self.gate.leave(request)

    @precondition(lambda self: self.waiting)
    @rule(data=st.data())
    def have_no_time_left(self, data: st.DataObject) -> None:
        request = data.draw(st.sampled_from(self.waiting))
        wait = self.gate.may_wait(request, self.now)
        if wait is not None:
            self.now += max(0.0, wait)
            self.gate.expire(request, self.now)
            assert request not in self.waiting

    @rule(seconds=st.floats(0.001, 5.0))
    def let_time_pass(self, seconds: float) -> None:
        self.now += seconds

    @rule(limits=LIMITS)
    def change(self, limits: AdmissionLimits) -> None:
        self.limits = limits
        self.gate.change(limits, self.now)

    def one_of(self, requests: list[Request], data: st.DataObject) -> Request:
        request = data.draw(st.sampled_from(requests))
        requests.remove(request)
        return request

    # -- what always holds

    @invariant()
    def all_are_counted(self) -> None:
        assert self.gate.here == len(self.uploading) + len(self.waiting) + len(self.working)
        assert len(self.gate.queue) == len(self.waiting)

    @invariant()
    def nobody_waits_while_a_place_is_free(self) -> None:
        assert not any(self.may_begin(each) for each in self.waiting)
        assert not any(self.has_place(each) and self.is_due(each) for each in self.waiting)

    def teardown(self) -> None:
        """When all have ended, as many as ever may begin at once."""
        for request in [*self.waiting]:
            self.waiting.remove(request)
            self.gate.withdraw(request, self.now)
            self.gate.leave(request)
        for request in [*self.working]:
            self.working.remove(request)
            self.gate.done(request, self.now, whole=True)
            self.gate.leave(request)
        for request in self.uploading:
            self.gate.leave(request)
        assert self.gate.here == 0
        self.limits = AdmissionLimits(3, 1, 429, 1.0)
        self.gate.change(self.limits, self.now)
        for _ in range(3):
            request = Request("/v1/verify", 1, self.now + 1)
            self.gate.enter(request, self.now)
            assert self.gate.ask(request, self.now)


TestAnyOrder = AnyOrder.TestCase
TestAnyOrder.settings = settings(max_examples=100, stateful_step_count=50)
