"""How long the work on requests takes just now, by their kind: a route or a model."""

from __future__ import annotations

from dataclasses import dataclass

# Of RFC 6298 §2, which estimates a time that varies in the same way for the same purpose: to give up in time.
_OF_MEAN = 1 / 8
_OF_DEVIATION = 1 / 4
_DEVIATIONS = 2
# Nobody is sent away for what was so long ago.
REMEMBERED_S = 30.0


@dataclass(frozen=True)
class _Known:
    mean: float
    deviation: float
    at: float


_NOTHING = _Known(0.0, 0.0, 0.0)


class ServiceTimes:
    """Seconds. What is not known yet is 0."""

    def __init__(self) -> None:
        self._known: dict[str, _Known] = {}

    def took(self, kind: str, began: float, now: float) -> None:
        """A request's work has ended."""
        seconds, known = now - began, self._known.get(kind)
        if known is None:
            self._known[kind] = _Known(seconds, seconds / 2, now)
            return
        mean = known.mean + _OF_MEAN * (seconds - known.mean)
        deviation = known.deviation + _OF_DEVIATION * (abs(seconds - known.mean) - known.deviation)
        self._known[kind] = _Known(mean, deviation, now)

    def took_at_least(self, kind: str, began: float, now: float) -> None:
        """It was ended from outside: at its deadline, or since its client is gone."""
        if now - began > self.mean(kind):
            self.took(kind, began, now)

    def mean(self, kind: str) -> float:
        return self._known.get(kind, _NOTHING).mean

    def nearly_longest(self, kind: str, now: float) -> float:
        """Only few took longer just now."""
        known = self._known.get(kind, _NOTHING)
        return known.mean + _DEVIATIONS * known.deviation if now - known.at <= REMEMBERED_S else 0.0
