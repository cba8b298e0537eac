"""One HTTP connection: limits on what comes before a request's body, of which the server has none of its own, and an
answer's head and body sent in one go."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from serve_app.http.problems import problem_response
from serve_app.identity import ID, request_id_of
from serve_app.problem import Problem

# Of the request line and all headers together.
HEAD_LIMIT = 64 * 2**10
# From the connection's or the request's beginning to the end of its headers.
HEAD_TIMEOUT_S = 20.0
# A connection that is closed while its client still sends is reset, and the answer lost.
_LINGER_S = 1.0
# Beyond this, what is written goes out at once, so that its sender notices when the client does not read.
_CORKED = 64 * 2**10


class _Corked:
    """A transport that sends what one turn of the event loop writes with one system call."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop):
        self._transport = transport
        self._loop = loop
        self._unsent: list[bytes] = []

    def write(self, data: bytes) -> None:
        if not self._unsent:
            self._loop.call_soon(self._flush)
        self._unsent.append(data)
        if sum(map(len, self._unsent)) > _CORKED:
            self._flush()

    def close(self) -> None:
        self._flush()
        self._transport.close()

    def _flush(self) -> None:
        if self._unsent:
            unsent, self._unsent = self._unsent, []
            self._transport.write(b"".join(unsent))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


class Connection(HttpToolsProtocol):
    """Bytes that are no HTTP are answered with a problem, and so are headers that are too many; those that do not come
    end the connection."""

    _head = 0
    _in_head = _is_refused = False
    _due: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(cast(asyncio.Transport, _Corked(transport, self.loop)))
        self._wait_for_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end_waiting()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._is_refused:
            return
        was_in_head = self._in_head
        super().data_received(data)
        if was_in_head and self._in_head:
            self._head += len(data)
            if self._head > HEAD_LIMIT:
                detail = f"the headers are larger than {HEAD_LIMIT:,} bytes; send fewer"
                self._refuse(Problem(431, "headers_too_large", detail))

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._head, self._in_head = 0, True
        self._wait_for_head()

    def on_headers_complete(self) -> None:
        self._in_head = False
        self._end_waiting()
        super().on_headers_complete()

    def send_400_response(self, msg: str) -> None:
        """Called by the server for what it cannot read."""
        self._refuse(Problem(400, "malformed_http", "this cannot be read as HTTP; send a request"))

    def _refuse(self, problem: Problem) -> None:
        """End the connection; the problem is only said where it cannot be taken for the answer to another request."""
        self._is_refused = True
        self._end_waiting()
        cycle = self.cycle
        if cycle is None or cycle.response_complete:
            self._say(problem)
        elif not cycle.more_body:
            # The requests before are whole: the last one's answer is the connection's last.
            cycle.keep_alive = False
        elif self.pipeline or cycle.response_started:
            self.transport.close()
        else:
            # What cannot be read is this request's body; it has its answer.
            cycle.disconnected = True
            cycle.message_event.set()
            self._say(problem)

    def _say(self, problem: Problem) -> None:
        request_id = request_id_of(None)
        answer = problem_response(problem, request_id)
        headers = [*answer.raw_headers, (ID.encode(), request_id.encode()), (b"connection", b"close")]
        lines = [STATUS_LINE[problem.status], *(b"%b: %b\r\n" % header for header in headers), b"\r\n"]
        self.transport.write(b"".join(lines) + bytes(answer.body))
        self._due = self.loop.call_later(_LINGER_S, self._give_up)

    def _wait_for_head(self) -> None:
        if self._due is None:
            self._due = self.loop.call_later(HEAD_TIMEOUT_S, self._give_up)

    def _end_waiting(self) -> None:
        if self._due is not None:
            self._due.cancel()
            self._due = None

    def _give_up(self) -> None:
        self._due = None
        self.transport.close()
