"""Structured concurrency for asyncio on Python 3.10: nothing started here outlives its caller."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar

T = TypeVar("T")


async def gather(coroutines: Sequence[Coroutine[Any, Any, T]]) -> list[T]:
    """Run all at once and answer their results in order; the first failure, or the caller's end, cancels the rest."""
    tasks = [asyncio.ensure_future(coroutine) for coroutine in coroutines]
    try:
        return list(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
