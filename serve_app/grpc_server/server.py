"""Listens, takes connections, and ends without losing a call."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable, Mapping

from serve_app.grpc_server.exchanges import exchange, log
from serve_app.grpc_server.heads import Answered, Asked, Heads, Malformed
from serve_app.grpc_server.messages import PREFIX_SIZE
from serve_app.grpc_server.methods import Method
from serve_app.http2.connection import Bounds, ServerConnection
from serve_app.http2.reading import HEAD_TIMEOUT_S

_Meaning = Asked | Answered | Malformed
_CHECK_EVERY_S = 1.0


class GrpcServer:
    """Serves methods by their paths. `limit` is the largest message in bytes; a lone request has to be here `within` so
    many seconds."""

    def __init__(self, methods: Mapping[str, Method], *, limit: int, within: float):
        self._heads = Heads(methods)
        self.understand = self._heads.understand
        self.limit = limit
        self.within = within
        self.tasks: set[asyncio.Task[None]] = set()
        # Two of the largest messages at a time from one client, and as much that it has not read.
        self._bounds = Bounds(reserve=2 * (limit + PREFIX_SIZE), unread=2 * (limit + PREFIX_SIZE))
        self._connections: set[ServerConnection[_Meaning]] = set()
        self._empty = asyncio.Event()
        self._is_stopping = False

    async def start(self, listening: socket.socket, tls: ssl.SSLContext | None = None, *, backlog: int = 100) -> None:
        """Take connections on the socket, which is the server's from now on; over TLS where `tls` is given.

        `backlog`: so many may wait to be taken.
        """
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            lambda: self.connection(loop.time),
            sock=listening,
            backlog=backlog,
            ssl=tls,
            ssl_handshake_timeout=None if tls is None else HEAD_TIMEOUT_S,
        )
        self._tick = loop.call_later(_CHECK_EVERY_S, self._check)

    def connection(self, clock: Callable[[], float]) -> ServerConnection[_Meaning]:
        """A connection that is not made yet; `clock` is in seconds."""
        return ServerConnection(self, self._bounds, clock)

    async def stop(self, grace: float) -> None:
        """Take no connection and no call any more, and end when all calls have, or after `grace` seconds."""
        self._is_stopping = True
        self._server.close()
        for connection in self._connections:
            connection.leave()
        if self._connections:
            self._empty.clear()
            try:
                await asyncio.wait_for(self._empty.wait(), grace)
            except asyncio.TimeoutError:
                for connection in [*self._connections]:
                    connection.abort()
                await self._empty.wait()
        self._tick.cancel()
        if self.tasks:
            await asyncio.wait(self.tasks)
        await self._server.wait_closed()

    def _check(self) -> None:
        loop = asyncio.get_running_loop()
        self._tick = loop.call_later(_CHECK_EVERY_S, self._check)
        for connection in [*self._connections]:
            connection.check(loop.time())

    # -- for its connections

    def made(self, connection: ServerConnection[_Meaning]) -> None:
        if self._is_stopping:  # TLS takes its time
            connection.abort()
        self._connections.add(connection)

    def opened(self, connection: ServerConnection[_Meaning], stream: int, meaning: _Meaning, *, ended: bool) -> None:
        if isinstance(meaning, Malformed) or (isinstance(meaning, Asked) and ended and meaning.length):
            connection.malformed(stream)
        elif isinstance(meaning, Asked):
            taken = connection.accept(stream, length=meaning.length, ended=ended)
            taken.exchange = call = exchange(self, connection, taken, meaning)
            if ended:
                call.received(b"", ended=True)
        else:
            connection.reply(stream, meaning.block, ended=ended)
            log("(no such method)", "-", meaning.outcome, 0.0, "-")

    def closed(self, connection: ServerConnection[_Meaning]) -> None:
        self._connections.discard(connection)
        if not self._connections:
            self._empty.set()


def server_tls(certificate: str, key: str) -> ssl.SSLContext:
    """TLS as HTTP/2 has it (RFC 9113 §9.2). OSError or ssl.SSLError where the files cannot be used."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(certificate, key)
    context.set_alpn_protocols(["h2"])
    return context
