"""How many requests are worked on at a time: as many as leave each the time it may take.

More at a time than cores and models can do makes each slower, and answers none more. Additive increase, multiplicative
decrease, with a slow start, as TCP finds how much a network carries (RFC 5681 §3.1).
"""

from __future__ import annotations

_FIRST = 4
_DECREASE = 0.8


class Concurrency:
    """At most `most`; always as many where it does not adapt."""

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
        if now - began <= within:
            if at_once >= self.limit:  # else nobody needs more
                self._found = min(self._most, self._found + (1 if self._is_starting else 1 / self._found))
        elif at_once > 1 and began >= self._decreased:  # those that began before say nothing of the decrease
            self._found = max(1.0, min(self._found, at_once) * _DECREASE)
            self._is_starting = False
            self._decreased = now
        self.change(self._most, adapts=self._adapts)
