"""Measurements as text for people, and as JSON for machines."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from serve_app.bench.clients import GrpcRequest, HttpRequest
from serve_app.bench.loops import Load
from serve_app.bench.samples import Figures
from serve_app.bench.server import Work
from serve_app.bench.windows import AGREEING, WITHIN, Measurement

# From here on the client is as busy as the service, and a faster one would see higher rates.
BUSY_CLIENT = 0.9


@dataclass(frozen=True)
class Result:
    """One load, and what came of it."""

    request: HttpRequest | GrpcRequest
    load: Load
    measured: Measurement[Mapping[str, Work]]

    @property
    def models(self) -> dict[str, Work]:
        """What each model that worked did meanwhile."""
        before, after = self.measured.before, self.measured.after
        work = {name: now.since(before.get(name, Work())) for name, now in after.items()}
        return {name: each for name, each in work.items() if each.requests}


def show(result: Result) -> str:
    """A few lines."""
    measured, found = result.measured, result.measured.figures
    lines = [
        f"{result.load}: {found.rate:.1f} answers/s  ({_steadiness(measured)})",
        f"  latency   p50 {_ms(found.p50_ms)}  p90 {_ms(found.p90_ms)}  p99 {_ms(found.p99_ms)}",
        f"  requests  {_counts(found)}",
    ]
    if measured.unsent:
        lines.append(f"  not sent  {measured.unsent}: too many others waited for an answer")
    lines += [
        f"  {name}: {work.requests / found.seconds:.1f} requests/s, {_split(work)}"
        for name, work in result.models.items()
    ]
    lines.append(f"  this client took {measured.client_cpu:.0%} of a core{_warning(measured.client_cpu)}")
    return "\n".join(lines)


def _steadiness(measured: Measurement[Any]) -> str:
    count = min(AGREEING, len(measured.rates))
    if measured.stable:
        return f"the last {count} windows are within {WITHIN:.0%} of their mean"
    return f"not steady: {', '.join(f'{rate:.1f}' for rate in measured.rates[-count:])} in the last {count} windows"


def _ms(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f} ms"


def _counts(found: Figures) -> str:
    others = {"refused": found.refused, "late": found.late, "failed": found.failed}
    text = ", ".join([f"{found.answered} answered", *(f"{count} {kind}" for kind, count in others.items() if count)])
    if found.answered < sum(found.codes.values()):
        text += "  (" + ", ".join(f"{code}: {count}" for code, count in sorted(found.codes.items())) + ")"
    if found.refused_p99_ms is not None:
        text += f"; refused within {_ms(found.refused_p99_ms)} (p99)"
    return text


def _split(work: Work) -> str:
    queue, compute = (ns / work.requests / 1e6 for ns in (work.queue_ns, work.compute_ns))
    batch = f"average batch {work.items / work.runs:.2f}, " if work.runs else ""
    return f"{batch}queue {queue:.2f} ms, compute {compute:.2f} ms"


def _warning(share: float) -> str:
    return ": these are the client's limits, not the service's" if share >= BUSY_CLIENT else ""


def as_json(results: Sequence[Result]) -> str:
    """A list with one object for each load."""
    return json.dumps([_plain(result) for result in results], indent=2) + "\n"


def _plain(result: Result) -> dict[str, Any]:
    measured = result.measured
    return {
        "request": str(result.request),
        "request_bytes": result.request.size,
        "load": {"loop": type(result.load).__name__.removesuffix("Loop").lower(), **asdict(result.load)},
        "stable": measured.stable,
        "window_rates": measured.rates,
        **asdict(measured.figures),
        "unsent": measured.unsent,
        "client_cpu": measured.client_cpu,
        "models": {name: _figures(work, measured.figures.seconds) for name, work in result.models.items()},
    }


def _figures(work: Work, seconds: float) -> dict[str, float | None]:
    return {
        "rate": work.requests / seconds,
        "average_batch": work.items / work.runs if work.runs else None,
        "queue_ms": work.queue_ns / work.requests / 1e6,
        "compute_ms": work.compute_ns / work.requests / 1e6,
    }
