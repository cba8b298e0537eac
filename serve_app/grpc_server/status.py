"""How an answer begins and ends: blocks of headers with gRPC's status."""

from __future__ import annotations

from urllib.parse import quote

from serve_app.grpc_server.methods import Metadata
from serve_app.http2.headers import STATUS_200, literal
from serve_app.protocol.refusals import Refusal

ENCODINGS = ("identity", "deflate", "gzip")
# Before messages, or before the status where there are none.
HEAD = STATUS_200 + literal("content-type", "application/grpc") + literal("grpc-accept-encoding", ",".join(ENCODINGS))
_OK = literal("grpc-status", "0")
# What is not escaped in a message: all that can be printed, but the escape itself.
_PLAIN = "".join(chr(code) for code in range(0x20, 0x7F) if code != ord("%"))
# A header of HTTP/2 fits a frame, and clients take 8 KiB of headers.
_LONGEST_MESSAGE = 4096


def http_status(status: int, **headers: str) -> bytes:
    """An answer that is not gRPC's, to a request that is not."""
    fields = {":status": str(status), **headers}
    return b"".join(literal(name.replace("_", "-"), value) for name, value in fields.items())


def success(metadata: Metadata) -> bytes:
    """The trailers of an answer."""
    return _OK + b"".join([literal(name, value) for name, value in metadata])


def failure(refusal: Refusal, metadata: Metadata, limit: int) -> bytes:
    """The trailers of a refusal; without its message where the client takes less than that: `limit` bytes."""
    code = literal("grpc-status", str(refusal.code.value[0]))
    known = code + b"".join([literal(name, value) for name, value in metadata])
    block = known + literal("grpc-message", escaped(refusal.message))
    return block if len(block) + 32 * (len(metadata) + 2) + len(HEAD) + 96 <= limit else code


def escaped(message: str) -> str:
    """The text as grpc-message has it, cut where it is very long: UTF-8, of which all but plain ASCII is escaped."""
    whole = quote(message.strip(" "), safe=_PLAIN)
    if len(whole) <= _LONGEST_MESSAGE:
        return whole
    kept = _LONGEST_MESSAGE
    # Neither an escape nor a character is cut through.
    if "%" in whole[kept - 2 : kept]:
        kept = whole.rindex("%", 0, kept)
    while whole[kept] == "%" and "8" <= whole[kept + 1] < "C":
        kept -= 3
    return whole[:kept].rstrip(" ")
