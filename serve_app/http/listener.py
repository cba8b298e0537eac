"""The ingress listens by itself: HTTP straight into the replica that answers it, without a proxy in between.

All replicas on a node share the port (SO_REUSEPORT); the kernel gives each new connection to one of them. On its two
cores a request through Ray Serve's default proxy costs more than most inferences, and that proxy refuses in plain text.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from starlette.types import ASGIApp

from serve_app.spec.ray import Service

KEEP_ALIVE_S = 90
_BACKLOG = 2048


class Listener:
    """Serves an ASGI application until it is drained."""

    def __init__(self, app: ASGIApp, service: Service):
        """Start to listen. OSError where the port cannot be had."""
        http = service.http
        config = uvicorn.Config(
            app,
            loop="none",
            http="httptools",
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            backlog=_BACKLOG,
            root_path=http.root_path or "",
            timeout_keep_alive=KEEP_ALIVE_S if http.keep_alive is None else int(http.keep_alive.total_seconds()),
            ssl_certfile=http.tls and http.tls.certificate,
            ssl_keyfile=http.tls and http.tls.key,
        )
        self._server = _Server(config)
        self._serving = asyncio.ensure_future(self._server.serve([shared_socket(service.host, service.port)]))

    async def drain(self) -> None:
        """Take no new connection, answer the requests in work, and end."""
        self._server.should_exit = True
        await asyncio.wait([self._serving])

    def check(self) -> None:
        """RuntimeError where it does not listen any more."""
        if self._serving.done():
            raise RuntimeError("the ingress does not listen any more") from self._serving.exception()


class _Server(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """None: the process is Ray's."""
        yield


def shared_socket(host: str, port: int) -> socket.socket:
    """A socket bound to a port that other replicas on this node may share. OSError where somebody else has it."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = socket.socket(family)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((host, port))
    except OSError:
        bound.close()
        raise
    return bound
