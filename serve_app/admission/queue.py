"""The requests that wait: the most urgent tier's first, then in their order; but no tier less than its floor."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

Costs = Callable[[str], float]


@dataclass(eq=False, slots=True)
class Request:
    """`deadline` and `began` are moments by the same clock; `priority` is its tier's, 1 first.

    `for_floor`: it was begun for its tier's floor. `turn` is for whoever waits for it.
    """

    kind: str
    priority: int
    deadline: float
    began: float | None = None
    for_floor: bool = False
    turn: Any = None


@dataclass(slots=True)
class _Tier:
    """Its requests in their order, and how many there are of each kind."""

    requests: dict[Request, None] = field(default_factory=dict)
    kinds: Counter[str] = field(default_factory=Counter)


class Queue:
    """`floors` are shares (more than 0, less than 1) of all work that begins, by priority."""

    def __init__(self, floors: Mapping[int, float]):
        self.floors = floors
        # The work that a floor has not given its tier yet; none is saved up while nobody waits.
        self._lags: dict[int, float] = {}
        self._tiers: dict[int, _Tier] = {}
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def __contains__(self, request: Request) -> bool:
        return request in self._tier(request.priority).requests

    def count(self, priority: int) -> int:
        """How many of a tier wait."""
        return len(self._tier(priority).requests) if self._length else 0

    def add(self, request: Request) -> None:
        tier = self._tier(request.priority)
        tier.requests[request] = None
        tier.kinds[request.kind] += 1
        self._length += 1

    def remove(self, request: Request) -> None:
        tier = self._tiers[request.priority]
        del tier.requests[request]
        tier.kinds[request.kind] -= 1
        self._length -= 1

    def ahead(self, priority: int, cost: Costs) -> tuple[float, float]:
        """The cost of all that a new request of that priority would wait for: of more urgent tiers, and of its own."""
        work = {
            each: sum(cost(kind) * count for kind, count in tier.kinds.items()) for each, tier in self._tiers.items()
        }
        return sum(each for tier, each in work.items() if tier < priority), work.get(priority, 0.0)

    def least_urgent(self, below: int, kept: Mapping[int, int]) -> Request | None:
        """The newest of the least urgent tier of those less urgent than `below`, that has more than is kept for it."""
        for priority, tier in reversed(self._tiers.items()):
            if priority <= below:
                return None
            if len(tier.requests) > kept.get(priority, 0):
                return next(reversed(tier.requests))
        return None

    def next(self, may_begin: Callable[[int], bool]) -> Request | None:
        """Whose turn it is, of the tiers that may begin work; it stays in the queue."""
        if not self._length:
            return None
        first = None
        for priority, tier in self._tiers.items():
            if tier.requests and may_begin(priority):
                if first is not None and self.is_due(priority):
                    return next(iter(tier.requests))
                first = first or next(iter(tier.requests))
        return first

    def is_due(self, priority: int) -> bool:
        """Whether the tier has a floor, and has had no more than it."""
        return priority in self.floors and self._lags.get(priority, 0.0) >= 0

    def begun(self, priority: int, cost: float) -> None:
        """Work of a tier began, whether or not it had waited."""
        for each, floor in self.floors.items():
            lag = self._lags.get(each, 0.0) + floor * cost
            if each == priority:
                lag = max(lag - cost, -cost)  # what others left to it is not held against it
            elif lag > 0 and not self.count(each):
                lag = 0.0
            self._lags[each] = lag

    def _tier(self, priority: int) -> _Tier:
        if priority not in self._tiers:
            self._tiers = dict(sorted([*self._tiers.items(), (priority, _Tier())]))
        return self._tiers[priority]
