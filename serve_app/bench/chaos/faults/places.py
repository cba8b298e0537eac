"""Places that something else has taken: disks, shared memory, a port."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path

from serve_app.bench.chaos.faults.fault import Fault, Scene, found
from serve_app.bench.chaos.load import VICTIM
from serve_app.bench.chaos.room import SHARED_MEMORY, WHY_NOT, fill
from serve_app.cluster.head import home

# More than Triton's shared memory for a model has at first.
_LARGE = 8 * 2**20


class _Full(Fault):
    """A file system of the room has no byte left for a while."""

    lasts = 6.0

    def __init__(self) -> None:
        self._filled: Path | None = None

    def why_not(self, scene: Scene) -> str | None:
        return None if scene.room else WHY_NOT

    async def _fill(self, folder: Path) -> None:
        self._filled = await asyncio.to_thread(fill, folder)

    async def mend(self, scene: Scene) -> None:
        if self._filled is not None:
            self._filled.unlink()
            self._filled = None


class FullLog(_Full):
    """The disk is full that Triton's and Ray's logs are on."""

    name = "log-disk-full"

    async def inject(self, scene: Scene) -> None:
        await self._fill(home(scene.project))


class FullSharedMemory(_Full):
    """/dev/shm is full, where tensors are on their way to a model's process; and larger ones come than before."""

    name = "shared-memory-full"
    limit = 60.0

    async def inject(self, scene: Scene) -> None:
        await self._fill(SHARED_MEMORY)
        await scene.load.once("large tensors", lambda: scene.clients.infer_large(VICTIM, _LARGE))


class TakenPort(Fault):
    """The ingress ends, and somebody else has its port when the next one comes."""

    name = "port-taken"
    lasts = 8.0
    limit = 60.0
    resets = True

    def __init__(self) -> None:
        self._socket: socket.socket | None = None

    async def inject(self, scene: Scene) -> None:
        for ingress in await scene.processes("Ingress"):
            ingress.kill()
        port = scene.clients.spec.service.port

        async def taken() -> socket.socket | None:
            try:
                return socket.create_server(("127.0.0.1", port))
            except OSError:  # the kernel has not closed it yet
                return None

        self._socket = await found(taken, self.limit, f"port {port} was not given up")

    async def mend(self, scene: Scene) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None
