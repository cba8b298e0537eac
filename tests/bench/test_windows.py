"""When a measurement ends, and of which windows its figures are."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from serve_app.bench.loops import ClosedLoop
from serve_app.bench.samples import Outcome
from serve_app.bench.windows import Measurement, Plan, measure, stable


@pytest.mark.parametrize(
    ("rates", "steady"),
    [
        ([], False),
        ([100, 100], False),
        ([100, 100, 100], True),
        ([10, 100, 104, 97], True),
        ([100, 100, 100, 130], False),
        ([100, 104, 112], False),
        ([0, 0, 0], False),
    ],
)
def test_three_rates_within_5_percent_of_their_mean_are_steady(rates: Sequence[float], steady: bool) -> None:
    assert stable(rates) is steady


class Looks:
    """Counts how often it was looked."""

    def __init__(self) -> None:
        self.count = 0

    async def __call__(self) -> int:
        self.count += 1
        return self.count


async def measured(outcome: Outcome, plan: Plan) -> tuple[Measurement[int], list[str]]:
    async def send() -> Outcome:
        await asyncio.sleep(0.001)
        return outcome

    lines: list[str] = []
    return await measure(ClosedLoop(2), send, plan, Looks(), lines.append), lines


async def test_figures_are_of_the_last_three_windows() -> None:
    found, lines = await measured(Outcome("answered", "200"), Plan(warm_up=0.05, window=0.1, most=30))
    assert 3 <= len(found.rates) == len(lines) <= 30
    assert (found.before, found.after) == (len(found.rates) - 2, len(found.rates) + 1)
    assert min(found.rates[-3:]) <= found.figures.rate <= max(found.rates[-3:])
    assert found.figures.answered == found.figures.codes["200"] > 0
    assert found.figures.p50_ms is not None
    assert found.figures.p50_ms >= 1
    assert found.client_cpu > 0


async def test_a_service_that_answers_nothing_is_given_up_after_the_most_windows() -> None:
    found, lines = await measured(Outcome("failed", "500"), Plan(warm_up=0, window=0.02, most=4))
    assert (found.stable, found.rates, len(lines)) == (False, [0.0] * 4, 4)
    assert found.figures.failed > 0


async def test_fewer_windows_than_three_are_all_that_count() -> None:
    found, _ = await measured(Outcome("answered", "200"), Plan(warm_up=0, window=0.02, most=1))
    assert (found.stable, found.before, found.after) == (False, 1, 2)


async def test_what_goes_wrong_while_the_load_runs_comes_up_before_the_window_ends() -> None:
    async def broken() -> Outcome:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await asyncio.wait_for(measure(ClosedLoop(1), broken, Plan(0, 3600, 1), Looks(), print), 20)
