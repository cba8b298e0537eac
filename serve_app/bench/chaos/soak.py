"""Four fifths of what a deployment can do, for long: what it holds at the end that it did not at the beginning."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

from serve_app.bench.chaos.load import STEADY, WORD, Clients, Load, targets
from serve_app.bench.chaos.outcomes import Tally, tally
from serve_app.bench.chaos.run import SETTLED_WITHIN_S, place
from serve_app.bench.chaos.traces import Traces, left, look
from serve_app.bench.clients import HttpClient, HttpRequest
from serve_app.bench.error import BenchError
from serve_app.bench.loops import ClosedLoop, OpenLoop
from serve_app.bench.loops import Load as Loop
from serve_app.bench.requests import http_infer
from serve_app.bench.samples import Figures, Sample, figures
from serve_app.cluster.head import find_head
from serve_app.cluster.sample import fetch_photos, write_sample
from serve_app.project import Project
from serve_app.weights.errors import Progress

SHARE = 0.8
_CLIENTS = 16
# What it can do, and what the requests beside need, is measured for so long each.
_FULL_S, _BESIDE_S = 20.0, 15.0
# Under its share for so long everything has the size that it needs, and as many ingresses have come as will.
_SETTLING_S = 60.0
# By which no role may grow.
MORE_MEMORY = 32 * 2**20


@dataclass(frozen=True)
class Soak:
    """`full`: what it could do with nothing beside; `beside`: the share of the cores (0 to 1) that the requests beside
    took; `figures`: what it did of what they left of its share; `seen`: what came of them.
    """

    full: Figures
    beside: float
    figures: Figures
    seen: Tally
    before: Traces
    after: Traces
    leaks: Sequence[str]

    @property
    def is_well(self) -> bool:
        return not (self.leaks or self.seen.undocumented or self.figures.failed)


def soak(source: Project, seconds: float, progress: Progress) -> Soak:
    photos = fetch_photos(progress)
    with place(source, progress) as project:
        pictures = write_sample(project.root.parent / "sample", photos)
        return asyncio.run(_soak(project, seconds, pictures, progress))


async def _soak(project: Project, seconds: float, pictures: Sequence[Path], progress: Progress) -> Soak:
    head = find_head(project)
    if head is None:
        raise BenchError("the deployment is gone before the load began; see its logs")
    spec = project.spec()
    request = http_infer(spec.url, STEADY, [WORD], {})
    async with Clients(spec) as clients:
        full = await _run(ClosedLoop(_CLIENTS), request, _FULL_S)
        load = Load(targets=await targets(clients, pictures))
        async with load.running():
            beside = await asyncio.to_thread(psutil.cpu_percent, _BESIDE_S) / 100
            loop = OpenLoop(rate_beside(full.rate, beside))
            progress(
                f"{full.rate:.0f} answers/s at the most, {beside:.0%} of the cores for the requests beside: {loop}"
            )
            await _run(loop, request, _SETTLING_S)
            before = await asyncio.to_thread(look, head)
            progress(f"settled; the same for {seconds:g} s")
            begun = await _run(loop, request, seconds)
            after = await asyncio.to_thread(look, head)
    leaks = left(before, after, memory=MORE_MEMORY)
    return Soak(full, beside, begun, tally(load.seen, resets=False), before, after, leaks)


def rate_beside(full: float, beside: float) -> float:
    """Requests a second that make SHARE of a load of `full` alone, where others take `beside` of the cores (0 to 1).

    BenchError where nothing is left.
    """
    if beside >= SHARE:
        raise BenchError(
            f"the requests beside take {beside:.0%} of the cores: nothing is left of {SHARE:.0%}; "
            "end what else runs on this machine, or soak on one with more cores"
        )
    return full * (SHARE - beside)


async def _run(loop: Loop, request: HttpRequest, seconds: float) -> Figures:
    """Over connections that are closed after that, and for so long that the service has closed them too."""
    samples: list[Sample] = []
    stop = asyncio.Event()
    asyncio.get_running_loop().call_later(seconds, stop.set)
    async with HttpClient(request, trusting=True) as client:
        await loop.run(client.send, stop, samples.append)
    await asyncio.sleep(SETTLED_WITHIN_S)
    return figures(samples, seconds)


def soak_as_json(found: Soak) -> str:
    parts = asdict(found)
    for name in ("before", "after"):
        parts[name] = {key: parts[name][key] for key in ("processes", "descriptors", "ports", "memory")}
    return json.dumps({**parts, "well": found.is_well}, indent=2)


def soak_table(found: Soak) -> str:
    """The figures, and a row for each role."""
    sent = found.figures
    lines = [
        f"{sent.rate:.1f} answers/s of {found.full.rate:.1f} at the most, with {found.beside:.0%} of the cores for "
        f"the requests beside, p99 {sent.p99_ms or 0:.1f} ms; "
        f"{sent.refused} refused, {sent.late} late, {sent.failed} failed; beside them {found.seen.answered} answered, "
        f"{sum(found.seen.refused.values())} refused, {sum(found.seen.undocumented.values())} undocumented",
        f"{'':20} {'descriptors':>16} {'memory (MiB)':>16}",
    ]
    for role in sorted(found.after.processes):
        pairs = [
            f"{was.get(role, 0) // unit} → {now[role] // unit}"
            for was, now, unit in (
                (found.before.descriptors, found.after.descriptors, 1),
                (found.before.memory, found.after.memory, 2**20),
            )
        ]
        lines.append(f"{role:20} {pairs[0]:>16} {pairs[1]:>16}")
    return "\n".join([*lines, *(f"left behind: {leak}" for leak in found.leaks)])
