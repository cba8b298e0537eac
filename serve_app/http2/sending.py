"""What goes out: corked writes, and bodies as the peer has room for them.

What one turn of the event loop sends leaves in one system call. Bodies wait for three things: room in the stream's
window, room in the connection's, and a transport that gets rid of what it has. Those that wait take turns.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

from serve_app.http2.frames import (
    DATA,
    DEFAULT_WINDOW,
    END_HEADERS,
    END_STREAM,
    HEADER_TABLE_SIZE,
    HEADERS,
    INITIAL_WINDOW_SIZE,
    LARGEST_WINDOW,
    MAX_FRAME_SIZE,
    MAX_HEADER_LIST_SIZE,
    SMALLEST_FRAME,
    ConnectionFault,
    ErrorCode,
    frame,
    frame_head,
)
from serve_app.http2.headers import EMPTY_TABLE

# Bodies leave in parts of this, so that a large one does not keep the others waiting.
_PART = 64 * 2**10
# Of bodies, in one turn of the event loop and in the transport.
_AT_ONCE = 256 * 2**10
_WORTH_A_FRAME = 1024
# A peer that asks and does not read: beyond this in the transport it is hung up on.
_MOST_UNREAD = 2**20


class Body(Protocol):
    """What a stream has to send. `window` is the peer's room for it; `end` is the trailers' block, where known."""

    id: int
    window: int
    unsent: memoryview
    end: bytes | None

    def sent(self) -> None:
        """Some of it went out, and the end too where nothing is unsent and there is one."""


class Outbox:
    """The sending half of a connection. `useful` is called for each part of a body that is worth its frame."""

    def __init__(self, useful: Callable[[], None]):
        self._useful = useful
        self._transport: asyncio.Transport | None = None
        self._loop = asyncio.get_running_loop()
        self._corked: list[bytes | memoryview] = []
        self._corked_data = 0
        self._paused = False
        self._ready: dict[int, Body] = {}  # with something to send, and room in their own window
        self._room = DEFAULT_WINDOW
        self._largest_part = SMALLEST_FRAME
        self._table_update = EMPTY_TABLE
        self.initial_window = DEFAULT_WINDOW
        self.header_limit = LARGEST_WINDOW
        self.unsent = 0  # bytes of bodies that wait

    def attach(self, transport: asyncio.Transport) -> None:
        transport.set_write_buffer_limits(high=_AT_ONCE)
        self._transport = transport

    # -- frames

    def send(self, data: bytes | memoryview) -> None:
        if not self._corked:
            self._loop.call_soon(self.flush)
        self._corked.append(data)

    def headers(self, stream: int, block: bytes, flags: int = 0) -> None:
        """A block of headers, which is shorter than the smallest frame that a peer may insist on."""
        if self._table_update:
            block, self._table_update = self._table_update + block, b""
        self.send(frame(HEADERS, flags | END_HEADERS, stream, block))

    def whole(self, body: Body, head: bytes, message: bytes, end: bytes) -> bool:
        """Send a whole answer, if there is room for it."""
        size = len(message)
        if self._ready or size > min(self._largest_part, self._room, body.window) or self._blocked():
            return False
        self.headers(body.id, head)
        self._room -= size
        body.window -= size
        self._corked_data += size
        self._corked += (
            frame_head(size, DATA, 0, body.id),
            message,
            frame_head(len(end), HEADERS, END_HEADERS | END_STREAM, body.id),
            end,
        )
        self._useful()
        return True

    def body(self, body: Body) -> None:
        """Send as much of what is unsent as there is room for, the rest when there is."""
        while not self._ready and body.unsent and body.window > 0 and self._room > 0 and not self._blocked():
            self._send_part(body)
        self._wait(body)

    def drop(self, body: Body) -> None:
        """It has nothing to send any more."""
        self._ready.pop(body.id, None)
        self.unsent -= len(body.unsent)
        body.unsent = body.unsent[:0]

    def flush(self) -> None:
        corked, self._corked, self._corked_data = self._corked, [], 0
        transport = self._transport
        if transport is None or not corked or transport.is_closing():
            return
        transport.write(b"".join(corked))
        if transport.get_write_buffer_size() > _MOST_UNREAD + _AT_ONCE:
            transport.abort()
        elif self._ready:
            self._pump()

    def end(self) -> None:
        """Send what there is, and from then on nothing."""
        self.flush()
        self._transport = None

    # -- room

    def pause(self) -> None:
        self._paused = True

    def resume(self) -> None:
        self._paused = False
        self._pump()

    def take_settings(self, values: dict[int, int]) -> int:
        """What the peer allows from now on; answers by how much each stream's window has grown."""
        if HEADER_TABLE_SIZE in values:
            self._table_update = EMPTY_TABLE
        self._largest_part = min(_PART, values.get(MAX_FRAME_SIZE, self._largest_part))
        self.header_limit = values.get(MAX_HEADER_LIST_SIZE, self.header_limit)
        before, self.initial_window = self.initial_window, values.get(INITIAL_WINDOW_SIZE, self.initial_window)
        return self.initial_window - before

    def grow(self, more: int) -> None:
        """The connection's window. ConnectionFault where it gets larger than there can be."""
        self._room += more
        if self._room > LARGEST_WINDOW:
            raise ConnectionFault(ErrorCode.FLOW_CONTROL_ERROR, "the connection's window is larger than it can be")
        self._pump()

    def _blocked(self) -> bool:
        return self._paused or self._corked_data >= _AT_ONCE

    def _pump(self) -> None:
        """One part of each in turn, as long as there is room."""
        while self._ready and self._room > 0 and not self._blocked():
            number = next(iter(self._ready))
            body = self._ready.pop(number)
            if body.window > 0:  # settings may have shrunk it
                self._send_part(body)
                self._wait(body)

    def _wait(self, body: Body) -> None:
        if body.unsent and body.window > 0:
            self._ready[body.id] = body

    def _send_part(self, body: Body) -> None:
        size = min(len(body.unsent), self._largest_part, self._room, body.window)
        part, body.unsent = body.unsent[:size], body.unsent[size:]
        self._room -= size
        body.window -= size
        self.unsent -= size
        self._corked_data += size
        self.send(frame_head(size, DATA, 0, body.id))
        self.send(part)
        if size >= _WORTH_A_FRAME or not body.unsent:
            self._useful()
        if not body.unsent and body.end is not None:
            self.headers(body.id, body.end, END_STREAM)
        body.sent()
