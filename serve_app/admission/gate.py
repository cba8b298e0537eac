"""All decisions of admission, one event after the other, each with the moment in which it happens.

A request enters; when its body is here it asks to be worked on, which it is at once where a place is free; else it
waits. Whoever waits is told its turn, or why there is none.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from serve_app.admission.concurrency import Concurrency
from serve_app.admission.limits import AdmissionLimits
from serve_app.admission.queue import Queue, Request
from serve_app.admission.service_times import ServiceTimes
from serve_app.context import deadline_exceeded
from serve_app.problem import Problem

Tell = Callable[[Request, "Problem | None"], None]
# For floors, which compare work, where nothing is known of it yet.
_UNKNOWN_COST = 1.0
# Who is let in waits for nothing if it takes longer than it seemed; who is not can come back.
_MARGIN = 1.25


@dataclass(slots=True)
class _Kind:
    """How many requests of a kind may be worked on at a time, and how many of each tier are."""

    concurrency: Concurrency
    of_tiers: Counter[int] = field(default_factory=Counter)

    @property
    def working(self) -> int:
        return self.of_tiers.total()

    def below(self, priority: int) -> int:
        """How many of those are less urgent."""
        return sum(count for tier, count in self.of_tiers.items() if tier > priority)


class Gate:
    """`tell` gets those that waited: with None where their work begins now, else with the reason that it never will.

    Moments are seconds by one clock, that of the requests' deadlines.
    """

    def __init__(self, limits: AdmissionLimits, tell: Tell):
        self._limits = limits
        self._tell = tell
        self.queue = Queue(limits.floors)
        self._times = ServiceTimes()
        self._kinds: dict[str, _Kind] = {}
        self._working: Counter[int] = Counter()
        self._for_floor: Counter[int] = Counter()
        self._here: Counter[int] = Counter()

    @property
    def here(self) -> int:
        """How many have entered and not left."""
        return self._here.total()

    def limit(self, kind: str) -> int:
        """How many of a kind are worked on at a time."""
        return self._kind(kind).concurrency.limit

    def change(self, limits: AdmissionLimits, now: float) -> None:
        """From now on these hold; what was admitted stays so."""
        self._limits = limits
        self.queue.floors = limits.floors
        for kind in self._kinds.values():
            kind.concurrency.change(limits.max_ongoing_requests, adapts=bool(limits.work_within_s))
        self._begin_next(now)

    def enter(self, request: Request, now: float) -> None:
        """It is here, until it leaves. Problem where it could not be worked on: its body need not be read then.

        What is less urgent, and perhaps still being sent, takes nobody's room but what is kept for it.
        """
        if self._taken(request.priority) >= self._limits.max_ongoing_requests + self._limits.max_queued_requests:
            raise self._full(request)
        if not self._is_free(request):
            self._expect(request, now)
        self._here[request.priority] += 1

    def _taken(self, priority: int) -> int:
        """How much of all room a new request of the tier cannot have: that of others, or what is kept for them."""
        kept, taken = self._limits.kept, 0
        for each in {*self._here, *kept}:
            working, room = self._working[each], kept.get(each, 0)
            if each < priority:
                taken += max(self._here[each], working + room)
            else:
                taken += self._here[each] if each == priority else working + room
        return taken

    def leave(self, request: Request) -> None:
        """A request that had entered is no longer here."""
        self._here[request.priority] -= 1

    def ask(self, request: Request, now: float) -> bool:
        """Whether its work begins now; else it waits, and is told. Problem where it would wait in vain."""
        if begins := self._is_free(request):
            self._begin(request, now)
        else:
            self._add(request, now)
        self._begin_next(now)  # of a less urgent tier, whose floor may be due now
        return begins

    def _add(self, request: Request, now: float) -> None:
        if (other := self._expect(request, now)) is not None:
            self.queue.remove(other)
            self._tell(other, self._full(other))
        self.queue.add(request)

    def may_wait(self, request: Request, now: float) -> float | None:
        """Seconds after which a request that waits is too late; None where that is not known, or nobody asks."""
        longest = self._times.nearly_longest(request.kind, now)
        return request.deadline - longest - now if self._limits.refuse_late and longest else None

    def expire(self, request: Request, now: float) -> None:
        """It waits no longer, since it is too late, and is told so."""
        self.queue.remove(request)
        self._tell(request, self._late(request, now))

    def withdraw(self, request: Request, now: float) -> None:
        """Its client is gone, or its deadline has passed, while it waited or just as its work began."""
        if request.began is not None:
            self.done(request, now, whole=False)
        elif request in self.queue:
            self.queue.remove(request)

    def done(self, request: Request, now: float, *, whole: bool, disturbed: float = -math.inf) -> None:
        """Its work is over; not `whole` where it was ended from outside.

        What began before the moment `disturbed` waited for something that was away: that says nothing of other work.
        """
        assert request.began is not None
        if request.began >= disturbed:
            self._learn(request, now - request.began, now, whole=whole)
        self._working[request.priority] -= 1
        self._for_floor[request.priority] -= request.for_floor
        self._kind(request.kind).of_tiers[request.priority] -= 1
        self._begin_next(now)

    def _learn(self, request: Request, took: float, now: float, *, whole: bool) -> None:
        kind, began = request.kind, now - took
        (self._times.took if whole else self._times.took_at_least)(kind, began, now)
        within = self._limits.work_within(kind)
        if within is None:
            return
        if took > within:
            slowing = self._slowing(request)
            slowing.concurrency.too_slow(took / within, slowing.working, began, now)
        elif whole:
            own = self._kind(kind)
            own.concurrency.in_time(took / within, own.working)

    def _slowing(self, request: Request) -> _Kind:
        """The kind of which fewer at a time would help a request that is too slow.

        That with the most less urgent requests; where there are none to spare its own; and where it was alone, that
        with the most of its tier.
        """
        kinds, own = self._kinds.values(), self._kind(request.kind)
        lowest = max(kinds, key=lambda kind: kind.below(request.priority))
        if lowest.below(request.priority) > 1:
            return lowest
        return own if own.working > 1 else max(kinds, key=lambda kind: kind.of_tiers[request.priority])

    def _kind(self, kind: str) -> _Kind:
        if kind not in self._kinds:
            limits = self._limits
            concurrency = Concurrency(limits.max_ongoing_requests, adapts=bool(limits.work_within_s))
            self._kinds[kind] = _Kind(concurrency)
        return self._kinds[kind]

    def _is_free(self, request: Request) -> bool:
        """What begins for a floor takes none of its tier's places, where others may be stuck behind the more urgent."""
        priority, of_kind = request.priority, self._kind(request.kind)
        of_tier = self._working[priority] - self._for_floor[priority]
        return (
            self._working.total() < self._limits.max_ongoing_requests
            and of_kind.working < of_kind.concurrency.limit
            and (of_tier < self._limits.max_ongoing(priority) or self._is_for_floor(priority))
        )

    def _is_for_floor(self, priority: int) -> bool:
        """Whether a request of the tier that begins now does so for its floor."""
        return self.queue.is_due(priority) and self._has_more_urgent(priority)

    def _begin(self, request: Request, now: float) -> None:
        queue, priority = self.queue, request.priority
        request.for_floor = self._is_for_floor(priority)
        queue.begun(priority, self._times.mean(request.kind) or _UNKNOWN_COST)
        request.began = now
        self._working[priority] += 1
        self._for_floor[priority] += request.for_floor
        self._kind(request.kind).of_tiers[request.priority] += 1

    def _has_more_urgent(self, priority: int) -> bool:
        if any(count for each, count in self._working.items() if each < priority):
            return True
        return self.queue.next(lambda each: each.priority < priority) is not None

    def _begin_next(self, now: float) -> None:
        while self.queue and (request := self.queue.next(self._is_free)) is not None:
            self.queue.remove(request)
            if self._is_too_late(request, now):
                self._tell(request, self._late(request, now))
            else:
                self._begin(request, now)
                self._tell(request, None)

    def _expect(self, request: Request, now: float) -> Request | None:
        """Who has to go where this request waits: of a full queue, the newest of the least urgent.

        Problem where it cannot wait: nobody there is less urgent, its tier's queue is full, or its time too short. The
        first of its tier may wait however long others take, so that no estimate keeps a whole tier out.
        """
        waiting = self.queue.count(request.priority)
        kept = self._limits.kept
        unused = sum(max(0, n - self.queue.count(each)) for each, n in kept.items() if each != request.priority)
        is_full = len(self.queue) + unused >= self._limits.max_queued_requests
        other = self.queue.least_urgent(request.priority, kept) if is_full else None
        if waiting >= self._limits.max_queued(request.priority) or (is_full and other is None):
            raise self._full(request)
        if self._is_too_late(request, now, _MARGIN * self._wait(request) if waiting else 0.0):
            raise self._late(request, now)
        return other

    def _is_too_late(self, request: Request, now: float, wait: float = 0.0) -> bool:
        if not self._limits.refuse_late:
            return request.deadline <= now
        return request.deadline <= now + wait + self._times.nearly_longest(request.kind, now)

    def _wait(self, request: Request) -> float:
        """Seconds until a new request's turn comes: the work that comes before it, by the rate at which it is done.

        Of all work, of its tier's, and of its kind's: each has places of its own.
        """
        limits, own = self._limits, self._times.mean(request.kind)
        ahead = list(self.queue.ahead(request.priority, self._times.mean))
        of_tier = sum(cost for tier, _, cost in ahead if tier == request.priority)
        of_kind = sum(cost for _, kind, cost in ahead if kind == request.kind)
        return max(
            (sum(cost for *_, cost in ahead) + own) / limits.max_ongoing_requests,
            (of_tier + own) / limits.max_ongoing(request.priority),
            (of_kind + own) / self.limit(request.kind),
        )

    def _retry_after(self, request: Request) -> float:
        return max(self._limits.retry_after_s, math.ceil(self._wait(request)))

    def _full(self, request: Request) -> Problem:
        seconds = self._retry_after(request)
        detail = f"too many requests wait; retry in {seconds:g} s"
        return Problem(self._limits.status_code, "service_full", detail, retry_after=seconds)

    def _late(self, request: Request, now: float) -> Problem:
        if request.deadline <= now:
            return deadline_exceeded()
        seconds = self._retry_after(request)
        detail = f"too many requests wait for this one to be in time; retry in {seconds:g} s, or allow more time"
        return Problem(self._limits.status_code, "too_late", detail, retry_after=seconds)
