from __future__ import annotations

import asyncio

import pytest

from serve_app.concurrency import together


class Work:
    """Something that takes until it is let go, and knows whether it was cancelled."""

    def __init__(self) -> None:
        self.started = asyncio.Event()
        self.release = asyncio.Event()
        self.cancelled = False

    async def run(self) -> str:
        self.started.set()
        try:
            await self.release.wait()
        except asyncio.CancelledError:
            self.cancelled = True
            raise
        return "done"


async def failing(after: asyncio.Event) -> str:
    await after.wait()
    raise ValueError("broken")


async def test_results_come_in_order_and_all_run_at_once():
    a, b = Work(), Work()

    async def let_go() -> str:
        await a.started.wait()
        await b.started.wait()
        b.release.set()
        a.release.set()
        return "third"

    assert await together(a.run(), b.run(), let_go()) == ["done", "done", "third"]


async def test_when_one_fails_the_others_are_cancelled_before_the_error_is_raised():
    work = Work()
    with pytest.raises(ValueError, match="broken"):
        await together(work.run(), failing(work.started))
    assert work.cancelled


async def test_when_the_caller_is_cancelled_all_are():
    a, b = Work(), Work()
    caller = asyncio.ensure_future(together(a.run(), b.run()))
    await a.started.wait()
    await b.started.wait()
    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller
    assert a.cancelled
    assert b.cancelled
