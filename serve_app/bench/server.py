"""What the measured service says about its models: their tensors, and Triton's statistics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import grpc
import httpx
from google.protobuf import json_format
from tritonclient.grpc import model_config_pb2, service_pb2

from serve_app.bench.error import BenchError
from serve_app.triton.channel import SERVICE

ANSWER_WITHIN_S = 10.0
NO_SERVICE = "no service at {} ({}); start it with `tandem up`, or name it with --url"


@dataclass(frozen=True)
class Work:
    """What Triton has counted of one model: requests, their items, runs, and nanoseconds over all requests.

    `dropped` are requests that had waited in a queue, wake-up requests among them; the others are of those answered.
    """

    requests: int = 0
    items: int = 0
    runs: int = 0
    queue_ns: int = 0
    compute_ns: int = 0
    dropped: int = 0

    def since(self, before: Work) -> Work:
        return Work(
            self.requests - before.requests,
            self.items - before.items,
            self.runs - before.runs,
            self.queue_ns - before.queue_ns,
            self.compute_ns - before.compute_ns,
            self.dropped - before.dropped,
        )


class Server(Protocol):
    """A server of the Open Inference Protocol."""

    async def config(self, model: str) -> model_config_pb2.ModelConfig:
        """BenchError where the server has no such model, or is none."""

    async def statistics(self) -> Mapping[str, Work]:
        """Of every model by name; nothing where the server keeps none."""


class HttpServer:
    """By the protocol's HTTP half, below a URL, with a client that is opened and closed by whoever made it."""

    def __init__(self, client: httpx.AsyncClient, url: str):
        self._client = client
        self._url = url

    async def config(self, model: str) -> model_config_pb2.ModelConfig:
        answer = await self._get(f"/v2/models/{model}/config")
        if answer.status_code != 200:
            raise BenchError(f"{answer.url} answered {answer.status_code}: {answer.text[:300]}")
        return _parsed(answer, model_config_pb2.ModelConfig())

    async def statistics(self) -> Mapping[str, Work]:
        answer = await self._get("/v2/models/stats")
        return _work(_parsed(answer, service_pb2.ModelStatisticsResponse())) if answer.status_code == 200 else {}

    async def _get(self, path: str) -> httpx.Response:
        try:
            return await self._client.get(self._url + path)
        except httpx.TransportError as error:
            raise BenchError(NO_SERVICE.format(self._url, error or type(error).__name__)) from None


def _parsed(answer: httpx.Response, message: Any) -> Any:
    try:
        return json_format.ParseDict(answer.json(), message, ignore_unknown_fields=True)
    except ValueError as error:  # ParseError is one
        raise BenchError(f"{answer.url} answered no message of the Open Inference Protocol: {error}") from None


class GrpcServer:
    """By the protocol's gRPC half, over the channel."""

    def __init__(self, channel: Any, address: str):
        self._channel = channel
        self._address = address

    async def config(self, model: str) -> model_config_pb2.ModelConfig:
        request = service_pb2.ModelConfigRequest(name=model)
        answer = await self._ask("ModelConfig", request, service_pb2.ModelConfigResponse)
        config: model_config_pb2.ModelConfig = answer.config
        return config

    async def statistics(self) -> Mapping[str, Work]:
        request = service_pb2.ModelStatisticsRequest()
        return _work(await self._ask("ModelStatistics", request, service_pb2.ModelStatisticsResponse))

    async def _ask(self, method: str, request: Any, answer: Any) -> Any:
        call = self._channel.unary_unary(
            SERVICE + method,
            request_serializer=type(request).SerializeToString,
            response_deserializer=answer.FromString,
        )
        try:
            return await call(request, timeout=ANSWER_WITHIN_S)
        except grpc.aio.AioRpcError as error:
            if error.code() is grpc.StatusCode.UNAVAILABLE:
                raise BenchError(NO_SERVICE.format(self._address, error.details())) from None
            raise BenchError(f"{self._address} answered {error.code().name}: {error.details()}") from None


def _work(statistics: service_pb2.ModelStatisticsResponse) -> dict[str, Work]:
    """All versions of a model together."""
    found: dict[str, list[Any]] = {}
    for version in statistics.model_stats:
        found.setdefault(version.name, []).append(version)
    return {name: _sum(versions) for name, versions in found.items()}


def _sum(versions: list[Any]) -> Work:
    spent = [version.inference_stats for version in versions]
    return Work(
        requests=sum(each.success.count for each in spent),
        items=sum(version.inference_count for version in versions),
        runs=sum(version.execution_count for version in versions),
        queue_ns=sum(each.queue.ns for each in spent),
        compute_ns=sum(each.compute_input.ns + each.compute_infer.ns + each.compute_output.ns for each in spent),
        dropped=sum(each.fail.count for each in spent),
    )
