from __future__ import annotations

import asyncio
import math
import time

from serve_app.triton.connection import Connection


async def test_it_is_known_since_when_a_lost_servers_successor_is_there() -> None:
    """Nothing is connected to: a channel does so for its first call."""
    asked, may_answer = asyncio.Event(), asyncio.Event()

    async def locate(lost: str | None) -> str:
        if lost is not None:
            asked.set()
            await may_answer.wait()
        return "127.0.0.1:9"

    connection = Connection(locate)
    first = await connection.channel(None, None)
    earlier = connection.disturbed()
    assert 0 < earlier <= time.time()
    assert await connection.channel(None, None) is first
    assert connection.disturbed() == earlier

    successor = asyncio.create_task(connection.channel(first, None))
    await asked.wait()
    assert connection.disturbed() == math.inf
    may_answer.set()
    await successor
    assert earlier <= connection.disturbed() <= time.time()
