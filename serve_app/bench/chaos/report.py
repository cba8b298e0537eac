"""Results as a table for people, and as JSON for machines."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict

from serve_app.bench.chaos.run import Result

_HEADS = ("fault", "answered", "refused", "undocumented", "healthy after", "left behind")


def as_json(results: Sequence[Result]) -> str:
    return json.dumps([{**asdict(result), "well": result.is_well} for result in results], indent=2)


def table(results: Sequence[Result]) -> str:
    """A row for each fault, and a line for each that something was wrong with, or that was not done."""
    rows = [_HEADS, *map(_row, results)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
    return "\n".join([*lines, *_notes(results)])


def _row(result: Result) -> tuple[str, ...]:
    if result.skipped:
        return (result.fault, "-", "-", "-", "-", "-")
    again = f"not in {result.limit_s:g} s" if result.healthy_s is None else f"{result.healthy_s:.1f} s"
    seen = result.seen
    return (
        result.fault, str(seen.answered), _codes(seen.refused), _codes(seen.undocumented), again,
        str(len(result.leaks) or "nothing"),
    )  # fmt: skip


def _codes(counted: Mapping[str, int]) -> str:
    return ", ".join(f"{count} of {code}" for code, count in sorted(counted.items())) or "none"


def _notes(results: Sequence[Result]) -> Iterator[str]:
    for result in results:
        if result.skipped:
            yield f"{result.fault} was not done: {result.skipped}"
        if result.failed:
            yield f"{result.fault} failed: {result.failed}"
        for leak in result.leaks:
            yield f"{result.fault} left behind: {leak}"
