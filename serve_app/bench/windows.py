"""Measuring in windows until their rates agree, so that a warm-up or a hiccup is not taken for the figure."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from serve_app.bench.loops import Load, Send
from serve_app.bench.samples import Figures, Sample, figures

AGREEING = 3
WITHIN = 0.05
_Look = TypeVar("_Look")


@dataclass(frozen=True)
class Plan:
    """Seconds of warm-up, seconds of a window, and how many windows there may be at the most."""

    warm_up: float
    window: float
    most: int


@dataclass(frozen=True)
class Measurement(Generic[_Look]):
    """The figures of the last windows together, and what a look at the service before and after them showed.

    `stable`: their rates are within 5 % of their mean. `client_cpu`: the share of one core that this process took;
    near 1, the figures are those of the client. `unsent`: requests of an open loop that there was no room for.
    """

    figures: Figures
    stable: bool
    rates: list[float]
    client_cpu: float
    unsent: int
    before: _Look
    after: _Look


def stable(rates: Sequence[float]) -> bool:
    """Whether the last three rates are within 5 % of their mean."""
    last = rates[-AGREEING:]
    mean = sum(last) / len(last) if last else 0.0
    return len(last) == AGREEING and mean > 0 and all(abs(rate - mean) <= WITHIN * mean for rate in last)


@dataclass
class _Edge(Generic[_Look]):
    time: float
    cpu: float
    look: _Look


async def measure(
    load: Load, send: Send, plan: Plan, look: Callable[[], Awaitable[_Look]], progress: Callable[[str], None]
) -> Measurement[_Look]:
    """Run the load until three windows agree or there have been `plan.most`."""
    samples: list[Sample] = []
    stop = asyncio.Event()

    async def edge() -> _Edge[_Look]:
        seen = await look()
        return _Edge(asyncio.get_running_loop().time(), time.process_time(), seen)

    running = asyncio.ensure_future(load.run(send, stop, samples.append))
    rates: list[float] = []
    try:
        await _pass(running, plan.warm_up)
        edges = [await edge()]
        while len(rates) < plan.most and not stable(rates):
            await _pass(running, plan.window)
            edges.append(await edge())
            window = _figures(samples, edges[-2], edges[-1])
            rates.append(window.rate)
            progress(f"window {len(rates)}: {_line(window)}")
    finally:
        stop.set()
        unsent = await running
    first, last = edges[-1 - min(AGREEING, len(rates))], edges[-1]
    cpu = (last.cpu - first.cpu) / (last.time - first.time)
    return Measurement(
        _figures(samples, first, last), stable(rates), rates, cpu, unsent, before=first.look, after=last.look
    )


def _figures(samples: Sequence[Sample], start: _Edge[_Look], end: _Edge[_Look]) -> Figures:
    """Of those that ended between the edges."""
    return figures([each for each in samples if start.time <= each.ended < end.time], end.time - start.time)


def _line(window: Figures) -> str:
    rate = f"{window.rate:.1f} answers/s"
    return rate if window.p50_ms is None else f"{rate}, p50 {window.p50_ms:.2f} ms, p99 {window.p99_ms:.2f} ms"


async def _pass(running: asyncio.Future[int], seconds: float) -> None:
    """Let time pass; what the load raises comes up at once."""
    done, _ = await asyncio.wait([running], timeout=seconds)
    if done:
        running.result()
