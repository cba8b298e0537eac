"""How long the work on requests takes just now, by their kind: a route or a model."""

from __future__ import annotations

# Of RFC 6298 §2, which estimates a time that varies in the same way for the same purpose: to give up in time.
_OF_MEAN = 1 / 8
_OF_DEVIATION = 1 / 4
_DEVIATIONS = 2
# Nobody is sent away for what was so long ago.
REMEMBERED_S = 30.0


_NOTHING = 0.0, 0.0, 0.0


class ServiceTimes:
    """Seconds. What is not known yet is 0."""

    def __init__(self) -> None:
        # Mean, deviation, and when the last one ended.
        self._known: dict[str, tuple[float, float, float]] = {}

    def took(self, kind: str, began: float, now: float) -> None:
        """A request's work has ended."""
        seconds, known = now - began, self._known.get(kind)
        if known is None:
            self._known[kind] = seconds, seconds / 2, now
            return
        mean, deviation, _ = known
        deviation += _OF_DEVIATION * (abs(seconds - mean) - deviation)
        self._known[kind] = mean + _OF_MEAN * (seconds - mean), deviation, now

    def took_at_least(self, kind: str, began: float, now: float) -> None:
        """It was ended from outside: at its deadline, or since its client is gone."""
        if now - began > self.mean(kind):
            self.took(kind, began, now)

    def mean(self, kind: str) -> float:
        return self._known.get(kind, _NOTHING)[0]

    def nearly_longest(self, kind: str, now: float) -> float:
        """Only few took longer just now."""
        mean, deviation, last = self._known.get(kind, _NOTHING)
        return mean + _DEVIATIONS * deviation if now - last <= REMEMBERED_S else 0.0
