"""What is offered, and when: moments in seconds after the start, whatever the service does meanwhile."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

Moments = tuple[float, ...]


@dataclass(frozen=True)
class Load:
    """The moments of each tier's requests. What is answered in the first `settling` seconds does not count."""

    name: str
    seconds: float
    moments: Mapping[str, Moments]
    settling: float = 0.0

    def of_client(self, client: int, clients: int) -> dict[str, Moments]:
        """What one of so many client processes sends: of four, every fourth request."""
        return {tier: moments[client::clients] for tier, moments in self.moments.items()}


def bursts(size: int, times: int, every: float) -> Moments:
    """`size` requests at once, so many times, each `every` seconds after the one before."""
    return tuple(burst * every for burst in range(times) for _ in range(size))


def poisson(rate: float, seconds: float, seed: int) -> Moments:
    """Requests of clients that know nothing of each other: `rate` a second on average, the same for the same seed."""
    drawn, moment, moments = random.Random(seed), 0.0, []
    while (moment := moment + drawn.expovariate(rate)) < seconds:
        moments.append(moment)
    return tuple(moments)


def burst_of(moment: float, every: float) -> int:
    """Which of the bursts a request belongs to."""
    return round(moment / every)


def steady(name: str, rates: Mapping[str, float], seconds: float, settling: float) -> Load:
    """Each tier's requests at its rate."""
    moments = {tier: poisson(rate, seconds, seed) for seed, (tier, rate) in enumerate(rates.items())}
    return Load(name, seconds, moments, settling)


def all_moments(moments: Mapping[str, Sequence[float]]) -> list[tuple[float, str]]:
    """All tiers' together, in order."""
    return sorted((moment, tier) for tier, each in moments.items() for moment in each)
