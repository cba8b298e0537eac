"""A server's end of an HTTP/2 connection whose peer may be anybody (RFC 9113).

What a peer does wrong ends its stream or its connection with the error that the RFC names; what is legal but of no use
is counted (`patience`). A peer makes the server hold no more than this, per connection: a frame, a block of headers,
the window of each stream and, beyond that, the `reserve` of messages that it was told to send; of answers that it does
not read, what fits `unread`, and those in work then.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar, cast

from serve_app.http2 import patience
from serve_app.http2.frames import (
    ACK,
    DATA,
    DEFAULT_WINDOW,
    END_STREAM,
    GOAWAY,
    HEADER_TABLE_SIZE,
    HEADERS,
    LARGEST_WINDOW,
    LAST_STREAM,
    MAX_CONCURRENT_STREAMS,
    MAX_FRAME_SIZE,
    MAX_HEADER_LIST_SIZE,
    PING,
    RST_STREAM,
    SETTINGS,
    WINDOW_UPDATE,
    ConnectionFault,
    ErrorCode,
    frame,
    number,
    read_settings,
    settings,
    unpadded,
)
from serve_app.http2.headers import HEADER_LIMIT, Fields, HeaderReader
from serve_app.http2.patience import Patience
from serve_app.http2.reading import HEAD_TIMEOUT_S, FrameReader
from serve_app.http2.requests import MalformedRequest, check_trailers
from serve_app.http2.reserve import Reserve
from serve_app.http2.rules import LARGEST_FRAME
from serve_app.http2.sending import Outbox
from serve_app.http2.streams import Stream

MOST_STREAMS = 1000
# A peer of whom nothing was heard is asked whether it is there, and given up when it does not answer.
PING_AFTER_S, PING_TIMEOUT_S = 60.0, 20.0
# A connection without requests is ended; its client makes a new one when it needs it.
IDLE_S = 300.0
# An answer of which the client takes nothing for so long is given up.
STALL_S = 60.0
# A peer that is told that the connection ends has so long to see it.
LINGER_S = 1.0
# The connection's window keeps nobody from sending: those of the streams do.
_WINDOW = 16 * 2**20
# Of streams that ended a while ago it is not known any more how.
_REMEMBERED = 256
_OUR_PING, _LAST_CALL = b"are you?", b"the end."

Meaning = TypeVar("Meaning")


class Application(Protocol[Meaning]):
    """Takes requests."""

    def understand(self, fields: Fields) -> Meaning:
        """What the fields of a request mean. The same fields mean the same."""

    def made(self, connection: ServerConnection[Meaning]) -> None:
        """It begins."""

    def opened(self, connection: ServerConnection[Meaning], stream: int, meaning: Meaning, *, ended: bool) -> None:
        """A request's head is here, and all of it where it `ended`: `connection` is told what becomes of it."""

    def closed(self, connection: ServerConnection[Meaning]) -> None:
        """It is over."""


@dataclass(frozen=True)
class Bounds:
    """Bytes, per connection. `reserve` is at least the largest message."""

    reserve: int
    unread: int


class ServerConnection(asyncio.Protocol, Generic[Meaning]):
    """`clock` is in seconds; `check` is to be called every second or so."""

    def __init__(self, application: Application[Meaning], bounds: Bounds, clock: Callable[[], float]):
        self._application = application
        self._bounds = bounds
        self._clock = clock
        self._patience = Patience(clock)
        self._reader = FrameReader(self._take)
        self._headers = HeaderReader(application.understand)
        self._transport: asyncio.Transport | None = None
        self.outbox = Outbox(self._patience.regain)
        self.streams: dict[int, Stream] = {}
        self.working = 0  # tasks of the application
        self._last = 0
        self._over: deque[int] = deque(maxlen=_REMEMBERED)
        self._reset: deque[int] = deque(maxlen=_REMEMBERED)
        self._is_agreed = False
        self._credit = _WINDOW
        self.reserve = Reserve(bounds.reserve)
        self._began = self._heard = self._idle_since = clock()
        self._pinged: float | None = None
        self._leaving: float | None = None
        self._has_left = False
        self._ended: float | None = None
        self._takers = {
            DATA: self._take_data,
            HEADERS: self._take_headers,
            RST_STREAM: self._take_reset,
            SETTINGS: self._take_settings,
            PING: self._take_ping,
            GOAWAY: self._take_leave,
            WINDOW_UPDATE: self._take_room,
        }

    # -- what the event loop does

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is of no class of asyncio's
        self.outbox.attach(self._transport)
        wanted = {
            HEADER_TABLE_SIZE: 0,
            MAX_CONCURRENT_STREAMS: MOST_STREAMS,
            MAX_FRAME_SIZE: LARGEST_FRAME,
            MAX_HEADER_LIST_SIZE: HEADER_LIMIT,
        }
        self.outbox.send(frame(SETTINGS, 0, 0, settings(wanted)))
        self.outbox.send(frame(WINDOW_UPDATE, 0, 0, number(_WINDOW - DEFAULT_WINDOW)))
        self._application.made(self)

    def data_received(self, data: bytes) -> None:
        if self._ended is not None:
            return
        self._heard = self._clock()
        try:
            self._reader.feed(data, self._heard)
        except ConnectionFault as fault:
            if self._ended is None:
                self._fail(fault)

    def pause_writing(self) -> None:
        self.outbox.pause()

    def resume_writing(self) -> None:
        self.outbox.resume()

    def connection_lost(self, error: Exception | None) -> None:
        self._ended = self._clock()
        self.outbox.end()
        for stream in [*self.streams.values()]:
            self._drop(stream)
            stream.exchange.lost()
        self._application.closed(self)

    # -- what time does

    def check(self, now: float) -> None:
        """End what takes too long, and ask whether the peer is there."""
        transport = self._transport
        if transport is None:
            return
        if self._ended is not None:
            if now - self._ended > (HEAD_TIMEOUT_S if transport.get_write_buffer_size() else LINGER_S):
                transport.abort()
            return
        try:
            self._check_agreement(now)
        except ConnectionFault as fault:
            self._fail(fault)
            return
        if self._pinged is not None and now - self._pinged > PING_TIMEOUT_S:
            transport.abort()
        elif self._pinged is None and now - self._heard > PING_AFTER_S:
            self._pinged = now
            self.outbox.send(frame(PING, 0, 0, _OUR_PING))
        if self._leaving is not None:
            if not self._has_left and now - self._leaving > LINGER_S:
                self._leave()
        elif not self.streams and now - self._idle_since > IDLE_S:
            self.leave()
        for stream in [each for each in self.streams.values() if each.unsent]:
            if stream.progress < 0:
                stream.progress = now
            elif stream.end is not None and now - stream.progress > STALL_S:
                self.reset(stream.id, ErrorCode.CANCEL)

    def _check_agreement(self, now: float) -> None:
        if not self._reader.has_settings and now - self._began > HEAD_TIMEOUT_S:
            raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "no settings came")
        if not self._is_agreed and now - self._began > 2 * HEAD_TIMEOUT_S:
            raise ConnectionFault(ErrorCode.SETTINGS_TIMEOUT, "the settings were not acknowledged")
        self._reader.check(now)

    # -- what the application does

    def accept(self, stream: int, *, length: int | None, ended: bool) -> Stream:
        """Go on with a request that was opened; the caller sets the stream's exchange at once."""
        taken = Stream(self, stream, self.outbox.initial_window, length, self._heard)
        taken.remote_ended = ended
        self.streams[stream] = taken
        return taken

    def reply(self, stream: int, block: bytes, *, ended: bool) -> None:
        """Answer a request that was opened with headers only, and go on without it."""
        self.outbox.headers(stream, block, END_STREAM)
        if ended:
            self._over.append(stream)
        else:
            self.reset(stream, ErrorCode.NO_ERROR)

    def malformed(self, stream: int) -> None:
        """A request that was opened is none."""
        self._patience.spend(patience.REQUEST)
        self.reset(stream, ErrorCode.PROTOCOL_ERROR)

    def leave(self) -> None:
        """Take no more requests, and end when those that there are have their answers."""
        if self._leaving is None and self._ended is None:
            self._leaving = self._clock()
            self.outbox.send(_goaway(LAST_STREAM, ErrorCode.NO_ERROR))
            # What the client has sent before it knew is here when it answers.
            self.outbox.send(frame(PING, 0, 0, _LAST_CALL))

    def abort(self) -> None:
        """End at once."""
        if self._transport is not None:
            self.outbox.flush()
            self._transport.abort()

    # -- for its streams

    def crumb(self) -> None:
        self._patience.spend()

    def useful(self) -> None:
        """The peer sent something of use."""
        self._patience.regain()

    def allow(self, stream: Stream, size: int) -> None:
        self.outbox.send(frame(WINDOW_UPDATE, 0, stream.id, number(size)))

    def reset(self, stream: int, code: ErrorCode) -> None:
        self.outbox.send(frame(RST_STREAM, 0, stream, number(code)))
        self._reset.append(stream)
        open_stream = self.streams.get(stream)
        if open_stream is not None:
            self._drop(open_stream)
            if code is not ErrorCode.NO_ERROR:
                open_stream.exchange.lost()

    def ended(self, stream: Stream) -> None:
        if not stream.remote_ended:
            self.reset(stream.id, ErrorCode.NO_ERROR)
            return
        self._over.append(stream.id)
        self._drop(stream)

    def _drop(self, stream: Stream) -> None:
        if self.streams.pop(stream.id, None) is None:
            return
        stream.finished = True
        self.outbox.drop(stream)
        self.reserve.forget(stream)
        if not self.streams:
            self._idle_since = self._heard
            self._close_if_left()

    # -- frames

    def _take(self, kind: int, flags: int, stream: int, payload: bytes) -> None:
        taker = self._takers.get(kind)
        if self._ended is not None:
            return
        if taker is None:  # priorities, and kinds that there may be one day
            self._patience.spend()
        else:
            taker(flags, stream, payload)

    def _take_data(self, flags: int, number_: int, payload: bytes) -> None:
        size = len(payload)
        self._credit -= size
        if self._credit < 0:
            raise ConnectionFault(ErrorCode.FLOW_CONTROL_ERROR, "more data than the connection's window")
        if self._credit < _WINDOW // 2:
            self.outbox.send(frame(WINDOW_UPDATE, 0, 0, number(_WINDOW - self._credit)))
            self._credit = _WINDOW
        stream = self.streams.get(number_)
        data = unpadded(flags, payload)
        if stream is None:
            self._check_idle(number_)
            self._patience.spend()
            if number_ <= self._last and number_ not in self._reset:
                self.reset(number_, ErrorCode.STREAM_CLOSED)
        elif stream.remote_ended:
            self._patience.spend(patience.REQUEST)
            self.reset(number_, ErrorCode.STREAM_CLOSED)
        else:
            stream.receive(size, data, ended=bool(flags & END_STREAM))

    def _take_headers(self, flags: int, stream: int, block: bytes) -> None:
        ended = bool(flags & END_STREAM)
        if stream <= self._last:
            self._take_trailers(stream, self._headers.fields(block), ended=ended)
            return
        if stream % 2 == 0:
            raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "a client's streams are odd")
        meaning = self._headers.read(block)
        if self._has_left:
            return  # the client was told that it would not be looked at
        self._last = stream
        if (
            len(self.streams) >= MOST_STREAMS
            or self.working >= MOST_STREAMS
            or self.outbox.unsent > self._bounds.unread
        ):
            self._patience.spend(patience.REQUEST)
            self.reset(stream, ErrorCode.REFUSED_STREAM)
            return
        self._application.opened(self, stream, meaning, ended=ended)

    def _take_trailers(self, number_: int, fields: Fields, *, ended: bool) -> None:
        stream = self.streams.get(number_)
        if stream is None:
            if number_ in self._reset:
                return
            if number_ in self._over:
                raise ConnectionFault(ErrorCode.STREAM_CLOSED, "headers on a stream that is closed")
            raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "a stream's number is higher than those before it")
        self._patience.spend()
        if stream.remote_ended:
            self.reset(number_, ErrorCode.STREAM_CLOSED)
            return
        try:
            check_trailers(fields)
        except MalformedRequest:
            ended = False
        if ended:
            stream.receive(0, b"", ended=True)
        else:
            self.malformed(number_)

    def _take_reset(self, _: int, number_: int, payload: bytes) -> None:
        self._check_idle(number_)
        stream = self.streams.get(number_)
        if stream is None:
            self._patience.spend()
            return
        if self._heard - stream.opened < patience.SOON_S:
            self._patience.spend(patience.REQUEST)
        self._over.append(number_)
        self._drop(stream)
        stream.exchange.lost()

    def _take_settings(self, flags: int, _: int, payload: bytes) -> None:
        if flags & ACK:
            self._patience.spend()
            self._is_agreed = True
            self._headers.forget_table()
            return
        # Each may change the windows of all streams.
        self._patience.spend(1 + len(self.streams) // 4)
        grown = self.outbox.take_settings(read_settings(payload))
        self.outbox.send(frame(SETTINGS, ACK, 0))
        if grown:
            for stream in [*self.streams.values()]:
                if not stream.grow(grown):
                    raise ConnectionFault(ErrorCode.FLOW_CONTROL_ERROR, "a window is larger than it can be")

    def _take_ping(self, flags: int, _: int, payload: bytes) -> None:
        self._patience.spend()
        if not flags & ACK:
            self.outbox.send(frame(PING, ACK, 0, payload))
        elif payload == _OUR_PING:
            self._pinged = None
        elif payload == _LAST_CALL and self._leaving is not None:
            self._leave()

    def _take_leave(self, _: int, __: int, ___: bytes) -> None:
        """The client opens no streams any more."""
        self._patience.spend()
        self._leaving = self._heard
        self._leave()

    def _take_room(self, _: int, number_: int, payload: bytes) -> None:
        self._patience.spend()
        more = int.from_bytes(payload, "big") & LARGEST_WINDOW
        if number_ == 0:
            if not more:
                raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "a window grows by something")
            self.outbox.grow(more)
            return
        self._check_idle(number_)
        stream = self.streams.get(number_)
        if stream is None:
            return
        if not more:
            self.reset(number_, ErrorCode.PROTOCOL_ERROR)
        elif not stream.grow(more):
            self.reset(number_, ErrorCode.FLOW_CONTROL_ERROR)

    def _check_idle(self, stream: int) -> None:
        if stream > self._last and not self._has_left:
            raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "a frame on a stream that was not opened")

    # -- ends

    def _leave(self) -> None:
        if not self._has_left:
            self._has_left = True
            self.outbox.send(_goaway(self._last, ErrorCode.NO_ERROR))
            self._close_if_left()

    def _close_if_left(self) -> None:
        if self._has_left and not self.streams and self._ended is None:
            self._end()

    def _fail(self, fault: ConnectionFault) -> None:
        self.outbox.send(_goaway(self._last, fault.code, fault.what))
        self._end()
        for stream in [*self.streams.values()]:
            self._drop(stream)
            stream.exchange.lost()

    def _end(self) -> None:
        """Say no more, and hear no more: a connection that is closed while its peer sends loses what it was told."""
        self._ended = self._clock()
        self.outbox.end()
        if self._transport is not None and not self._transport.is_closing():
            if self._transport.can_write_eof():
                self._transport.write_eof()
            else:
                self._transport.close()


def _goaway(last: int, code: ErrorCode, what: str = "") -> bytes:
    return frame(GOAWAY, 0, 0, number(last) + number(code) + what.encode())
