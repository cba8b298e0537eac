"""How many requests are worked on at a time: as many as leave each the time it may take.

More at a time than cores and models can do makes each slower, and answers none more. Additive increase, multiplicative
decrease, with a slow start, as TCP finds how much a network carries (RFC 5681 §3.1).
"""

from __future__ import annotations

_FIRST = 4
# A request that is twice too slow asks for half as many: as many a second are answered, each of them faster.
_LEAST_DECREASE, _MOST_DECREASE = 0.9, 0.5


class Concurrency:
    """`limit` requests at a time, at most `most`; always as many where it does not adapt."""

    def __init__(self, most: int, *, adapts: bool):
        self._found = float(_FIRST)
        self._is_starting = True
        self._decreased = 0.0
        self.change(most, adapts=adapts)

    def change(self, most: int, *, adapts: bool) -> None:
        self._most = most
        self._adapts = adapts
        self.limit = min(int(self._found), most) if adapts else most

    def ended(self, began: float, now: float, within: float, at_once: int) -> None:
        """A request's work is over, of `at_once` that were worked on when it ended, and should have taken `within`."""
        took = now - began
        if took <= within:
            if at_once < self.limit:
                return  # nobody needs more
            # One more in each `within`, however many short requests end in it.
            more = 1 if self._is_starting else took / within / self._found
            self._found = min(self._most, self._found + more)
        elif at_once > 1 and began >= self._decreased:  # those that began before say nothing of the decrease
            share = min(max(within / took, _MOST_DECREASE), _LEAST_DECREASE)
            self._found = max(1.0, min(self._found, at_once) * share)
            self._is_starting = False
            self._decreased = now
        self.change(self._most, adapts=self._adapts)
