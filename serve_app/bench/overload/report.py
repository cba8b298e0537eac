"""A comparison as a table for people, and as JSON for machines."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

import psutil

from serve_app.bench.overload.goals import Goal, tallies
from serve_app.bench.overload.run import Comparison, Outcome

_NAME, _CELL = 30, 20


def table(found: Comparison) -> str:
    """Each figure beside what it has to be, and whether it is; below each load what it took of the machine."""
    sleeper = found.sleeper
    lines = [
        f"a full batch of 8 takes {sleeper.batch_time * 1e3:g} ms, so the model answers {sleeper.capacity:.0f}/s; "
        f"{found.clients} client processes, {psutil.cpu_count()} cores",
        "",
        f"{'':{_NAME}}{'has to be':{_CELL}}" + "".join(f"{side:{_CELL}}" for side in found.sides),
    ]
    for load, outcome in next(iter(found.sides.values())).items():
        sides = {side: outcomes[load] for side, outcomes in found.sides.items()}
        lines.append(load)
        for index, goal in enumerate(outcome.goals):
            cells = "".join(f"{_cell(each.goals[index]):{_CELL}}" for each in sides.values())
            lines.append(f"  {goal.name:{_NAME - 2}}{_target(goal):{_CELL}}{cells}")
        lines += [f"  {side}: {_machine(each)}" for side, each in sides.items()]
    return "\n".join(line.rstrip() for line in lines)


def _target(goal: Goal) -> str:
    words = [
        f"{word} {_number(bound)} {goal.unit}".rstrip()
        for word, bound in (("≥", goal.at_least), ("≤", goal.at_most))
        if bound is not None
    ]
    return " ".join(words)


def _cell(goal: Goal) -> str:
    value = "none" if goal.value is None else f"{_number(goal.value)} {goal.unit}".rstrip()
    return f"{value} {'✓' if goal.met else 'missed'}"


def _number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0") if value < 100 else f"{value:.0f}"


def _machine(outcome: Outcome) -> str:
    work, late = outcome.work, max(each.sent_late_p99_ms or 0.0 for each in tallies(outcome.offered).values())
    batches = f"{work.runs} batches of {work.items / work.runs:.1f}" if work.runs else "no batch"
    return (
        f"{batches}, {work.dropped} requests dropped in Triton; {outcome.offered.busy:.2f} cores busy, "
        f"{outcome.offered.client_cpu:.2f} of them with clients, which sent within {late:.1f} ms (p99)"
    )


def as_json(found: Comparison) -> str:
    return json.dumps({**_head(found), "sides": dict(_sides(found))}, indent=2, ensure_ascii=False) + "\n"


def _head(found: Comparison) -> dict[str, Any]:
    sleeper = found.sleeper
    return {
        "cores": psutil.cpu_count(),
        "clients": found.clients,
        "batch_time_ms": sleeper.batch_time * 1e3,
        "python_backend_ms": sleeper.overhead * 1e3,
        "capacity": sleeper.capacity,
        "bound_ms": sleeper.bound_s * 1e3,
    }


def _sides(found: Comparison) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for side, outcomes in found.sides.items():
        yield side, {load: _outcome(outcome) for load, outcome in outcomes.items()}


def _outcome(outcome: Outcome) -> dict[str, Any]:
    return {
        "goals": [{**asdict(goal), "met": goal.met} for goal in outcome.goals],
        "tiers": {tier: asdict(found) for tier, found in tallies(outcome.offered).items()},
        "client_cpu": outcome.offered.client_cpu,
        "busy": outcome.offered.busy,
        "triton": asdict(outcome.work),
    }
