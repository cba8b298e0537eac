"""The Triton behind the wall, asked over gRPC. Only messages that were written here are sent to it."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol

import grpc
from tritonclient.grpc import service_pb2
from tritonclient.grpc.service_pb2_grpc import GRPCInferenceServiceStub

from serve_app.protocol.refusals import of_triton
from serve_app.triton.breakers import Breakers
from serve_app.triton.channel import CallError, Channel, grpc_channel
from serve_app.triton.connection import Connection
from serve_app.triton.errors import is_lost

Outstanding = Callable[[str], AbstractContextManager[Any]]


class Backend(Protocol):
    """What answers requests that were found good. Everything else than an answer is a Refusal; timeouts are seconds.

    Problem 503 where the model is not asked, since it does not answer.
    """

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

    def __init__(
        self, connection: Connection, outstanding: Outstanding = _no_wake_ups, breakers: Breakers | None = None
    ):
        self._connection = connection
        self._outstanding = outstanding
        self._breakers = breakers or Breakers({})
        self._streams: dict[str, Any] = {}

    async def infer(
        self, request: service_pb2.ModelInferRequest, timeout: float, *, repeatable: bool = True
    ) -> service_pb2.ModelInferResponse:
        model, answer = request.model_name, service_pb2.ModelInferResponse
        try:
            with self._breakers.around(model, timeout), self._outstanding(model):
                return await self._connection.call("ModelInfer", request, answer, timeout, repeatable=repeatable)
        except CallError as error:
            raise of_triton(error) from None

    async def ask(self, method: str, request: Any, timeout: float) -> Any:
        try:
            return await self._connection.call(method, request, getattr(service_pb2, f"{method}Response"), timeout)
        except CallError as error:
            raise of_triton(error) from None

    async def stream(
        self, request: service_pb2.ModelInferRequest, timeout: float
    ) -> AsyncIterator[service_pb2.ModelStreamInferResponse]:
        # A stream of its own for each request: Triton 2.51 dies of one in which a decoupled model's request is
        # followed by another model's.
        until = time.monotonic() + timeout
        channel = self._connection.in_use or await self._channel(None, timeout)
        answered = False
        for again in (True, False):
            call = self._stream_infer(channel.address)(_once(request), timeout=until - time.monotonic())
            try:
                with (
                    self._breakers.around(request.model_name, until - time.monotonic()) as guarded,
                    self._outstanding(request.model_name),
                ):
                    async for answer in call:
                        answered = True
                        guarded.answered()
                        yield answer
                return
            except grpc.aio.AioRpcError as error:
                if answered or not again or not is_lost(error):
                    raise of_triton(error) from None
            finally:
                call.cancel()
            channel = await self._channel(channel, until - time.monotonic())

    async def _channel(self, gone: Channel | None, timeout: float) -> Channel:
        try:
            return await self._connection.channel(gone, timeout)
        except CallError as error:
            raise of_triton(error) from None

    def _stream_infer(self, address: str) -> Any:
        """The call that streams, over the one gRPC channel to this address."""
        if address not in self._streams:
            self._streams = {address: GRPCInferenceServiceStub(grpc_channel(address)).ModelStreamInfer}
        return self._streams[address]


async def _once(request: service_pb2.ModelInferRequest) -> AsyncIterator[service_pb2.ModelInferRequest]:
    yield request
