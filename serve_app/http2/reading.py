"""What comes in: bytes of any cut to whole frames, and headers that go on over several frames to whole blocks."""

from __future__ import annotations

from collections.abc import Callable

from serve_app.http2.frames import (
    ACK,
    CONTINUATION,
    DATA,
    END_HEADERS,
    HEAD,
    HEAD_SIZE,
    HEADERS,
    LAST_STREAM,
    PREFACE,
    SETTINGS,
    ConnectionFault,
    ErrorCode,
    header_block,
)
from serve_app.http2.headers import HARD_HEADER_LIMIT, HEADER_LIMIT
from serve_app.http2.rules import check_head

# Headers, and frames other than a body's, are to be whole within so many seconds.
HEAD_TIMEOUT_S = 20.0
_MOST_CONTINUATIONS = 32
# Kind, flags, stream and payload.
Take = Callable[[int, int, int, bytes], None]


class FrameReader:
    """Hands each frame to `take`; of HEADERS the payload is the whole block, without padding and continuations.

    All that the peer can do wrong up to there is a ConnectionFault.
    """

    def __init__(self, take: Take):
        self._take = take
        self._received = bytearray()
        self._awaited = 0  # bytes that have to be here before it is worth looking again
        self._is_greeted = False
        self.has_settings = False
        self._block = bytearray()
        self._block_of: tuple[int, int] | None = None  # the stream and flags of headers that go on
        self._continuations = 0
        self._partial_since: float | None = None
        self._block_since: float | None = None

    def feed(self, data: bytes, now: float) -> None:
        """The next bytes, which came `now`."""
        received = self._received
        if received:
            received += data
            if len(received) < self._awaited:
                return
            data = bytes(received)
            received.clear()
        at = self._take_frames(data, 0 if self._is_greeted else self._take_preface(data), now)
        if at == len(data):
            self._partial_since = None
            return
        received += data[at:]
        if at or self._partial_since is None:
            self._partial_since = now

    def check(self, now: float) -> None:
        """ConnectionFault where something takes too long."""
        # A body's frame may be large; who waits for it has a limit for that.
        partial = None if self._received[3:4] == bytes([DATA]) else self._partial_since
        if any(since is not None and now - since > HEAD_TIMEOUT_S for since in (partial, self._block_since)):
            raise ConnectionFault(ErrorCode.ENHANCE_YOUR_CALM, "a frame or headers came too slowly")

    @property
    def held(self) -> int:
        """Bytes that are kept until more come."""
        return len(self._received) + len(self._block)

    def _take_preface(self, data: bytes) -> int:
        if data.startswith(PREFACE):
            self._is_greeted = True
            return len(PREFACE)
        if not PREFACE.startswith(data):
            raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "this port speaks gRPC, which is HTTP/2")
        self._awaited = len(PREFACE)
        return 0

    def _take_frames(self, data: bytes, at: int, now: float) -> int:
        """Take the whole frames that there are from `at` on; answers where the rest begins."""
        end = len(data)
        if not self._is_greeted:
            return at
        while end - at >= HEAD_SIZE:
            upper, lower, kind, flags, stream = HEAD.unpack_from(data, at)
            length = upper << 16 | lower
            stream &= LAST_STREAM
            check_head(kind, length, flags, stream)
            if self._block_of is not None and (kind != CONTINUATION or stream != self._block_of[0]):
                raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "headers go on with nothing but their continuation")
            if not self.has_settings and (kind != SETTINGS or flags & ACK):
                raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "a client begins with its settings")
            start = at + HEAD_SIZE
            if end - start < length:
                self._awaited = HEAD_SIZE + length
                return at
            at = start + length
            if kind == HEADERS:
                self._take_headers(flags, stream, data[start:at], now)
            elif kind == CONTINUATION:
                self._take_continuation(flags, data[start:at])
            else:
                self.has_settings = True
                self._take(kind, flags, stream, data[start:at])
        self._awaited = HEAD_SIZE
        return at

    def _take_headers(self, flags: int, stream: int, payload: bytes, now: float) -> None:
        block = header_block(flags, payload)
        if flags & END_HEADERS:
            self._take(HEADERS, flags, stream, block)
        else:
            self._block += block
            self._block_of = stream, flags
            self._block_since = now
            self._continuations = 0

    def _take_continuation(self, flags: int, payload: bytes) -> None:
        if self._block_of is None:
            raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "a continuation of nothing")
        self._block += payload
        self._continuations += 1
        if len(self._block) > HARD_HEADER_LIMIT or self._continuations > _MOST_CONTINUATIONS:
            raise ConnectionFault(ErrorCode.ENHANCE_YOUR_CALM, f"headers of more than {HEADER_LIMIT:,} bytes")
        if flags & END_HEADERS:
            (stream, first), block = self._block_of, bytes(self._block)
            self._block_of = self._block_since = None
            self._block.clear()
            self._take(HEADERS, first, stream, block)
