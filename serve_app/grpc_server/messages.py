"""Messages on a stream: each has five bytes in front, and may be cut anywhere by the frames that carry it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from serve_app.protocol.compression import unpacked
from serve_app.protocol.refusals import INVALID, Code, Refusal, too_large

PREFIX_SIZE = 5


@dataclass(frozen=True)
class Message:
    """As it came."""

    content: bytes
    is_packed: bool

    @property
    def size(self) -> int:
        """Bytes on the stream."""
        return PREFIX_SIZE + len(self.content)

    async def unpacked(self, encoding: str, limit: int) -> bytes:
        """As the client meant it. Refusal where that cannot be found out, or is larger than `limit` bytes."""
        if not self.is_packed:
            return self.content
        if encoding == "identity":
            raise Refusal(Code.INTERNAL, "a message says that it is compressed, and no grpc-encoding says how")
        try:
            return await unpacked(self.content, encoding, limit)
        except Refusal as refusal:
            raise Refusal(Code.INTERNAL if refusal.code is INVALID else refusal.code, refusal.message) from None


def prefixed(content: bytes) -> bytes:
    """A message as it is sent, which is never compressed."""
    return b"\0" + len(content).to_bytes(4, "big") + content


class Messages:
    """Puts messages together. `missing` are the bytes that the one which has begun needs still, 0 if none has."""

    def __init__(self, limit: int):
        self._limit = limit
        self._begun = bytearray()
        self.missing = 0

    def feed(self, data: bytes) -> Iterator[Message]:
        """The messages that are whole with this. Refusal where what follows them is none, or larger than the limit."""
        begun = self._begun
        if not begun and len(data) >= PREFIX_SIZE and self._length(data) == len(data) - PREFIX_SIZE:
            yield Message(data[PREFIX_SIZE:], data[0] == 1)
            return
        begun += data
        if len(data) < self.missing:
            self.missing -= len(data)
            return
        at = self.missing = 0
        while len(begun) - at >= PREFIX_SIZE:
            end = at + PREFIX_SIZE + self._length(begun, at)
            if end > len(begun):
                self.missing = end - len(begun)
                break
            yield Message(bytes(begun[at + PREFIX_SIZE : end]), begun[at] == 1)
            at = end
        del begun[:at]

    def end(self) -> None:
        """Refusal where a message is not whole."""
        if self._begun:
            raise Refusal(Code.INTERNAL, "the request ends within a message; send it whole")

    def _length(self, data: bytes | bytearray, at: int = 0) -> int:
        if data[at] > 1:
            raise Refusal(Code.INTERNAL, "a message begins with a byte that is neither 0 nor 1")
        length = int.from_bytes(data[at + 1 : at + PREFIX_SIZE], "big")
        if length > self._limit:
            raise too_large(f"a message of {length:,} bytes; at most {self._limit:,} are taken")
        return length
