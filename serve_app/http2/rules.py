"""What can be said against a frame by its first nine bytes (RFC 9113 §4.2, §6)."""

from __future__ import annotations

from serve_app.http2.frames import (
    ACK,
    CONTINUATION,
    DATA,
    GOAWAY,
    HEADERS,
    PING,
    PRIORITY,
    PUSH_PROMISE,
    RST_STREAM,
    SETTINGS,
    WINDOW_UPDATE,
    ConnectionFault,
    ErrorCode,
)
from serve_app.http2.headers import HARD_HEADER_LIMIT

# Of bodies; large ones come in fewer frames, and a connection holds one that is not whole.
LARGEST_FRAME = 2**18
_OF_STREAMS = (DATA, HEADERS, PRIORITY, RST_STREAM, CONTINUATION)
_OF_CONNECTIONS = (SETTINGS, PING, GOAWAY)
_SIZES = {PRIORITY: 5, RST_STREAM: 4, PING: 8, WINDOW_UPDATE: 4}
# RFC 9113 has six settings, and others have been added since; beyond this a frame is not worth reading.
_MOST_SETTINGS = 32


def check_head(kind: int, length: int, flags: int, stream: int) -> None:
    """ConnectionFault where the frame is not allowed, before its payload is waited for."""
    if kind in (DATA, HEADERS) and stream and length <= HARD_HEADER_LIMIT:
        return  # nearly all of them
    if length > LARGEST_FRAME:
        raise ConnectionFault(ErrorCode.FRAME_SIZE_ERROR, f"a frame of more than {LARGEST_FRAME:,} bytes")
    if kind in _SIZES and length != _SIZES[kind]:
        raise ConnectionFault(ErrorCode.FRAME_SIZE_ERROR, f"a frame of kind {kind} is {_SIZES[kind]} bytes")
    if kind in _OF_STREAMS and not stream:
        raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, f"a frame of kind {kind} belongs to a stream")
    if kind in _OF_CONNECTIONS and stream:
        raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, f"a frame of kind {kind} belongs to no stream")
    if kind == PUSH_PROMISE:
        raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "clients promise nothing")
    if kind == SETTINGS and flags & ACK and length:
        raise ConnectionFault(ErrorCode.FRAME_SIZE_ERROR, "an acknowledgement holds nothing")
    if kind == GOAWAY and length < 8:
        raise ConnectionFault(ErrorCode.FRAME_SIZE_ERROR, "a GOAWAY is 8 bytes or more")
    if kind in (HEADERS, CONTINUATION) and length > HARD_HEADER_LIMIT:
        raise ConnectionFault(ErrorCode.ENHANCE_YOUR_CALM, f"headers of more than {HARD_HEADER_LIMIT:,} bytes")
    if kind == SETTINGS and length > 6 * _MOST_SETTINGS:
        raise ConnectionFault(ErrorCode.ENHANCE_YOUR_CALM, f"more than {_MOST_SETTINGS} settings")
