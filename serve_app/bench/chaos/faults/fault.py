"""What a fault is, and what it is done to."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

import psutil

from serve_app.bench.chaos.load import Clients, Load
from serve_app.bench.chaos.traces import MODEL, by_role
from serve_app.bench.error import BenchError
from serve_app.cluster.head import Head
from serve_app.project import Project

_POLL_S = 0.05
Found = TypeVar("Found")


@dataclass(frozen=True)
class Scene:
    """The deployment that a fault is done to. `logs` and /dev/shm can be filled where the scene is in a `room`."""

    project: Project
    head: Head
    clients: Clients
    load: Load
    room: bool

    async def processes(self, role: str) -> list[psutil.Process]:
        return await asyncio.to_thread(lambda: [process for found, process in by_role(self.head) if found == role])

    async def model_processes(self, model: str) -> list[psutil.Process]:
        """Those of the python backend for the model."""
        return [each for each in await self.processes(MODEL) if f"/{model}/" in " ".join(each.cmdline())]


class Fault:
    """Something that goes wrong; ready for more than one run.

    `limit`: seconds within which the service has to be healthy after it. `lasts`: seconds between `inject` and `mend`.
    `resets`: whether it ends an ingress, so that connections are reset and refused. `ends`: it ends the deployment.
    """

    name = ""
    limit = 30.0
    lasts = 0.0
    resets = False
    ends = False

    def why_not(self, scene: Scene) -> str | None:
        """Why it cannot be done here; None where it can."""
        return None

    async def inject(self, scene: Scene) -> None:
        """BenchError where there is nothing to do it to."""
        raise NotImplementedError

    async def mend(self, scene: Scene) -> None:
        """Undo what would last; called in every case."""


async def found(look: Callable[[], Awaitable[Found | None]], within: float, missing: str) -> Found:
    """What `look` answers once there is something; BenchError, with what is `missing`, after so many seconds."""
    clock = asyncio.get_running_loop().time
    give_up = clock() + within
    while (seen := await look()) is None:
        if clock() > give_up:
            raise BenchError(f"{missing} within {within:g} s; see the logs of the service")
        await asyncio.sleep(_POLL_S)
    return seen
