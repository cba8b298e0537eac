"""Two ways to put load on a service.

Closed loop: a number of clients, each sending its next request when it has its answer; it shows what a service can do,
and hides how long others would have waited. Open loop: requests come at random moments (Poisson) at a given rate,
whatever the service does; it shows what clients that do not know of each other see.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable

from serve_app.bench.samples import Kind, Sample

Send = Callable[[], Awaitable[tuple[Kind, str]]]
Record = Callable[[Sample], None]


async def closed_loop(send: Send, clients: int, stop: asyncio.Event, record: Record) -> None:
    """Each of `clients` sends one request after the other until `stop` is set; those in flight are finished."""

    async def client() -> None:
        while not stop.is_set():
            await _measure(send, record)

    await asyncio.gather(*(client() for _ in range(clients)))


async def open_loop(send: Send, rate: float, most: int, stop: asyncio.Event, record: Record, *, seed: int) -> int:
    """Requests at `rate` a second until `stop` is set; those in flight are finished.

    At most `most` are in flight: one that would exceed that is not sent. Answers how many were not.
    """
    loop = asyncio.get_running_loop()
    moments = random.Random(seed)
    flying: set[asyncio.Task[None]] = set()
    unsent = 0
    due = loop.time()
    while not stop.is_set():
        due += moments.expovariate(rate)
        if (wait := due - loop.time()) > 0:
            await asyncio.sleep(wait)
        if len(flying) >= most:
            unsent += 1
            continue
        task = asyncio.ensure_future(_measure(send, record))
        flying.add(task)
        task.add_done_callback(flying.discard)
        if wait <= 0:
            await asyncio.sleep(0)
    if flying:
        await asyncio.gather(*flying)
    return unsent


async def _measure(send: Send, record: Record) -> None:
    clock = asyncio.get_running_loop().time
    sent = clock()
    kind, code = await send()
    record(Sample(sent, clock() - sent, kind, code))
