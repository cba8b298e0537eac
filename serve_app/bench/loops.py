"""Two ways to put load on a service.

Closed loop: a number of clients, each sending its next request when it has its answer; it shows what a service can do,
and hides how long others would have waited. Open loop: requests come at random moments (a Poisson process) at a given
rate, whatever the service does; it shows what clients that do not know of each other see.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from serve_app.bench.samples import Outcome, Sample

Send = Callable[[], Awaitable[Outcome]]
Record = Callable[[Sample], None]
# So many requests of an open loop may be on their way; a service that is this far behind will not catch up.
MOST_IN_FLIGHT = 4096


@dataclass(frozen=True)
class ClosedLoop:
    """`clients` that each send one request after the other."""

    clients: int

    def __str__(self) -> str:
        return f"closed loop, {self.clients} client{'' if self.clients == 1 else 's'}"

    async def run(self, send: Send, stop: asyncio.Event, record: Record) -> int:
        """Until `stop` is set; what is in flight then is finished. Answers 0: everything is sent."""

        async def client() -> None:
            while not stop.is_set():
                await _measure(send, record)

        await asyncio.gather(*(client() for _ in range(self.clients)))
        return 0


@dataclass(frozen=True)
class OpenLoop:
    """Requests at `rate` a second, at moments that `seed` draws."""

    rate: float
    seed: int = 0

    def __str__(self) -> str:
        return f"open loop, {self.rate:g} requests a second"

    async def run(self, send: Send, stop: asyncio.Event, record: Record) -> int:
        """Until `stop` is set; what is in flight then is finished. Answers how many were not sent, too many waiting."""
        loop = asyncio.get_running_loop()
        moments = random.Random(self.seed)
        flying: set[asyncio.Task[None]] = set()
        unsent = 0
        due = loop.time()
        while not stop.is_set():
            due += moments.expovariate(self.rate)
            # Also where it is late already: answers have to be read between two requests.
            await asyncio.sleep(max(0.0, due - loop.time()))
            if len(flying) >= MOST_IN_FLIGHT:
                unsent += 1
                continue
            task = asyncio.ensure_future(_measure(send, record, due))
            flying.add(task)
            task.add_done_callback(flying.discard)
        await asyncio.gather(*flying)
        return unsent


Load = ClosedLoop | OpenLoop


async def _measure(send: Send, record: Record, due: float | None = None) -> None:
    """One request, timed from when it was `due`: where this process is late to send it, it has waited all the same."""
    clock = asyncio.get_running_loop().time
    sent = clock() if due is None else due
    outcome = await send()
    record(Sample(sent, clock() - sent, outcome.kind, outcome.code))
