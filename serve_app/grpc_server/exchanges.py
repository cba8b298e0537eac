"""Calls in work: from a request's bytes to its method, and from what that answers to the client."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Coroutine
from typing import Any, Generic, Protocol, TypeVar

from serve_app import request_log
from serve_app.grpc_server.heads import Asked
from serve_app.grpc_server.messages import Message, Messages, prefixed
from serve_app.grpc_server.methods import Call, Method, Streaming, Unary
from serve_app.grpc_server.status import HEAD, failure, success
from serve_app.http2.connection import ServerConnection
from serve_app.http2.frames import ErrorCode
from serve_app.http2.streams import Stream
from serve_app.protocol.refusals import Code, Refusal, deadline_passed

logger = logging.getLogger("ray.serve")
_Method = TypeVar("_Method", Unary, Streaming)


class Work(Protocol):
    """What the calls of a server have in common: the largest message in bytes, how many seconds a lone request may take
    to arrive, and the tasks that are not done."""

    limit: int
    within: float
    tasks: set[asyncio.Task[None]]


class _Exchange(Generic[_Method]):
    def __init__(self, work: Work, connection: ServerConnection[Any], stream: Stream, asked: Asked, method: _Method):
        self._work = work
        self._connection = connection
        self._stream = stream
        self._asked = asked
        self._method: _Method = method
        self._call = Call(asked.metadata, asked.timeout, self._write)
        self._messages = Messages(work.limit)
        self._task: asyncio.Task[None] | None = None
        self._has_begun = False  # to answer

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        self._connection.working += 1
        self._task = task = asyncio.get_running_loop().create_task(work)
        self._work.tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._connection.working -= 1
        self._work.tasks.discard(task)
        if not task.cancelled() and (fault := task.exception()) is not None:
            logger.error("request %s failed", self._call.request_id, exc_info=fault)
            self._stream.reset(ErrorCode.INTERNAL_ERROR)

    def lost(self) -> None:
        if self._task is None or self._task.cancel():
            self._log("(gone)")

    def writable(self) -> None:
        pass

    async def _write(self, message: bytes) -> None:
        raise NotImplementedError(f"{self._method.name} has one answer")

    async def _content(self, message: Message) -> bytes:
        return await message.unpacked(self._asked.encoding, self._work.limit)

    def _refuse(self, refusal: Refusal) -> None:
        if not self._stream.finished:
            said: list[tuple[str, str]] = [(name.decode(), value.decode()) for name, value in refusal.headers]
            trailers = failure(refusal, [*self._call.trailers, *said], self._connection.outbox.header_limit)
            self._stream.finish(trailers if self._has_begun else HEAD + trailers)
            self._log(refusal.code.name)

    def _log(self, outcome: str) -> None:
        call = self._call
        request_log.write(self._method.name, call.about, outcome, call.took(), call.request_id)


class UnaryExchange(_Exchange[Unary]):
    """Begins its work when the one request is here in whole, and not later than the work's `within`."""

    def __init__(self, *arguments: Any):
        super().__init__(*arguments)
        self._message: Message | None = None
        self._due: asyncio.TimerHandle | None = None

    def received(self, data: bytes, *, ended: bool) -> None:
        try:
            for message in self._messages.feed(data):
                if self._message is not None:
                    raise _not_one()
                self._message = message
            if ended:
                self._messages.end()
                if self._message is None:
                    raise _not_one()
                self._stop_waiting()
                self._stream.consumed(self._message.size)
                self._start(self._answer(self._message))
            else:
                self._wait()
        except Refusal as refusal:
            self._stop_waiting()
            self._refuse(refusal)

    def lost(self) -> None:
        self._stop_waiting()
        super().lost()

    async def _answer(self, message: Message) -> None:
        try:
            content = await self._content(message) if message.is_packed else message.content
            answer = await self._method.answer(content, self._call)
        except Refusal as refusal:
            self._refuse(refusal)
            return
        if not self._stream.finished:
            self._stream.answer(HEAD, prefixed(answer), success(self._call.trailers))
            if self._method.is_logged:
                self._log("OK")

    def _wait(self) -> None:
        self._stream.need(self._messages.missing)
        if self._due is None:
            left = self._call.time_remaining()
            within = self._work.within if left is None else min(left, self._work.within)
            self._due = asyncio.get_running_loop().call_later(within, lambda: self._refuse(deadline_passed()))

    def _stop_waiting(self) -> None:
        if self._due is not None:
            self._due.cancel()
            self._due = None


class StreamExchange(_Exchange[Streaming]):
    """Works from the beginning on; is the iterator over its requests."""

    def __init__(self, *arguments: Any):
        super().__init__(*arguments)
        self._coming: deque[Message] = deque()
        self._fault: Refusal | None = None
        self._is_whole = False
        self._more: asyncio.Future[None] | None = None
        self._room: asyncio.Future[None] | None = None
        self._start(self._answer())

    def received(self, data: bytes, *, ended: bool) -> None:
        if self._fault is not None:
            return
        try:
            for message in self._messages.feed(data):
                self._connection.useful()
                self._coming.append(message)
            if ended:
                self._is_whole = True
                self._messages.end()
        except Refusal as refusal:
            self._fault = refusal
        self._stream.need(self._messages.missing)
        _wake(self._more)

    def writable(self) -> None:
        _wake(self._room)

    def __aiter__(self) -> StreamExchange:
        return self

    async def __anext__(self) -> bytes:
        while not self._coming:
            if self._fault is not None:
                raise self._fault
            if self._is_whole:
                raise StopAsyncIteration
            self._more = asyncio.get_running_loop().create_future()
            await self._more
        message = self._coming.popleft()
        self._stream.consumed(message.size)
        return await self._content(message)

    async def _write(self, message: bytes) -> None:
        stream = self._stream
        if not stream.finished and not self._has_begun:
            self._has_begun = True
            stream.headers(HEAD)
        if not stream.finished:
            stream.send(prefixed(message))
        while stream.unsent and not stream.finished:
            self._room = asyncio.get_running_loop().create_future()
            await self._room

    async def _answer(self) -> None:
        try:
            await self._method.answer(self, self._call)
        except Refusal as refusal:
            self._refuse(refusal)
            return
        if not self._stream.finished:
            trailers = success(self._call.trailers)
            self._stream.finish(trailers if self._has_begun else HEAD + trailers)
            if self._method.is_logged:
                self._log("OK")


def exchange(
    work: Work, connection: ServerConnection[Any], stream: Stream, asked: Asked
) -> UnaryExchange | StreamExchange:
    """Takes the call up."""
    method: Method = asked.method
    if isinstance(method, Unary):
        return UnaryExchange(work, connection, stream, asked, method)
    return StreamExchange(work, connection, stream, asked, method)


def _wake(waiting: asyncio.Future[None] | None) -> None:
    if waiting is not None and not waiting.done():
        waiting.set_result(None)


def _not_one() -> Refusal:
    return Refusal(Code.UNIMPLEMENTED, "this method takes one message; send exactly one")
