"""The ingress listens by itself: HTTP straight into the replica that answers it, without a proxy in between.

All replicas on a node share the ports (SO_REUSEPORT); the kernel gives each new connection to one of them.
"""

from __future__ import annotations

import asyncio
import math
import os
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import uvicorn
from starlette.types import ASGIApp

from serve_app.grpc_server.server import GrpcServer, server_tls
from serve_app.http.connection import Connection
from serve_app.protocol.grpc_door import GrpcDoor
from serve_app.protocol.limits import Limits
from serve_app.spec import Spec

KEEP_ALIVE_S = 90
_BACKLOG = 2048
# Ray tells each of a node's processes which raylet has started it.
_RAYLET = "RAY_RAYLET_PID"


class ListenError(Exception):
    """Why nothing can listen, and what to do."""


class Listener:
    """Serves an ASGI application and the protocol's gRPC half until it is drained."""

    def __init__(self, app: ASGIApp, door: GrpcDoor, spec: Spec):
        """ListenError where a port cannot be had, or a certificate cannot be used."""
        service, tls = spec.service, spec.service.tls
        self._grace = spec.longest_sla.total_seconds()
        keep_alive = service.http.keep_alive
        config = uvicorn.Config(
            app,
            loop="none",
            http=Connection,
            ws="none",
            lifespan="off",
            log_config=None,
            log_level="error",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            backlog=_BACKLOG,
            root_path=service.http.root_path or "",
            timeout_keep_alive=KEEP_ALIVE_S if keep_alive is None else int(keep_alive.total_seconds()),
            timeout_graceful_shutdown=math.ceil(self._grace),
            ssl_certfile=None if tls is None else tls.certificate,
            ssl_keyfile=None if tls is None else tls.key,
        )
        try:
            config.load()
            self._tls = None if tls is None else server_tls(tls.certificate, tls.key)
        except (OSError, ssl.SSLError) as error:
            raise ListenError(
                f"the certificate and key of service.tls cannot be used ({error}); put both where the ingress runs"
            ) from None
        self._http = shared_socket(service.host, service.port, "service.port")
        self._server = _Server(config)
        try:
            self._grpc_socket = shared_socket(service.host, service.grpc.port, "service.grpc.port")
        except ListenError:
            self._http.close()
            raise
        limits = Limits.of(spec)
        # The body's limit is a tensor's; its message has a little more.
        self._grpc = GrpcServer(door.methods(), limit=limits.body + limits.listed, within=self._grace)

    async def start(self) -> None:
        await self._grpc.start(self._grpc_socket, self._tls, backlog=_BACKLOG)
        self._serving = asyncio.ensure_future(self._server.serve([self._http]))

    async def drain(self) -> None:
        """Take no new connection, answer the requests in work, and end."""
        self._server.should_exit = True
        await asyncio.gather(asyncio.wait([self._serving]), self._grpc.stop(self._grace))

    def check(self) -> None:
        """RuntimeError where it does not listen any more."""
        if self._serving.done():
            raise RuntimeError("the ingress does not listen any more") from self._serving.exception()


class _Server(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """None: the process is Ray's."""
        yield


def shared_socket(host: str, port: int, key: str) -> socket.socket:
    """A listening socket on a port that the other replicas of this cluster on this node may share.

    ListenError where somebody else has it; `key` is the spec's that names the port.
    """
    listening = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        listening.bind((host, port))
        listening.listen(_BACKLOG)
        # The kernel would let another cluster of the same user share the port, and each would get the other's requests.
        if (stranger := _stranger(port)) is not None:
            raise OSError(None, f"process {stranger} has it")
    except OSError as error:
        listening.close()
        raise ListenError(
            f"port {port} on {host} cannot be had ({error.strerror}); end its user, or change {key} in the spec"
        ) from None
    return listening


def _stranger(port: int) -> int | None:
    """A process that listens on the port and was not started by this one's raylet; None where there is none."""
    ours = os.environ.get(_RAYLET)
    for connection in psutil.net_connections("tcp"):
        pid, is_listening = connection.pid, connection.status == psutil.CONN_LISTEN
        if not is_listening or connection.laddr[1:] != (port,) or pid in (None, os.getpid()):
            continue
        try:
            environment = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        except OSError:
            continue  # it has ended
        if ours is None or f"{_RAYLET}={ours}".encode() not in environment:
            return pid
    return None
