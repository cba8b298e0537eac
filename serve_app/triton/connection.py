"""This process's way to the node's Triton, also when the server that was there went away."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TypeVar

import grpc
from google.protobuf.message import Message
from tritonclient.grpc import service_pb2

from serve_app.triton.channel import CallError, Channel
from serve_app.triton.error import TritonError
from serve_app.triton.errors import is_lost

_WAKE_UP_S = 1.0
# Of a server that has answered nothing for so long it is not known whether it works.
SILENCE_S = 1.0
Answer = TypeVar("Answer", bound=Message)


class Connection:
    """Calls to the node's Triton.

    `locate(lost)` answers the server's address; `lost` is one that just failed, None at first.
    """

    def __init__(self, locate: Callable[[str | None], Awaitable[str]]):
        self._locate = locate
        self._lock = asyncio.Lock()
        self._found = -math.inf
        # Since when there has been a call, while the server answered none.
        self._unanswered = math.inf
        self.in_use: Channel | None = None

    def renewed(self) -> float:
        """When a lost server's successor was found, in seconds since the epoch; infinity while there is none known."""
        return math.inf if self.in_use is not None and self.in_use.is_lost else self._found

    def disturbed(self) -> float:
        """As `renewed`; and now, where the server has answered no call at all for a while: it may stand still."""
        now = time.time()
        return now if now - self._unanswered > SILENCE_S else self.renewed()

    async def call(
        self, method: str, request: Message, answer: type[Answer], timeout: float, *, repeatable: bool = True
    ) -> Answer:
        """The answer to a call within `timeout` seconds. CallError where there is none.

        Where the server went away, the one that there is then is asked, if the request is `repeatable`.
        """
        until = time.monotonic() + timeout
        channel = self.in_use or await self.channel(None, timeout)
        self._unanswered = min(self._unanswered, time.time())
        try:
            found = await channel.call(method, request, answer, timeout)
            self._unanswered = math.inf
            return found
        except CallError as error:
            if error.code() is not grpc.StatusCode.DEADLINE_EXCEEDED:
                self._unanswered = math.inf
            if not is_lost(error):
                raise
            # Also for the next request where this one may not be repeated.
            channel = await self.channel(channel, until - time.monotonic())
            if not repeatable:
                raise
        return await channel.call(method, request, answer, until - time.monotonic())

    async def wake(self, request: service_pb2.ModelInferRequest) -> None:
        """Send a request whose answer means nothing, if a server is known."""
        if self.in_use is not None:
            with suppress(CallError):
                await self.in_use.call("ModelInfer", request, service_pb2.ModelInferResponse, _WAKE_UP_S)

    async def channel(self, lost: Channel | None, timeout: float | None) -> Channel:
        """The channel to use; a new one where `lost` is the one in use until now. CallError where there is none.

        `timeout` is in seconds; None waits as long as Triton takes to start.
        """
        try:
            return await asyncio.wait_for(self._located(lost), timeout)
        except (asyncio.TimeoutError, TritonError) as error:
            raise CallError(grpc.StatusCode.UNAVAILABLE, f"there is no Triton just now: {error}") from None

    async def _located(self, lost: Channel | None) -> Channel:
        async with self._lock:
            if self.in_use is None or self.in_use is lost:
                self._found = math.inf
                address = await self._locate(None if self.in_use is None else self.in_use.address)
                if self.in_use is not None:
                    self.in_use.finish()  # it may carry other requests of this process
                self.in_use = Channel(address)
                self._found = time.time()
            return self.in_use

    async def is_ready(self, timeout: float) -> bool:
        """Whether the server is ready; one that went away is looked for once."""
        request, answer = service_pb2.ServerReadyRequest(), service_pb2.ServerReadyResponse
        try:
            return bool((await self.call("ServerReady", request, answer, timeout)).ready)
        except CallError:
            return False
