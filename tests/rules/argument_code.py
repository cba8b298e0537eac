"""A stage whose methods take and answer many types, for the steps of the smallest specs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel


class Seen(BaseModel):
    rows: int


class SeenTwice(Seen):
    again: int


class Judged(BaseModel):
    good: bool


class Typed:
    """Takes the model m."""

    def __init__(self, m: Any):
        self._m = m

    async def look(self, image: bytes, hard: bool = False) -> Seen:
        return Seen(rows=len(image) + hard)

    async def look_if_any(self, image: bytes | None) -> Seen:
        return Seen(rows=len(image or b""))

    async def look_twice(self, image: bytes) -> SeenTwice:
        return SeenTwice(rows=len(image), again=len(image))

    async def look_at_all(self, images: Sequence[bytes]) -> Seen:
        return Seen(rows=len(images))

    async def judge(self, seen: Seen) -> Judged:
        return Judged(good=seen.rows > 0)

    async def judge_anything(self, seen, **others: Any) -> Judged:  # type: ignore[no-untyped-def]
        return Judged(good=bool(seen) or bool(others))

    async def mumble(self, image: bytes):  # type: ignore[no-untyped-def]
        return Seen(rows=len(image))

    def measure(self, image: bytes) -> Seen:
        return Seen(rows=len(image))
