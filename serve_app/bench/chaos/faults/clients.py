"""Clients that are slow, hang up, or never say anything."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from serve_app.bench.chaos.faults.fault import Fault, Scene
from serve_app.bench.chaos.load import STEADY

_CLIENTS = 20
_IDLE = 1000
_HEAD = "POST /v2/models/{model}/infer HTTP/1.1\r\nHost: chaos\r\nContent-Length: {length}\r\n\r\n"
_LENGTH = 100_000


class _Connected(Fault):
    """Holds connections until it is mended."""

    def __init__(self) -> None:
        self._writers: list[asyncio.StreamWriter] = []
        self._feeding: list[asyncio.Task[None]] = []

    async def _connect(self, scene: Scene, port: int) -> asyncio.StreamWriter:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        self._writers.append(writer)
        return writer

    async def _begin(self, scene: Scene) -> asyncio.StreamWriter:
        """A connection on which a request's head and a little of its body have been sent."""
        writer = await self._connect(scene, scene.clients.spec.service.port)
        writer.write(_HEAD.format(model=STEADY, length=_LENGTH).encode() + b"{")
        await writer.drain()
        return writer

    async def mend(self, scene: Scene) -> None:
        for task in self._feeding:
            task.cancel()
        await asyncio.gather(*self._feeding, return_exceptions=True)
        for writer in self._writers:
            writer.transport.abort()
        self._feeding, self._writers = [], []


class SlowUploads(_Connected):
    """Clients that upload a byte a second, for longer than any SLA."""

    name = "slow-uploads"
    lasts = 10.0

    async def inject(self, scene: Scene) -> None:
        writers = [await self._begin(scene) for _ in range(_CLIENTS)]
        self._feeding = [asyncio.create_task(self._feed(writer)) for writer in writers]

    @staticmethod
    async def _feed(writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):  # given up, with 504
            while True:
                writer.write(b" ")
                await writer.drain()
                await asyncio.sleep(1.0)


class AbortedUploads(_Connected):
    """Clients that hang up in the middle of an upload, one after the other."""

    name = "aborted-uploads"

    async def inject(self, scene: Scene) -> None:
        for _ in range(10 * _CLIENTS):
            (await self._begin(scene)).transport.abort()


class IdleConnections(_Connected):
    """A thousand connections that say nothing, half of them to the port of gRPC."""

    name = "idle-connections"
    lasts = 5.0

    async def inject(self, scene: Scene) -> None:
        service = scene.clients.spec.service
        for index in range(_IDLE):
            await self._connect(scene, service.grpc.port if index % 2 else service.port)
