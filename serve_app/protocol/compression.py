"""Bodies in gzip and deflate, in both directions."""

from __future__ import annotations

import asyncio
import zlib

from serve_app.protocol.refusals import Code, Refusal, invalid, too_large

# Answers that are smaller gain nothing; larger bodies are worth a thread, since zlib lets go of the interpreter.
_WORTH_IT = 1024
_IN_A_THREAD = 65536
_FAST = 1
_GZIP, _ZLIB = zlib.MAX_WBITS + 16, zlib.MAX_WBITS
_WINDOWS = {"gzip": _GZIP, "x-gzip": _GZIP, "deflate": _ZLIB}


async def unpacked(body: bytes, encoding: str, limit: int) -> bytes:
    """The body as it was before the client packed it. Refusal for other encodings, and beyond `limit` bytes."""
    name = encoding.strip().lower()
    if name in ("", "identity"):
        return body
    if name not in _WINDOWS:
        raise Refusal(
            Code.UNIMPLEMENTED, "Unsupported compression type", headers=[(b"accept-encoding", b"gzip, deflate")]
        )
    if len(body) > _IN_A_THREAD:
        return await asyncio.to_thread(_unpacked, body, _WINDOWS[name], limit)
    return _unpacked(body, _WINDOWS[name], limit)


def _unpacked(body: bytes, window: int, limit: int) -> bytes:
    unpacker = zlib.decompressobj(window)
    try:
        content = unpacker.decompress(body, limit + 1)
    except zlib.error as broken:
        raise invalid(f"the body cannot be unpacked: {broken}") from None
    if len(content) > limit:
        raise too_large(f"the body is larger than {limit:,} bytes when it is unpacked")
    if not unpacker.eof or unpacker.unused_data:
        raise invalid("the body cannot be unpacked: it is cut off, or something follows it")
    return content


def chosen(accepted: str, size: int) -> str | None:
    """How to pack an answer of `size` bytes for a client that sent this Accept-Encoding; None for not at all."""
    if not accepted or size < _WORTH_IT:
        return None
    best: tuple[float, str] | None = None
    for offer in accepted.lower().split(","):
        name, _, quality = offer.partition(";")
        weight = _weight(quality)
        if name.strip() in ("gzip", "deflate") and weight > 0 and (best is None or weight > best[0]):
            best = (weight, name.strip())
    return None if best is None else best[1]


def _weight(quality: str) -> float:
    key, _, number = quality.partition("=")
    if key.strip() != "q":
        return 1.0
    try:
        return float(number)
    except ValueError:
        return 0.0


async def packed(parts: list[bytes], encoding: str) -> bytes:
    if sum(map(len, parts)) > _IN_A_THREAD:
        return await asyncio.to_thread(_packed, parts, encoding)
    return _packed(parts, encoding)


def _packed(parts: list[bytes], encoding: str) -> bytes:
    packer = zlib.compressobj(_FAST, zlib.DEFLATED, _WINDOWS[encoding])
    return b"".join([*map(packer.compress, parts), packer.flush()])
