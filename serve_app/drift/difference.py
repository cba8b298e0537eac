"""A way in which what runs is not what the spec says."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from serve_app.render.changes import Effect, Path

ABSENT: Any = object()


@dataclass(frozen=True)
class Drift:
    """`what` of a part that runs is `running`, and would be `wanted`.

    `effect` is what a redeploy does about it. Where it does nothing, it is None, and `remedy` says what to do.
    """

    part: str
    what: str
    running: str
    wanted: str
    effect: Effect | None = None
    remedy: str = ""


def leaves(running: Any, wanted: Any, path: Path = ()) -> Iterator[tuple[Path, Any, Any]]:
    """The paths at which two trees of plain data differ, with both values; ABSENT where there is none.

    Numbers are compared as numbers, lists as a whole.
    """
    if isinstance(running, dict) and isinstance(wanted, dict):
        for key in [*wanted, *(key for key in running if key not in wanted)]:
            yield from leaves(running.get(key, ABSENT), wanted.get(key, ABSENT), (*path, key))
    elif (
        running is ABSENT
        or wanted is ABSENT
        or running != wanted
        or isinstance(running, bool) != isinstance(wanted, bool)
    ):
        yield path, running, wanted


def shown(value: Any) -> str:
    if value is ABSENT:
        return "nothing"
    if isinstance(value, dict):
        return "given"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return value if isinstance(value, str) else str(value)
