"""A client that says what a test wants, frame by frame, to a gRPC server that it reaches without a network."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any

from hpack import Decoder, Encoder

from serve_app.grpc_server.methods import Call, Method, Streaming, Unary
from serve_app.grpc_server.server import GrpcServer
from serve_app.http2 import frames
from serve_app.http2.frames import ErrorCode, frame

LIMIT = 2**20
END = frames.END_HEADERS | frames.END_STREAM
REQUEST = {
    ":method": "POST",
    ":scheme": "http",
    ":path": "/test/Echo",
    ":authority": "here",
    "te": "trailers",
    "content-type": "application/grpc",
}
GREETING = frames.PREFACE + frame(frames.SETTINGS, 0, 0)
AGREED = frame(frames.SETTINGS, frames.ACK, 0)


class Service:
    """Methods that tests call: what they were asked, and whether they were cancelled."""

    def __init__(self) -> None:
        self.asked: list[bytes] = []
        self.calls: list[Call] = []
        self.cancelled = 0
        self.written = 0
        self.is_released = asyncio.Event()

    def methods(self) -> Mapping[str, Method]:
        found: list[Method] = [
            Unary("Echo", self.echo),
            Unary("Hold", self.hold),
            Unary("Large", self.large),
            Unary("Break", self.fail),
            Streaming("Chat", self.chat),
            Streaming("Burst", self.burst),
        ]
        return {f"/test/{method.name}": method for method in found}

    async def echo(self, message: bytes, call: Call) -> bytes:
        self.asked.append(message)
        self.calls.append(call)
        call.trailers = (("x-request-id", "mine"),)
        return message

    async def hold(self, message: bytes, call: Call) -> bytes:
        self.asked.append(message)
        try:
            await self.is_released.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        return message

    async def large(self, message: bytes, call: Call) -> bytes:
        """As many bytes as the message says, or 70,000."""
        return bytes(int(message) if message.isdigit() else 70_000)

    async def fail(self, message: bytes, call: Call) -> bytes:
        raise RuntimeError("a fault of the service")

    async def chat(self, requests: AsyncIterator[bytes], call: Call) -> None:
        self.calls.append(call)
        async for message in requests:
            self.asked.append(message)
            await call.write(message)

    async def burst(self, requests: AsyncIterator[bytes], call: Call) -> None:
        """Messages of 1,000 bytes without an end."""
        try:
            while True:
                await call.write(bytes(1000))
                self.written += 1
        except asyncio.CancelledError:
            self.cancelled += 1
            raise


@dataclass(frozen=True)
class Frame:
    kind: int
    flags: int
    stream: int
    payload: bytes

    @property
    def number(self) -> int:
        """Of a WINDOW_UPDATE or RST_STREAM."""
        return int.from_bytes(self.payload, "big")


class Transport(asyncio.Transport):
    """Keeps what is written; `is_read` says whether the client takes it."""

    def __init__(self) -> None:
        super().__init__()
        self.written = bytearray()
        self.unread = 0
        self.is_read = True
        self.is_ended = self.is_aborted = False
        self.protocol: Any = None
        self._high = 2**16

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._high = high or self._high

    def write(self, data: bytes) -> None:  # type: ignore[override]
        assert not self.is_ended
        self.written += data
        if not self.is_read:
            was, self.unread = self.unread, self.unread + len(data)
            if was <= self._high < self.unread:
                self.protocol.pause_writing()

    def read_on(self) -> None:
        self.is_read, self.unread = True, 0
        self.protocol.resume_writing()

    def get_write_buffer_size(self) -> int:
        return self.unread

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        self.is_ended = True

    def is_closing(self) -> bool:
        return self.is_aborted

    def close(self) -> None:
        self.abort()

    def abort(self) -> None:
        if not self.is_aborted:
            self.is_aborted = True
            asyncio.get_running_loop().call_soon(self.protocol.connection_lost, None)


class Peer:
    """`now` is the server's clock, which only the test moves."""

    def __init__(self, *, greets: bool = True) -> None:
        self.service = Service()
        self.server = GrpcServer(self.service.methods(), limit=LIMIT, within=8)
        self.now = 1000.0
        self.connection = self.server.connection(lambda: self.now)
        self.transport = self.transport_of(self.connection)
        self.encoder = Encoder()
        self.decoder = Decoder()
        self._at = 0
        self._next = 1
        if greets:
            self.send(GREETING, AGREED)
            self.encoder.header_table_size = 0

    @staticmethod
    def transport_of(connection: Any) -> Transport:
        transport = Transport()
        transport.protocol = connection
        connection.connection_made(transport)
        return transport

    # -- what the client says

    def send(self, *parts: bytes) -> None:
        self.connection.data_received(b"".join(parts))

    def headers(
        self, stream: int, changes: Mapping[str, str | None] | None = None, *, flags: int = frames.END_HEADERS
    ) -> bytes:
        """A request's headers, with some replaced, or left out where they are None."""
        fields = {**REQUEST, **(changes or {})}
        return self.fields(stream, [(name, value) for name, value in fields.items() if value is not None], flags)

    def fields(self, stream: int, fields: list[tuple[str, str]], flags: int = frames.END_HEADERS) -> bytes:
        return frame(frames.HEADERS, flags, stream, bytes(self.encoder.encode(fields)))

    def request(self, method: str = "Echo", message: bytes = b"hello", **more: str) -> int:
        """A whole request; answers its stream."""
        stream = self.open(method, **more)
        self.send(data(stream, prefixed(message), end=True))
        return stream

    def open(self, method: str = "Echo", **more: str) -> int:
        """Only its headers."""
        stream, self._next = self._next, self._next + 2
        named = {name.replace("_", "-"): value for name, value in more.items()}
        self.send(self.headers(stream, {":path": f"/test/{method}", **named}))
        return stream

    # -- what the server says

    def read(self) -> list[Frame]:
        """The frames that have come since the last time."""
        self.connection.outbox.flush()
        found = []
        written = self.transport.written
        while len(written) - self._at >= 9:
            upper, lower, kind, flags, stream = frames.HEAD.unpack_from(written, self._at)
            start = self._at + 9
            self._at = start + (upper << 16 | lower)
            found.append(Frame(kind, flags, stream, bytes(written[start : self._at])))
        return found

    def block(self, found: Frame) -> dict[str, str]:
        assert found.kind == frames.HEADERS
        return {str(name): str(value) for name, value in self.decoder.decode(found.payload)}

    async def answer(self, stream: int) -> tuple[dict[str, str], bytes, dict[str, str]]:
        """Headers, body and trailers; where there are only trailers, they are the headers too."""
        mine: list[Frame] = []
        while not mine or not mine[-1].flags & frames.END_STREAM:
            await asyncio.sleep(0)
            mine += [
                each for each in self.read() if each.stream == stream and each.kind in (frames.DATA, frames.HEADERS)
            ]
        body = b"".join(each.payload for each in mine if each.kind == frames.DATA)
        return self.block(mine[0]), body, self.block(mine[-1]) if len(mine) > 1 else {}

    async def status(self, stream: int) -> tuple[str, str]:
        """An answer's status and message."""
        head, _, trailers = await self.answer(stream)
        said = {**head, **trailers}
        return said["grpc-status"], said.get("grpc-message", "")

    def connection_error(self) -> ErrorCode:
        """What ended the connection."""
        (goaway,) = [each for each in self.read() if each.kind == frames.GOAWAY]
        assert self.transport.is_ended
        return ErrorCode(int.from_bytes(goaway.payload[4:8], "big"))

    def stream_errors(self) -> dict[int, ErrorCode]:
        """The streams that the server has reset; the connection goes on."""
        found = {each.stream: ErrorCode(each.number) for each in self.read() if each.kind == frames.RST_STREAM}
        assert not self.transport.is_ended
        return found

    async def works(self) -> bool:
        """Whether the connection still answers."""
        return (await self.status(self.request()))[0] == "0"

    def check(self, later: float) -> None:
        """So many seconds pass."""
        self.now += later
        self.connection.check(self.now)

    async def end(self) -> None:
        """The client hangs up."""
        self.transport.abort()
        await settle()
        assert not self.server.tasks


def data(stream: int, payload: bytes, *, end: bool = False) -> bytes:
    return frame(frames.DATA, frames.END_STREAM if end else 0, stream, payload)


def prefixed(message: bytes, flag: int = 0) -> bytes:
    return bytes([flag]) + len(message).to_bytes(4, "big") + message


def window(stream: int, more: int) -> bytes:
    return frame(frames.WINDOW_UPDATE, 0, stream, frames.number(more))


def reset(stream: int) -> bytes:
    return frame(frames.RST_STREAM, 0, stream, frames.number(ErrorCode.CANCEL))


async def settle() -> None:
    """What is to happen at once has happened."""
    for _ in range(20):
        await asyncio.sleep(0)
