"""HTTP/2's frames: their kinds, flags and sizes, and the errors that end a stream or a connection (RFC 9113)."""

from __future__ import annotations

import struct
from enum import IntEnum

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = range(10)
END_STREAM = ACK = 0x1
END_HEADERS, PADDED, WITH_PRIORITY = 0x4, 0x8, 0x20
HEADER_TABLE_SIZE, ENABLE_PUSH, MAX_CONCURRENT_STREAMS, INITIAL_WINDOW_SIZE, MAX_FRAME_SIZE, MAX_HEADER_LIST_SIZE = (
    range(1, 7)
)
HEAD_SIZE = 9  # bytes before a frame's payload
DEFAULT_WINDOW = 2**16 - 1
LARGEST_WINDOW = LAST_STREAM = 2**31 - 1
SMALLEST_FRAME, LARGEST_FRAME = 2**14, 2**24 - 1  # the least that everybody takes, and the most that can be allowed
# The upper 8 and lower 16 bits of the payload's length, kind, flags, stream.
HEAD = struct.Struct(">BHBBI")
_SETTING = struct.Struct(">HI")


class ErrorCode(IntEnum):
    """RFC 9113 §7."""

    NO_ERROR = 0
    PROTOCOL_ERROR = 1
    INTERNAL_ERROR = 2
    FLOW_CONTROL_ERROR = 3
    SETTINGS_TIMEOUT = 4
    STREAM_CLOSED = 5
    FRAME_SIZE_ERROR = 6
    REFUSED_STREAM = 7
    CANCEL = 8
    COMPRESSION_ERROR = 9
    ENHANCE_YOUR_CALM = 11


class ConnectionFault(Exception):
    """What the peer did that ends the connection."""

    def __init__(self, code: ErrorCode, what: str):
        super().__init__(code, what)
        self.code = code
        self.what = what


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    return frame_head(len(payload), kind, flags, stream) + payload


def frame_head(length: int, kind: int, flags: int, stream: int) -> bytes:
    return HEAD.pack(length >> 16, length & 0xFFFF, kind, flags, stream)


def number(value: int) -> bytes:
    """As a WINDOW_UPDATE or RST_STREAM has it."""
    return value.to_bytes(4, "big")


def settings(values: dict[int, int]) -> bytes:
    """The payload of SETTINGS."""
    return b"".join(_SETTING.pack(key, value) for key, value in values.items())


def read_settings(payload: bytes) -> dict[int, int]:
    """The values of a SETTINGS frame, of each the last. ConnectionFault where one is not allowed (§6.5.2)."""
    if len(payload) % _SETTING.size:
        raise ConnectionFault(ErrorCode.FRAME_SIZE_ERROR, "settings are 6 bytes each")
    values: dict[int, int] = {}
    for key, value in _SETTING.iter_unpack(payload):
        if key == INITIAL_WINDOW_SIZE and value > LARGEST_WINDOW:
            raise ConnectionFault(ErrorCode.FLOW_CONTROL_ERROR, "the initial window is too large")
        if key == ENABLE_PUSH and value > 1:
            raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "ENABLE_PUSH is 0 or 1")
        if key == MAX_FRAME_SIZE and not SMALLEST_FRAME <= value <= LARGEST_FRAME:
            raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "the largest frame is out of bounds")
        values[key] = value
    return values


def unpadded(flags: int, payload: bytes) -> bytes:
    """What DATA or HEADERS hold beside padding. ConnectionFault where the padding is longer than the frame (§6.1)."""
    if not flags & PADDED:
        return payload
    if not payload:
        raise ConnectionFault(ErrorCode.FRAME_SIZE_ERROR, "a padded frame begins with the padding's length")
    if payload[0] >= len(payload):
        raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "the padding is longer than the frame")
    return payload[1 : len(payload) - payload[0]]


def header_block(flags: int, payload: bytes) -> bytes:
    """The headers, or their beginning, that a HEADERS frame holds beside padding and priority (§6.2)."""
    block = unpadded(flags, payload)
    if not flags & WITH_PRIORITY:
        return block
    if len(block) < 5:
        raise ConnectionFault(ErrorCode.FRAME_SIZE_ERROR, "a priority is 5 bytes")
    return block[5:]
