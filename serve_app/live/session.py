"""A Triton for one check: models loaded and run one at a time, each with a deadline, whatever they do to the server."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable, Sequence
from types import TracebackType
from typing import Any

import grpc
from tritonclient.grpc import model_config_pb2, service_pb2, service_pb2_grpc

from serve_app.triton.channel import grpc_channel
from serve_app.triton.complaint import complaint
from serve_app.triton.server import TritonServer

# How long a server that broke off a call may take to be seen ending.
_ENDING_S = 5.0
_POLL_S = 0.05
_NO_ID = "[request id: <id_unknown>] "
# What the python backend puts before a model's own words.
IN_REQUEST = re.compile(r"Failed to process the request\(s\) for model '[^']*', message: ")
_WARMUP = "failed to run warmup sample"


class Refused(Exception):
    """Triton's answer is an error."""

    def __init__(self, reason: str, *, of_the_input: bool = False):
        super().__init__(reason)
        self.of_the_input = of_the_input


class Hung(Exception):
    """There is no answer within the deadline."""


class Died(Exception):
    """The server ended instead of answering: how, and what its log says of it."""

    def __init__(self, how: str, says: Sequence[str]):
        super().__init__("; ".join([how, *(IN_REQUEST.sub("", line) for line in says)]))
        self.says = says


class Session:
    """One server at a time, started when it is needed. What has been loaded into one that is lost is loaded again."""

    def __init__(self, start: Callable[[], Awaitable[TritonServer]]):
        self._start = start
        self._server: TritonServer | None = None
        self._channel: grpc.aio.Channel | None = None
        self._loaded: list[str] = []
        self._hung = False

    async def __aenter__(self) -> Session:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._server is not None and error is None and not self._loaded:
            await self._server.stop()  # in order, so that what it writes at its end is written
        await self._end()

    @property
    def loaded(self) -> list[str]:
        """The models that can be unloaded, the latest first: none of a server that died or still works on a request."""
        lives = self._server is not None and self._server.alive() and not self._hung
        return self._loaded[::-1] if lives else []

    async def load(self, names: Iterable[str], deadline: float) -> None:
        """Load those of the models that are not loaded, in order, each within `deadline` seconds.

        TritonError where the server does not start, Refused, Hung or Died where a model does not load.
        """
        for name in names:
            stub = await self._stub()
            if name not in self._loaded:
                try:
                    await self._call(stub.RepositoryModelLoad, _load(name), deadline)
                except Hung:
                    await self._end()  # a server that loads a model answers no other order
                    raise
                except Refused as refused:
                    if _WARMUP in str(refused):
                        await self._end()  # Triton 2.51 may end of itself after that, while it loads another
                    raise
                self._loaded.append(name)

    async def unload(self, name: str, deadline: float) -> None:
        """Unload a model that is loaded, and wait until its code has been finalized and nothing of it is left.

        Refused, Hung or Died where it is not so within `deadline` seconds.
        """
        stub, ends_at = await self._stub(), asyncio.get_running_loop().time() + deadline
        await self._call(
            stub.RepositoryModelUnload, service_pb2.RepositoryModelUnloadRequest(model_name=name), deadline
        )
        while (left := ends_at - asyncio.get_running_loop().time()) > 0:
            index = await self._call(stub.RepositoryIndex, service_pb2.RepositoryIndexRequest(), left)
            states = {model.state for model in index.models if model.name == name}
            if not states & {"READY", "UNLOADING"}:
                self._loaded.remove(name)
                return
            await asyncio.sleep(_POLL_S)  # Triton tells nobody when it is done
        raise Hung

    async def config(self, name: str, deadline: float) -> model_config_pb2.ModelConfig:
        """What the server says of a loaded model's configuration."""
        stub = await self._stub()
        try:
            answer = await self._call(stub.ModelConfig, service_pb2.ModelConfigRequest(name=name), deadline)
        except Hung:
            await self._end()
            raise
        return answer.config

    async def infer(self, request: Any, deadline: float, *, decoupled: bool) -> list[Any]:
        """The answers to a request: one, or of a decoupled model any number."""
        stub = await self._stub()
        try:
            if decoupled:
                return await asyncio.wait_for(self._stream(stub, request), deadline)
            return [await self._call(stub.ModelInfer, request, deadline)]
        except (Hung, asyncio.TimeoutError):
            self._hung = True
            raise Hung from None

    async def _stream(self, stub: Any, request: Any) -> list[Any]:
        """Every answer until Triton ends the stream. It is not broken off: Triton 2.51 would not end after that."""
        answers = []
        refused = ""
        try:
            async for answer in stub.ModelStreamInfer(iter([request])):
                refused = refused or answer.error_message
                answers.append(answer.infer_response)
        except grpc.aio.AioRpcError as error:
            raise await self._failure(error) from None
        if refused:
            raise Refused(_cleaned(refused))
        return [answer for answer in answers if answer.outputs]

    async def _call(self, method: Any, request: Any, deadline: float) -> Any:
        assert self._server is not None
        self._server.forget_errors()
        try:
            return await method(request, timeout=deadline)
        except grpc.aio.AioRpcError as error:
            raise await self._failure(error) from None

    async def _failure(self, error: grpc.aio.AioRpcError) -> Refused | Hung | Died:
        if error.code() is grpc.StatusCode.DEADLINE_EXCEEDED:
            return Hung()
        assert self._server is not None
        if error.code() is grpc.StatusCode.UNAVAILABLE:
            ending = asyncio.ensure_future(self._server.wait_exit())
            await asyncio.wait([ending], timeout=_ENDING_S)
            if ending.done():
                return Died(f"Triton {ending.result()}", self._server.recent_errors()[-3:])
            ending.cancel()
        reason = _cleaned(error.details() or str(error.code()))
        if "failed to poll from model repository" in reason:  # which says nothing; the log does
            reason = "; ".join([reason, *self._server.recent_errors()[-1:]])
        return Refused(reason, of_the_input=error.code() is grpc.StatusCode.INVALID_ARGUMENT)

    async def _stub(self) -> Any:
        if self._server is None or not self._server.alive():
            await self._end()
            self._server = await self._start()
            self._channel = grpc_channel(self._server.address)
        return service_pb2_grpc.GRPCInferenceServiceStub(self._channel)

    async def _end(self) -> None:
        """End the server at once, and forget what it had loaded."""
        channel, self._channel = self._channel, None
        server, self._server = self._server, None
        self._loaded.clear()
        self._hung = False
        if channel is not None:
            await channel.close()
        if server is not None:
            await server.stop(0)


def _cleaned(text: str) -> str:
    return IN_REQUEST.sub("", complaint(text.replace(_NO_ID, "")))


def _load(name: str) -> Any:
    return service_pb2.RepositoryModelLoadRequest(model_name=name)
