"""Specs with something else at some place: of every kind that a file can hold."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

from hypothesis import strategies as st

from serve_app.spec.findings import Place
from serve_app.spec.vocabulary import part_at, parts

VALUES: list[Any] = [
    None, True, False, 0, 1, -1, 8, 8.0, 2.5, -0.5, 10**17, 429, "", " ", "no", "yes", "0x10", "1_000", "1e3", "010",
    "1:30", ".inf", "nan", "2026-01-01", "90ms", "0s", "1.5s", "0.5us", "10MiB", "1.5KiB", "20%", "0%", "101%", "image",
    "image[0..8]", "image[1..", "float32[4]", "uint8[-1, 0]", "TYPE_FP32", "fp32[3]", "float32", "tiers", "none", "gpu",
    "KIND_GPU", "embedded", "reject", "module:name", "a.b", "/v1/x", "1.2.3", "latest", "a\nb", "x y", "ä", "٣ms",
    [], [1], [0], ["a"], ["a", "a"], [None], [[]], [{}], {}, {"a": 1}, {"a": None}, {"a": {}}, {"count": 2},
    {"use": "none"}, {"tensor": "int8[1]"}, {"1": {"size": 3}},
]  # fmt: skip
KEYS = sorted(
    {name for part in parts() for name in part.model_fields} | {"nothing", "max_batch_size", "dims", "1", "ä"}
)


def places(data: Any, place: Place = ()) -> Iterator[Place]:
    """The place of every value in plain data."""
    if place:
        yield place
    within = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for step, value in within:
        yield from places(value, (*place, step))


def at(data: Any, place: Place) -> Any:
    for step in place:
        data = data[step]
    return data


def replaced(data: dict[str, Any], place: Place, value: Any) -> dict[str, Any]:
    """The data with another value at a place."""
    changed = copy.deepcopy(data)
    at(changed, place[:-1])[place[-1]] = copy.deepcopy(value)
    return changed


@st.composite
def mutations(draw: st.DrawFn, data: dict[str, Any], most: int = 1) -> dict[str, Any]:
    """The data with up to `most` values replaced, removed or added."""
    changed = copy.deepcopy(data)
    for _ in range(draw(st.integers(1, most))):
        place = draw(st.sampled_from([(), *places(changed)]))
        value = copy.deepcopy(draw(st.sampled_from(VALUES)))
        found = at(changed, place)
        if isinstance(found, dict) and draw(st.booleans()):
            part = part_at(place)
            fields = list(part.model_fields) if part else []
            found[draw(st.sampled_from(fields or KEYS) | st.sampled_from(KEYS))] = value
        elif place:
            holder = at(changed, place[:-1])
            if draw(st.booleans()):
                holder[place[-1]] = value
            else:
                del holder[place[-1]]
    return changed
