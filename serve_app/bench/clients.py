"""The clients of a measurement, over HTTP and gRPC: no retries, no redirects, one request over and over."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Protocol

import aiohttp
import grpc
from tritonclient.grpc import service_pb2

from serve_app.bench.samples import Kind, Outcome
from serve_app.triton.channel import SERVICE, grpc_channel

# For a service that does not answer at all; every SLA is shorter.
SILENCE_S = 60.0
_HTTP_KINDS: dict[int, Kind] = {429: "refused", 503: "refused", 504: "late"}
_GRPC_KINDS: dict[grpc.StatusCode, Kind] = {
    grpc.StatusCode.UNAVAILABLE: "refused",
    grpc.StatusCode.RESOURCE_EXHAUSTED: "refused",
    grpc.StatusCode.DEADLINE_EXCEEDED: "late",
}


@dataclass(frozen=True)
class HttpRequest:
    """A POST, the same each time."""

    url: str
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"POST {self.url}"

    @property
    def size(self) -> int:
        """Bytes of the body."""
        return len(self.body)


@dataclass(frozen=True)
class GrpcRequest:
    """A ModelInfer, the same each time."""

    address: str
    message: service_pb2.ModelInferRequest
    metadata: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"ModelInfer of {self.message.model_name} at {self.address}"

    @property
    def size(self) -> int:
        """Bytes of the message."""
        return int(self.message.ByteSize())


class Client(Protocol):
    """Sends a request over connections that are kept. An async context manager."""

    async def send(self) -> Outcome: ...

    async def __aenter__(self) -> Client: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class HttpClient:
    """Over HTTP/1.1 with keep-alive."""

    def __init__(self, request: HttpRequest, *, trusting: bool):
        self._request = request
        self._ssl: bool | ssl.SSLContext = not trusting

    async def __aenter__(self) -> HttpClient:
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ssl=self._ssl),
            timeout=aiohttp.ClientTimeout(total=SILENCE_S),
            headers=dict(self._request.headers),
            auto_decompress=False,
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._session.close()

    async def send(self) -> Outcome:
        request = self._request
        try:
            async with self._session.post(request.url, data=request.body, allow_redirects=False) as answer:
                body = await answer.read()
        except asyncio.TimeoutError:
            return Outcome("late", "no answer", f"nothing came within {SILENCE_S:g} s")
        except aiohttp.ClientError as broken:
            return Outcome("failed", type(broken).__name__, str(broken))
        if 200 <= answer.status < 300:
            return Outcome("answered", str(answer.status))
        return Outcome(_HTTP_KINDS.get(answer.status, "failed"), str(answer.status), _said(body))


def _said(body: bytes) -> str:
    """What a refusal says: a problem's detail (RFC 9457), Triton's error, or the text itself."""
    text = body.decode("utf-8", "replace")
    try:
        parsed = json.loads(text)
    except ValueError:
        return text[:300]
    found = (parsed.get("detail") or parsed.get("error")) if isinstance(parsed, dict) else None
    return str(found or text)[:300]


class GrpcClient:
    """Over so many channels, in turn."""

    def __init__(self, request: GrpcRequest, connections: int):
        self._request = request
        self._connections = connections
        self._metadata = tuple(request.metadata.items())

    async def __aenter__(self) -> GrpcClient:
        self._stack = AsyncExitStack()
        self._calls: list[Any] = []
        for _ in range(self._connections):
            channel = await self._stack.enter_async_context(grpc_channel(self._request.address))
            self._calls.append(
                channel.unary_unary(
                    SERVICE + "ModelInfer",
                    request_serializer=service_pb2.ModelInferRequest.SerializeToString,
                    response_deserializer=service_pb2.ModelInferResponse.FromString,
                )
            )
        self._turn = 0
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.aclose()

    async def send(self) -> Outcome:
        self._turn = (self._turn + 1) % len(self._calls)
        call = self._calls[self._turn]
        try:
            await call(self._request.message, metadata=self._metadata, timeout=SILENCE_S)
        except grpc.aio.AioRpcError as refused:
            return Outcome(_GRPC_KINDS.get(refused.code(), "failed"), refused.code().name, refused.details() or "")
        return Outcome("answered", "OK")
