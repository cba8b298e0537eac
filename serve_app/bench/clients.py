"""The clients of a measurement: one kept-alive connection each, no retries, no redirects."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

import aiohttp
import grpc
from tritonclient.grpc import service_pb2

from serve_app.bench.samples import Kind, kind_of_http

_GRPC_KINDS: dict[grpc.StatusCode, Kind] = {
    grpc.StatusCode.UNAVAILABLE: "refused",
    grpc.StatusCode.RESOURCE_EXHAUSTED: "refused",
    grpc.StatusCode.DEADLINE_EXCEEDED: "late",
}


@dataclass(frozen=True)
class HttpRequest:
    """What every request of a measurement is."""

    url: str
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)


class HttpClient:
    """Sends one request over and over. `timeout` is seconds, for a service that does not answer at all."""

    def __init__(self, request: HttpRequest, timeout: float):
        self._request = request
        self._timeout = aiohttp.ClientTimeout(total=timeout)

    async def __aenter__(self) -> HttpClient:
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0), timeout=self._timeout, headers=dict(self._request.headers)
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._session.close()

    async def send(self) -> tuple[Kind, str]:
        try:
            async with self._session.post(self._request.url, data=self._request.body) as answer:
                await answer.read()
                return kind_of_http(answer.status), str(answer.status)
        except asyncio.TimeoutError:
            return "late", "no answer"
        except aiohttp.ClientError as broken:
            return "failed", type(broken).__name__


class GrpcClient:
    """Sends one ModelInfer request over and over, over one channel."""

    def __init__(self, address: str, request: service_pb2.ModelInferRequest, timeout: float):
        self._address = address
        self._request = request
        self._timeout = timeout

    async def __aenter__(self) -> GrpcClient:
        self._channel = grpc.aio.insecure_channel(self._address, options=[("grpc.enable_http_proxy", 0)])
        self._infer: Any = self._channel.unary_unary(
            "/inference.GRPCInferenceService/ModelInfer",
            request_serializer=service_pb2.ModelInferRequest.SerializeToString,
            response_deserializer=service_pb2.ModelInferResponse.FromString,
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._channel.close()

    async def send(self) -> tuple[Kind, str]:
        try:
            await self._infer(self._request, timeout=self._timeout)
        except grpc.aio.AioRpcError as refused:
            return _GRPC_KINDS.get(refused.code(), "failed"), refused.code().name
        return "answered", "OK"
