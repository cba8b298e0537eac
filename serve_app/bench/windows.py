"""Measuring in windows until their rates agree, so that a warm-up or a hiccup is not taken for the figure."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any

from serve_app.bench.loops import Record
from serve_app.bench.samples import Figures, Sample, figures

AGREEING = 3
WITHIN = 0.05


@dataclass(frozen=True)
class Plan:
    """Seconds of warm-up, seconds of a window, and how many windows there may be at the most."""

    warm_up: float = 2.0
    window: float = 3.0
    most: int = 10


@dataclass(frozen=True)
class Measurement:
    """The figures of the last windows together. `stable`: their rates were within 5 % of each other."""

    figures: Figures
    stable: bool
    windows: list[float]


def stable(rates: Sequence[float]) -> bool:
    """Whether the last three rates are within 5 % of their mean."""
    last = rates[-AGREEING:]
    mean = sum(last) / len(last) if last else 0.0
    return len(last) == AGREEING and mean > 0 and all(abs(rate - mean) <= WITHIN * mean for rate in last)


async def measure(
    load: Callable[[asyncio.Event, Record], Coroutine[Any, Any, Any]], plan: Plan, progress: Callable[[str], None]
) -> Measurement:
    """Run `load(stop, record)` until three windows agree or there have been `plan.most`."""
    loop = asyncio.get_running_loop()
    samples: list[Sample] = []
    stop = asyncio.Event()
    running = asyncio.ensure_future(load(stop, samples.append))
    edges = [loop.time() + plan.warm_up]
    rates: list[float] = []
    try:
        await _sleep(running, edges[0])
        while len(rates) < plan.most and not stable(rates):
            edges.append(edges[-1] + plan.window)
            await _sleep(running, edges[-1])
            window = figures(_between(samples, edges[-2], edges[-1]), plan.window)
            rates.append(window.rate)
            progress(
                f"window {len(rates)}: {window.rate:.1f}/s, p50 {window.p50_ms:.1f} ms, p99 {window.p99_ms:.1f} ms"
            )
    finally:
        stop.set()
        await running
    kept = min(AGREEING, len(rates))
    found = figures(_between(samples, edges[-1 - kept], edges[-1]), kept * plan.window)
    return Measurement(found, stable(rates), rates)


def _between(samples: Sequence[Sample], start: float, end: float) -> list[Sample]:
    """Those that ended in the window."""
    return [sample for sample in samples if start <= sample.ended < end]


async def _sleep(running: asyncio.Future[Any], until: float) -> None:
    """Wait until then; what the load raises comes up at once."""
    seconds = until - asyncio.get_running_loop().time()
    done, _ = await asyncio.wait([running], timeout=max(0.0, seconds))
    if done:
        running.result()
