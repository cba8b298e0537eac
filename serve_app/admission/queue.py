"""The requests that wait: the most urgent tier's first, then in their order; but no tier less than its floor."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

Costs = Callable[[str], float]


@dataclass(eq=False, slots=True)
class Request:
    """`deadline` and `began` are moments by the same clock; `priority` is its tier's, 1 first.

    `for_floor`: it was begun for its tier's floor. `turn` is for whoever waits for it. `number`: its place in the order
    of those that ever waited.
    """

    kind: str
    priority: int
    deadline: float
    began: float | None = None
    for_floor: bool = False
    turn: Any = None
    number: int = 0


@dataclass(slots=True)
class _Tier:
    """Its requests by their kinds, each kind's in their order."""

    kinds: dict[str, dict[Request, None]] = field(default_factory=dict)

    def __len__(self) -> int:
        return sum(map(len, self.kinds.values()))

    def first(self, may_begin: Callable[[Request], bool]) -> Request | None:
        """The earliest of those that may; all of a kind may, or none."""
        heads = (next(iter(each)) for each in self.kinds.values() if each)
        return min(filter(may_begin, heads), key=_number, default=None)

    def newest(self) -> Request:
        """Of one that has any."""
        return max((next(reversed(each)) for each in self.kinds.values() if each), key=_number)


def _number(request: Request) -> int:
    return request.number


class Queue:
    """`floors` are shares (more than 0, less than 1) of all work that begins, by priority."""

    def __init__(self, floors: Mapping[int, float]):
        self.floors = floors
        # The work that a floor has not given its tier yet; none is saved up while nobody waits.
        self._lags: dict[int, float] = {}
        self._tiers: dict[int, _Tier] = {}
        self._length = 0
        self._numbers = itertools.count()

    def __len__(self) -> int:
        return self._length

    def __contains__(self, request: Request) -> bool:
        return request in self._tier(request.priority).kinds.get(request.kind, ())

    def count(self, priority: int) -> int:
        """How many of a tier wait."""
        return len(self._tier(priority)) if self._length else 0

    def add(self, request: Request) -> None:
        request.number = next(self._numbers)
        self._tier(request.priority).kinds.setdefault(request.kind, {})[request] = None
        self._length += 1

    def remove(self, request: Request) -> None:
        del self._tiers[request.priority].kinds[request.kind][request]
        self._length -= 1

    def ahead(self, priority: int, cost: Costs) -> Iterator[tuple[int, str, float]]:
        """What a new request of that priority would come after: tier, kind, and the cost of all that wait of it."""
        for tier, each in self._tiers.items():
            if tier <= priority:
                yield from ((tier, kind, cost(kind) * len(requests)) for kind, requests in each.kinds.items())

    def least_urgent(self, below: int, kept: Mapping[int, int]) -> Request | None:
        """The newest of the least urgent tier of those less urgent than `below`, that has more than is kept for it."""
        for priority, tier in reversed(self._tiers.items()):
            if priority <= below:
                return None
            if len(tier) > kept.get(priority, 0):
                return tier.newest()
        return None

    def next(self, may_begin: Callable[[Request], bool]) -> Request | None:
        """Whose turn it is, of those whose tier and kind may begin work; it stays in the queue."""
        if not self._length:
            return None
        chosen = None
        for priority, tier in self._tiers.items():
            if (chosen is None or self.is_due(priority)) and (first := tier.first(may_begin)) is not None:
                if chosen is not None:
                    return first
                chosen = first
        return chosen

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
