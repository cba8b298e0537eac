"""The Triton behind the wall, asked over gRPC. Only messages that were written here are sent to it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol

import grpc
from tritonclient.grpc import service_pb2
from tritonclient.grpc.aio import InferenceServerClient

from serve_app.protocol.refusals import deadline_passed, lost, not_available, of_triton
from serve_app.triton.client import Connection
from serve_app.triton.error import TritonError

Outstanding = Callable[[str], AbstractContextManager[Any]]


class Backend(Protocol):
    """What answers requests that were found good. Everything else than an answer is a Refusal; timeouts are seconds."""

    async def infer(
        self, request: service_pb2.ModelInferRequest, timeout: float, *, repeatable: bool = True
    ) -> service_pb2.ModelInferResponse:
        """`repeatable`: the request may be sent once more where the server went away."""

    def stream(
        self, request: service_pb2.ModelInferRequest, timeout: float
    ) -> AsyncIterator[service_pb2.ModelStreamInferResponse]:
        """All answers to one request of a decoupled model."""

    async def ask(self, method: str, request: Any, timeout: float) -> Any:
        """The answer to one of the protocol's questions: ServerReady, ModelMetadata, ModelStatistics and the like."""


def _no_wake_ups(model: str) -> AbstractContextManager[Any]:
    return nullcontext()


class TritonBackend:
    """The node's Triton. `outstanding` is entered around each request, by the model's name, for wake-up requests."""

    def __init__(self, connection: Connection, outstanding: Outstanding = _no_wake_ups):
        self._connection = connection
        self._outstanding = outstanding

    async def infer(
        self, request: service_pb2.ModelInferRequest, timeout: float, *, repeatable: bool = True
    ) -> service_pb2.ModelInferResponse:
        with self._outstanding(request.model_name):
            answer: service_pb2.ModelInferResponse = await self._call("ModelInfer", request, timeout, repeatable)
        return answer

    async def ask(self, method: str, request: Any, timeout: float) -> Any:
        return await self._call(method, request, timeout, True)

    async def stream(
        self, request: service_pb2.ModelInferRequest, timeout: float
    ) -> AsyncIterator[service_pb2.ModelStreamInferResponse]:
        # A stream of its own for each request: Triton 2.51 dies of one in which a decoupled model's request is
        # followed by another model's.
        until = time.monotonic() + timeout
        client, answered = await self._connected(None, timeout), False
        for again in (True, False):
            call = _stub(client).ModelStreamInfer(_once(request), timeout=until - time.monotonic())
            try:
                with self._outstanding(request.model_name):
                    async for answer in call:
                        answered = True
                        yield answer
                return
            except grpc.aio.AioRpcError as error:
                if answered or not again or not lost(error):
                    raise of_triton(error) from None
            finally:
                call.cancel()
            client = await self._connected(client, until - time.monotonic())

    async def _call(self, method: str, request: Any, timeout: float, repeatable: bool) -> Any:
        client = self._connection.in_use
        if client is not None:
            until = time.monotonic() + timeout
            try:
                return await getattr(_stub(client), method)(request, timeout=timeout)
            except grpc.aio.AioRpcError as error:
                if not lost(error):
                    raise of_triton(error) from None
                if not repeatable:
                    # The next request finds the server that there is by then.
                    await self._connected(client, until - time.monotonic())
                    raise of_triton(error) from None
            timeout = until - time.monotonic()
        client = await self._connected(client, timeout)
        try:
            return await getattr(_stub(client), method)(request, timeout=timeout)
        except grpc.aio.AioRpcError as error:
            raise of_triton(error) from None

    async def _connected(self, gone: InferenceServerClient | None, timeout: float) -> InferenceServerClient:
        if timeout <= 0:
            raise deadline_passed()
        try:
            return await asyncio.wait_for(self._connection.client(gone), timeout)
        except (asyncio.TimeoutError, TritonError):
            raise not_available() from None


def _stub(client: InferenceServerClient) -> Any:
    """The calls themselves, without what tritonclient does to each request on the way."""
    return client._client_stub


async def _once(request: service_pb2.ModelInferRequest) -> AsyncIterator[service_pb2.ModelInferRequest]:
    yield request
