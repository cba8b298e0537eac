"""What has to come of each load, from what came of it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from serve_app.bench.overload.clients import Offered
from serve_app.bench.overload.deployment import BATCH, FLOOR, Sleeper
from serve_app.bench.overload.loads import Load, burst_of, bursts, steady
from serve_app.bench.overload.shots import Shot, Tally, tally

BURST, BURSTS, BURSTS_EVERY_S = 40, 8, 0.75
_SECONDS, _SETTLING_S = 5.0, 1.0
# Of capacity, that has to be answered; and of a floor, that a tier has to get.
_NEARLY = 0.95
# Of what is meant to be offered, without which the machine could not carry the measurement.
_OFFERED = 0.98
_REFUSED_WITHIN_MS = 20.0


@dataclass(frozen=True)
class Goal:
    """A figure, and what it has to be; `value` is None where nothing was there to be measured."""

    name: str
    unit: str
    value: float | None
    at_least: float | None = None
    at_most: float | None = None

    @property
    def met(self) -> bool:
        value, least, most = self.value, self.at_least, self.at_most
        return value is not None and (least is None or value >= least) and (most is None or value <= most)


@dataclass(frozen=True)
class Trial:
    """A load, and how it is judged."""

    load: Load
    judge: Callable[[Offered], Iterator[Goal]]


def warm_up(sleeper: Sleeper) -> Load:
    """Not judged: connections and code are used for the first time."""
    return steady("warm-up", {"standard": sleeper.capacity / 2}, 1.5, 0.0)


def trials(sleeper: Sleeper) -> list[Trial]:
    """All that is judged, in order."""
    capacity = sleeper.capacity
    return [
        Trial(
            Load(f"bursts of {BURST}", BURSTS * BURSTS_EVERY_S, {"standard": bursts(BURST, BURSTS, BURSTS_EVERY_S)}),
            partial(_of_bursts, sleeper),
        ),
        *(
            Trial(
                steady(f"offered {times}x capacity", {"standard": times * capacity}, _SECONDS, _SETTLING_S),
                partial(_of_one_tier, sleeper, times),
            )
            for times in (2, 4)
        ),
        Trial(
            steady(
                "bulk 4x, interactive 0.2x",
                {"interactive": 0.2 * capacity, "bulk": 4 * capacity},
                _SECONDS,
                _SETTLING_S,
            ),
            partial(_of_the_urgent, sleeper),
        ),
        Trial(
            steady(
                "interactive 2x, bulk 2x", {"interactive": 2 * capacity, "bulk": 2 * capacity}, _SECONDS, _SETTLING_S
            ),
            partial(_of_the_floor, sleeper),
        ),
    ]


def tallies(offered: Offered) -> dict[str, Tally]:
    """By tier."""
    load = offered.load
    return {
        tier: tally([shot for shot in offered.shots if shot.tier == tier], load.settling, load.seconds)
        for tier in load.moments
    }


def burst_times_ms(shots: Sequence[Shot]) -> list[float]:
    """How long each burst took until its last request was over."""
    took: dict[int, float] = {}
    for shot in shots:
        burst = burst_of(shot.due, BURSTS_EVERY_S)
        took[burst] = max(took.get(burst, 0.0), shot.took_ms)
    return [took[burst] for burst in sorted(took)]


def _of_bursts(sleeper: Sleeper, offered: Offered) -> Iterator[Goal]:
    ideal_ms = math.ceil(BURST / BATCH) * sleeper.batch_time * 1e3
    took = burst_times_ms(offered.shots)
    yield Goal("a burst's time, on average", "ms", sum(took) / len(took), at_most=1.25 * ideal_ms)
    yield Goal("the latest answer of any", "ms", max(took), at_most=ideal_ms + 50)
    yield Goal("answered", "%", 100 * tallies(offered)["standard"].share, at_least=100)


def _of_one_tier(sleeper: Sleeper, times: int, offered: Offered) -> Iterator[Goal]:
    found = tallies(offered)["standard"]
    yield Goal("offered", "/s", found.offered, at_least=_OFFERED * times * sleeper.capacity)
    yield Goal("answered", "/s", found.rate, at_least=_NEARLY * sleeper.capacity)
    yield Goal("p99 of the answered", "ms", found.answered_p99_ms, at_most=1.25 * sleeper.bound_s * 1e3)
    yield Goal("p99 of the refused", "ms", found.refused_p99_ms, at_most=_REFUSED_WITHIN_MS)
    yield Goal("late or failed", "", found.late + found.failed, at_most=0)


def _of_the_urgent(sleeper: Sleeper, offered: Offered) -> Iterator[Goal]:
    found = tallies(offered)
    urgent, bulk = found["interactive"], found["bulk"]
    yield Goal("offered by bulk", "/s", bulk.offered, at_least=_OFFERED * 4 * sleeper.capacity)
    yield Goal("interactive answered", "%", 100 * urgent.share, at_least=99)
    yield Goal("p99 of interactive", "ms", urgent.answered_p99_ms, at_most=3 * sleeper.batch_time * 1e3)
    yield _share_of_bulk(urgent, bulk)


def _of_the_floor(sleeper: Sleeper, offered: Offered) -> Iterator[Goal]:
    found = tallies(offered)
    urgent, bulk = found["interactive"], found["bulk"]
    yield Goal("offered by interactive", "/s", urgent.offered, at_least=_OFFERED * 2 * sleeper.capacity)
    yield Goal("answered, both", "/s", urgent.rate + bulk.rate, at_least=_NEARLY * sleeper.capacity)
    yield _share_of_bulk(urgent, bulk)


def _share_of_bulk(urgent: Tally, bulk: Tally) -> Goal:
    both = urgent.rate + bulk.rate
    share = 100 * bulk.rate / both if both else None
    return Goal(f"bulk's share (floor {FLOOR:.0%})", "%", share, at_least=100 * _NEARLY * FLOOR)
