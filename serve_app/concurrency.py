"""Awaits several things at once and leaves none of them behind."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


async def together(*coroutines: Coroutine[Any, Any, T]) -> list[T]:
    """Their results in order. Where one fails, or the caller is cancelled, the others are cancelled and awaited first.

    `asyncio.gather` alone lets the others run on; Python 3.10 has no TaskGroup. A single one needs no task of its own.
    """
    if len(coroutines) == 1:
        return [await coroutines[0]]
    tasks = [asyncio.ensure_future(coroutine) for coroutine in coroutines]
    try:
        return list(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
