"""The client processes of a measurement: started, ordered about, and ended in every case."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import psutil

from serve_app.bench.error import BenchError
from serve_app.bench.overload.loads import Load
from serve_app.bench.overload.shots import Shot

# Between the last connection and the first request.
_LEAD_S = 0.1
# A load's own time aside: for connections, and for the last answers.
_MORE_S = 30.0
_LONGEST_LINE = 2**26


@dataclass(frozen=True)
class Side:
    """A service that is measured, and what tells it a request's tier: metadata by tier, or Triton's own priorities."""

    name: str
    address: str
    metadata: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    priorities: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Offered:
    """What came of a load. `client_cpu` and `busy` are cores: of the clients, and of all that ran on the machine."""

    load: Load
    shots: Sequence[Shot]
    client_cpu: float
    busy: float


class Clients:
    """Processes that share each load's requests."""

    def __init__(self, processes: Sequence[asyncio.subprocess.Process]):
        self._processes = processes

    async def offer(self, load: Load, side: Side) -> Offered:
        """BenchError where a client ends, or hears nothing for too long."""
        orders = [_order(load.of_client(index, len(self._processes)), side) for index in range(len(self._processes))]
        limit = load.seconds + _MORE_S
        await self._ask(orders, limit)
        before = psutil.cpu_times()
        answers = await self._ask([time.monotonic() + _LEAD_S] * len(orders), limit)
        wall = max(answer["wall"] for answer in answers)
        return Offered(
            load,
            [Shot(*shot) for answer in answers for shot in answer["shots"]],
            sum(answer["cpu"] for answer in answers) / wall,
            _busy(before, psutil.cpu_times()) / wall,
        )

    async def _ask(self, orders: Sequence[Any], limit: float) -> list[dict[str, Any]]:
        asking = asyncio.gather(*map(_ask, self._processes, orders))
        try:
            return await asyncio.wait_for(asking, limit)
        except asyncio.TimeoutError:
            raise BenchError(
                f"the client processes did not end within {limit:g} s; try a longer --batch-time"
            ) from None


@asynccontextmanager
async def clients(count: int) -> AsyncIterator[Clients]:
    """So many processes, which end with the block."""
    processes: list[asyncio.subprocess.Process] = []
    try:
        for _ in range(count):
            processes.append(
                await asyncio.create_subprocess_exec(
                    *(sys.executable, "-m", "serve_app.bench.overload.client"),
                    stdin=asyncio.subprocess.PIPE,
                    stdout=asyncio.subprocess.PIPE,
                    limit=_LONGEST_LINE,
                    start_new_session=True,  # Ctrl-C is for whoever started them
                )
            )
        yield Clients(processes)
    finally:
        for process in processes:
            if process.returncode is None:
                process.kill()
        await asyncio.gather(*(process.wait() for process in processes))


def _order(moments: Mapping[str, Sequence[float]], side: Side) -> dict[str, Any]:
    streams = {
        tier: {"metadata": side.metadata.get(tier, {}), "priority": side.priorities.get(tier), "moments": each}
        for tier, each in moments.items()
    }
    return {"address": side.address, "streams": streams}


async def _ask(process: asyncio.subprocess.Process, order: Any) -> dict[str, Any]:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps(order).encode() + b"\n")
    line = await process.stdout.readline()
    if not line:
        raise BenchError("a client process ended before its time; what it said is above")
    answer: dict[str, Any] = json.loads(line)
    return answer


def _busy(before: Any, after: Any) -> float:
    """Seconds of work of all cores together."""
    spent = {name: getattr(after, name) - getattr(before, name) for name in after._fields}
    # Linux counts a guest's time in the user's already.
    idle = ("idle", "iowait", "guest", "guest_nice", "steal")
    return float(sum(seconds for name, seconds in spent.items() if name not in idle))
