"""How many requests of a kind are worked on at a time: as many as leave each the time it may take.

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

    def in_time(self, share: float, at_once: int) -> None:
        """A request's work took that share of the time it may take; at its end so many were worked on."""
        if at_once < self.limit:
            return  # nobody needs more
        # One more in each time that a request may take, however many short ones end in it.
        more = 1 if self._is_starting else share / self._found
        self._found = min(self._most, self._found + more)
        self.change(self._most, adapts=self._adapts)

    def too_slow(self, share: float, at_once: int, began: float, now: float) -> None:
        """The same, of a request that took longer than it may, and that fewer at a time would have helped."""
        if at_once > 1 and began >= self._decreased:  # those that began before say nothing of the decrease
            self._found = max(1.0, min(self._found, at_once) * min(max(1 / share, _MOST_DECREASE), _LEAST_DECREASE))
            self._is_starting = False
            self._decreased = now
            self.change(self._most, adapts=self._adapts)
