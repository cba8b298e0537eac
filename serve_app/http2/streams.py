"""One stream of a server's connection: its two windows, and what its application has to say and to hear."""

from __future__ import annotations

from typing import Protocol

from serve_app.http2.frames import DEFAULT_WINDOW, END_STREAM, LARGEST_WINDOW, ErrorCode
from serve_app.http2.reserve import Reserve
from serve_app.http2.sending import Outbox

# What a client may send on a stream before anybody looks at it.
WINDOW = DEFAULT_WINDOW
# Smaller parts of a body than this ask for more work than they are worth.
_CRUMB = 128
_NOTHING = memoryview(b"")


class Exchange(Protocol):
    """The application's half of a stream."""

    def received(self, data: bytes, *, ended: bool) -> None:
        """The next bytes of the request's body. What is kept of them has to be given back by `Stream.consumed`."""

    def writable(self) -> None:
        """All that was sent has left, or the stream is over."""

    def lost(self) -> None:
        """The client has given the request up, or is gone."""


class Holder(Protocol):
    """The connection, as its streams know it."""

    outbox: Outbox
    reserve: Reserve

    def crumb(self) -> None:
        """The peer sent next to nothing."""

    def allow(self, stream: Stream, size: int) -> None:
        """Tell the peer that it may send so much more."""

    def reset(self, stream: int, code: ErrorCode) -> None:
        """End a stream before its time."""

    def ended(self, stream: Stream) -> None:
        """Both halves are over."""


class Stream:
    """Open from a request's headers to the end of its answer. `exchange` is set by whoever takes the request."""

    __slots__ = (
        "_connection",
        "_length",
        "_needed",
        "credit",
        "end",
        "exchange",
        "finished",
        "held",
        "id",
        "opened",
        "progress",
        "remote_ended",
        "reserved",
        "unsent",
        "window",
    )
    exchange: Exchange

    def __init__(self, connection: Holder, stream: int, window: int, length: int | None, now: float):
        """`length` is the content-length, if the client gave one."""
        self._connection = connection
        self.id = stream
        self.window = window
        self.unsent = _NOTHING
        self.end: bytes | None = None
        self._length = length
        self.credit = WINDOW
        self.held = 0
        self._needed = 0
        self.reserved = 0
        self.remote_ended = False
        self.finished = False  # this side has said its last
        self.opened = now
        self.progress = now  # when some of the answer went out, or came; below 0 until the connection looks at it

    # -- the peer's half

    def receive(self, size: int, data: bytes, *, ended: bool) -> None:
        """A DATA frame of `size` bytes, padding included."""
        self.credit -= size
        if self.credit < 0:
            self._connection.reset(self.id, ErrorCode.FLOW_CONTROL_ERROR)
            return
        if self._length is not None:
            self._length -= len(data)
            if self._length < 0 or (ended and self._length):
                self._connection.reset(self.id, ErrorCode.PROTOCOL_ERROR)
                return
        if not ended and len(data) < _CRUMB:
            self._connection.crumb()
        self.remote_ended = ended
        if self.finished or self.end is not None:
            return  # nobody wants it
        self.held += len(data)
        self.exchange.received(data, ended=ended)
        self.replenish()

    def consumed(self, size: int) -> None:
        """So many of the bytes that were received are not kept any more."""
        self.held -= size
        if self.reserved and self.held + self.credit <= WINDOW:
            self._connection.reserve.give_back(self)
        self.replenish()

    def need(self, size: int) -> None:
        """The application waits for so many bytes more, which may be more than the window."""
        self._needed = size

    def replenish(self) -> None:
        """Give the peer room again, as far as what is held allows."""
        if self.remote_ended or self.finished:
            return
        room = max(WINDOW - self.held, self._needed)
        more = room - self.credit
        if more < WINDOW // 2 and self._needed <= self.credit:
            return
        beyond = self.held + room - WINDOW - self.reserved
        if beyond > 0 and not self._connection.reserve.take(self, beyond):
            return
        self.credit += more
        self._connection.allow(self, more)

    # -- the application's half

    def headers(self, block: bytes) -> None:
        self._connection.outbox.headers(self.id, block)

    def send(self, data: bytes) -> None:
        """The next bytes of the answer; `unsent` is what could not leave yet."""
        outbox = self._connection.outbox
        self.progress = -1.0
        outbox.unsent += len(data)
        self.unsent = memoryview(b"".join((self.unsent, data))) if self.unsent else memoryview(data)
        outbox.body(self)

    def answer(self, head: bytes, message: bytes, end: bytes) -> None:
        """All of an answer: a block of headers, the body, and a block of trailers."""
        if self._connection.outbox.whole(self, head, message, end):
            self._finish()
            return
        self.headers(head)
        self.end = end
        self.send(message)

    def finish(self, end: bytes) -> None:
        """The answer is whole; `end` is the trailers' block."""
        self.end = end
        if not self.unsent:
            self._connection.outbox.headers(self.id, end, END_STREAM)
            self._finish()

    def reset(self, code: ErrorCode) -> None:
        self._connection.reset(self.id, code)

    def sent(self) -> None:
        """Called by the outbox."""
        self.progress = -1.0
        if not self.unsent:
            if self.end is not None:
                self._finish()
            else:
                self.exchange.writable()

    def grow(self, more: int) -> bool:
        """The peer has more room for the answer, or less. False where that is more than there can be."""
        self.window += more
        if self.window > LARGEST_WINDOW:
            return False
        if self.unsent and self.window > 0:
            self._connection.outbox.body(self)
        return True

    def _finish(self) -> None:
        self.finished = True
        self._connection.ended(self)
