"""The HTTP/2 of calls to Triton, frame by frame, against a server that does what the tests say."""

from __future__ import annotations

import asyncio
import itertools
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import grpc
import pytest
from hpack import Decoder, Encoder
from hypothesis import given
from hypothesis import strategies as st
from tritonclient.grpc import service_pb2

from serve_app.http2 import frames as http2
from serve_app.http2.frames import frame
from serve_app.triton.channel import CallError, Channel
from serve_app.triton.http2 import Http2Connection, Response

REQUEST, ANSWER = service_pb2.ModelInferRequest, service_pb2.ModelInferResponse
END = http2.END_HEADERS | http2.END_STREAM


@dataclass
class Frame:
    kind: int
    flags: int
    stream: int
    payload: bytes


@dataclass
class Peer:
    """A server's end: it reads frames, and writes what it is told to."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    encoder: Encoder = field(default_factory=Encoder)
    decoder: Decoder = field(default_factory=Decoder)

    async def read(self) -> Frame:
        head = await asyncio.wait_for(self.reader.readexactly(9), 20)
        payload = await asyncio.wait_for(self.reader.readexactly(int.from_bytes(head[:3], "big")), 20)
        return Frame(head[3], head[4], int.from_bytes(head[5:], "big"), payload)

    async def read_until(self, kind: int) -> Frame:
        while (found := await self.read()).kind != kind:
            pass
        return found

    async def read_request(self) -> tuple[int, dict[str, str], bytes]:
        head = await self.read_until(http2.HEADERS)
        assert head.flags == http2.END_HEADERS
        headers = {str(name): str(value) for name, value in self.decoder.decode(head.payload)}
        body = b""
        while True:
            part = await self.read_until(http2.DATA)
            assert part.stream == head.stream
            body += part.payload
            if part.flags & http2.END_STREAM:
                return head.stream, headers, body

    def write(self, *frames: bytes) -> None:
        self.writer.write(b"".join(frames))

    def headers(self, **values: str) -> bytes:
        return bytes(self.encoder.encode([(name.replace("_", "-"), value) for name, value in values.items()]))

    def answer(self, stream: int, message: service_pb2.ModelInferResponse) -> bytes:
        content = message.SerializeToString()
        return b"".join(
            [
                frame(http2.HEADERS, http2.END_HEADERS, stream, self.headers(content_type="application/grpc")),
                frame(http2.DATA, 0, stream, b"\0" + len(content).to_bytes(4, "big") + content),
                frame(http2.HEADERS, END, stream, self.headers(grpc_status="0")),
            ]
        )


@asynccontextmanager
async def served(
    behave: Callable[[Peer], Awaitable[None]], settings: bytes | None = b"", **metadata: str
) -> AsyncIterator[Channel]:
    """A channel to a server that behaves so on each connection; what goes wrong in it fails the test.

    `settings`: what the server begins with; None where it does not.
    """
    failures: list[BaseException] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            assert await reader.readexactly(len(http2.PREFACE)) == http2.PREFACE
            if settings is not None:
                writer.write(frame(http2.SETTINGS, 0, 0, settings))
            peer = Peer(reader, writer)
            peer.encoder.header_table_size = 0
            await behave(peer)
        except BaseException as failure:
            failures.append(failure)
            raise
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    channel = Channel(f"{host}:{port}", metadata)
    yield channel
    channel.close()
    server.close()
    await server.wait_closed()
    assert failures == []


async def infer(
    channel: Channel, request: service_pb2.ModelInferRequest | None = None
) -> service_pb2.ModelInferResponse:
    return await channel.call("ModelInfer", request or REQUEST(model_name="m"), ANSWER, 20)


async def refused(call: Awaitable[object]) -> tuple[grpc.StatusCode, str]:
    with pytest.raises(CallError) as error:
        await call
    return error.value.code(), error.value.details()


async def answer_one(peer: Peer) -> None:
    stream, _, _ = await peer.read_request()
    peer.write(peer.answer(stream, ANSWER(id="it")))
    await peer.reader.read()


async def test_a_call_is_a_request_as_grpc_has_it() -> None:
    async def behave(peer: Peer) -> None:
        stream, headers, body = await peer.read_request()
        assert headers.pop(":authority").startswith("127.0.0.1:")
        assert headers == {
            ":method": "POST",
            ":scheme": "http",
            ":path": "/inference.GRPCInferenceService/ModelInfer",
            "te": "trailers",
            "content-type": "application/grpc",
            "grpc-timeout": "20000m",
        }
        assert body[:5] == b"\0" + (len(body) - 5).to_bytes(4, "big")
        assert REQUEST.FromString(body[5:]).model_name == "m"
        peer.write(peer.answer(stream, ANSWER(id="it")))
        await peer.reader.read()

    async with served(behave) as channel:
        assert (await infer(channel)).id == "it"


async def test_a_channels_metadata_goes_with_every_call() -> None:
    async def behave(peer: Peer) -> None:
        for _ in range(2):
            stream, headers, _ = await peer.read_request()
            assert headers["tier"] == "bulk"
            peer.write(peer.answer(stream, ANSWER(id="it")))
        await peer.reader.read()

    async with served(behave, tier="bulk") as channel:
        await infer(channel)
        await infer(channel)


async def test_a_server_that_answers_before_it_has_seen_the_settings_is_understood() -> None:
    """Triton does, where it refuses the first request at once; from then on it keeps no table of headers."""

    async def hasty(peer: Peer) -> None:
        peer.encoder = Encoder()
        for number in range(6):
            if number == 3:
                peer.encoder.header_table_size = 0
            stream, _, _ = await peer.read_request()
            peer.write(peer.answer(stream, ANSWER(model_name=str(number))))
        await peer.reader.read()

    async with served(hasty) as channel:
        answers = [await infer(channel) for _ in range(6)]
    assert [answer.model_name for answer in answers] == [str(number) for number in range(6)]


async def test_calls_share_a_connection_and_are_answered_in_any_order() -> None:
    async def behave(peer: Peer) -> None:
        requests = [await peer.read_request() for _ in range(3)]
        for stream, _, body in reversed(requests):
            peer.write(peer.answer(stream, ANSWER(id=REQUEST.FromString(body[5:]).id)))
        await peer.reader.read()

    async with served(behave) as channel:
        answers = await asyncio.gather(*(infer(channel, REQUEST(id=str(index))) for index in range(3)))
    assert [answer.id for answer in answers] == ["0", "1", "2"]


async def test_a_body_waits_for_the_room_that_the_server_gives_it() -> None:
    """In the stream, in the connection, and in a frame; a window may even become negative (RFC 9113 §6.9.2)."""
    content = bytes(300_000)

    async def behave(peer: Peer) -> None:
        await peer.read_until(http2.HEADERS)
        parts = [await peer.read_until(http2.DATA)]
        assert len(parts[0].payload) == 1000
        peer.write(frame(http2.SETTINGS, 0, 0, struct.pack(">HI", 4, 400)))  # a window of 600 less than nothing
        peer.write(frame(http2.WINDOW_UPDATE, 0, parts[0].stream, (601).to_bytes(4, "big")))
        parts.append(await peer.read_until(http2.DATA))
        assert len(parts[1].payload) == 1
        peer.write(frame(http2.WINDOW_UPDATE, 0, parts[0].stream, (2**30).to_bytes(4, "big")))
        while sum(len(part.payload) for part in parts) < 65_535:
            parts.append(await peer.read_until(http2.DATA))
        assert max(len(part.payload) for part in parts) == 16_384
        assert sum(len(part.payload) for part in parts) == 65_535
        peer.write(frame(http2.WINDOW_UPDATE, 0, 0, (2**30).to_bytes(4, "big")))
        while not parts[-1].flags & http2.END_STREAM:
            parts.append(await peer.read_until(http2.DATA))
        assert REQUEST.FromString(b"".join(part.payload for part in parts)[5:]).raw_input_contents == [content]
        peer.write(peer.answer(parts[0].stream, ANSWER(id="it")))
        await peer.reader.read()

    async with served(behave, settings=struct.pack(">HI", 4, 1000)) as channel:
        # The server's settings have to be here before the request is made.
        connecting = await channel._connect(asyncio.get_running_loop().time() + 20)
        while connecting._stream_room != 1000:
            await asyncio.sleep(0.001)
        assert (await infer(channel, REQUEST(raw_input_contents=[content]))).id == "it"


async def test_a_caller_that_is_cancelled_cancels_the_call() -> None:
    async def behave(peer: Peer) -> None:
        stream, _, _ = await peer.read_request()
        arrived.set()
        reset = await peer.read_until(http2.RST_STREAM)
        assert (reset.stream, int.from_bytes(reset.payload, "big")) == (stream, http2.ErrorCode.CANCEL)
        peer.write(peer.answer(stream, ANSWER(id="late")))  # means nothing to anybody
        await answer_one(peer)

    arrived = asyncio.Event()
    async with served(behave) as channel:
        call = asyncio.ensure_future(infer(channel))
        await arrived.wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert (await infer(channel)).id == "it"


async def test_a_call_ends_at_its_deadline_and_is_cancelled() -> None:
    async def behave(peer: Peer) -> None:
        stream, headers, _ = await peer.read_request()
        assert headers["grpc-timeout"] == "50m"
        assert (await peer.read_until(http2.RST_STREAM)).stream == stream

    async with served(behave) as channel:
        code, _ = await refused(channel.call("ModelInfer", REQUEST(), ANSWER, 0.05))
    assert code is grpc.StatusCode.DEADLINE_EXCEEDED


async def test_what_the_server_says_is_handed_on() -> None:
    async def behave(peer: Peer) -> None:
        stream, _, _ = await peer.read_request()
        said = peer.headers(grpc_status="14", grpc_message="queue %22m%22 is full: 100%25")
        peer.write(frame(http2.HEADERS, END, stream, said))
        await peer.reader.read()

    async with served(behave) as channel:
        assert await refused(infer(channel)) == (grpc.StatusCode.UNAVAILABLE, 'queue "m" is full: 100%')


@pytest.mark.parametrize(
    ("trailers", "code"),
    [
        ({"grpc_status": "99"}, grpc.StatusCode.UNKNOWN),
        ({"grpc_status": "none"}, grpc.StatusCode.UNKNOWN),
        ({"content_type": "text/html"}, grpc.StatusCode.UNKNOWN),
        ({"grpc_status": "0"}, grpc.StatusCode.INTERNAL),
    ],
    ids=["a code that there is not", "no code", "no status", "no message"],
)
async def test_an_answer_that_is_none_of_grpc_fails_the_call(trailers: dict[str, str], code: grpc.StatusCode) -> None:
    async def behave(peer: Peer) -> None:
        stream, _, _ = await peer.read_request()
        peer.write(frame(http2.HEADERS, END, stream, peer.headers(**trailers)))
        await peer.reader.read()

    async with served(behave) as channel:
        assert (await refused(infer(channel)))[0] is code


@pytest.mark.parametrize(
    ("reset", "code"),
    [(7, grpc.StatusCode.UNAVAILABLE), (8, grpc.StatusCode.CANCELLED), (2, grpc.StatusCode.INTERNAL)],
)
async def test_a_call_that_the_server_resets_fails_alone(reset: int, code: grpc.StatusCode) -> None:
    async def behave(peer: Peer) -> None:
        stream, _, _ = await peer.read_request()
        peer.write(frame(http2.RST_STREAM, 0, stream, reset.to_bytes(4, "big")))
        await answer_one(peer)

    async with served(behave) as channel:
        assert (await refused(infer(channel)))[0] is code
        assert (await infer(channel)).id == "it"


async def test_a_lost_connection_fails_its_calls_and_the_next_one_connects_anew() -> None:
    async def behave(peer: Peer) -> None:
        stream, _, _ = await peer.read_request()
        if not lost:
            lost.append(stream)
        else:
            peer.write(peer.answer(stream, ANSWER(id="it")))
            await peer.reader.read()

    lost: list[int] = []
    async with served(behave) as channel:
        code, details = await refused(infer(channel))
        assert code is grpc.StatusCode.UNAVAILABLE
        assert "was lost" in details
        assert (await infer(channel)).id == "it"


async def test_nobody_there_is_said_so() -> None:
    server = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
    address = "{}:{}".format(*server.sockets[0].getsockname())
    server.close()
    await server.wait_closed()
    code, details = await refused(infer(Channel(address)))
    assert code is grpc.StatusCode.UNAVAILABLE
    assert details.startswith(f"failed to connect to {address}: ")


async def test_a_server_that_goes_away_answers_what_it_has_taken() -> None:
    async def behave(peer: Peer) -> None:
        (first, _, _), (second, _, _) = [await peer.read_request() for _ in range(2)]
        peer.write(frame(http2.GOAWAY, 0, 0, first.to_bytes(4, "big") + bytes(4)))
        peer.write(peer.answer(first, ANSWER(id="it")))
        assert await peer.reader.read() == frame(http2.SETTINGS, http2.ACK, 0)  # and then the client ends it
        assert second > first

    async with served(behave) as channel:
        answered, unseen = await asyncio.gather(infer(channel), refused(infer(channel)))
        assert answered.id == "it"
        assert unseen[0] is grpc.StatusCode.UNAVAILABLE


async def test_pings_and_settings_are_acknowledged_and_unknown_frames_passed_over() -> None:
    async def behave(peer: Peer) -> None:
        assert (await peer.read_until(http2.SETTINGS)).flags == 0
        stream, _, _ = await peer.read_request()
        peer.write(
            frame(http2.PING, 0, 0, b"12345678"), frame(200, 255, 0, b"?"), frame(http2.PING, http2.ACK, 0, b"x")
        )
        assert (await peer.read_until(http2.SETTINGS)).flags == http2.ACK
        ping = await peer.read_until(http2.PING)
        assert (ping.flags, ping.payload) == (http2.ACK, b"12345678")
        peer.write(peer.answer(stream, ANSWER(id="it")))
        await peer.reader.read()

    async with served(behave) as channel:
        assert (await infer(channel)).id == "it"


async def test_the_connections_window_is_replenished() -> None:
    large = ANSWER(raw_output_contents=[bytes(2**24)])

    async def behave(peer: Peer) -> None:
        first = await peer.read_until(http2.WINDOW_UPDATE)
        assert int.from_bytes(first.payload, "big") == 2**31 - 1 - 65_535
        stream, _, _ = await peer.read_request()
        content = large.SerializeToString()
        body = b"\0" + len(content).to_bytes(4, "big") + content
        peer.write(frame(http2.DATA, 0, stream, body[: 2**23]), frame(http2.DATA, 0, stream, body[2**23 :]))
        peer.write(frame(http2.HEADERS, END, stream, peer.headers(grpc_status="0")))
        assert int.from_bytes((await peer.read_until(http2.WINDOW_UPDATE)).payload, "big") == len(body)
        await peer.reader.read()

    async with served(behave) as channel:
        assert await infer(channel) == large


async def test_a_connection_without_stream_numbers_left_ends_when_its_calls_have() -> None:
    async def behave(peer: Peer) -> None:
        stream, _, _ = await peer.read_request()
        peer.write(peer.answer(stream, ANSWER(id=str(stream))))
        await peer.reader.read()

    async with served(behave) as channel:
        connection = await channel._connect(asyncio.get_running_loop().time() + 20)
        connection._next = 2**31 - 1
        assert (await infer(channel)).id == str(2**31 - 1)
        assert (await infer(channel)).id == "1"


@pytest.mark.parametrize(
    ("settings", "nonsense"),
    [
        (None, b"HTTP/1.1 400 Bad Request\r\n\r\n"),
        (b"", frame(http2.HEADERS, END, 1, b"\xff\xff\xff")),
        (b"", frame(http2.CONTINUATION, http2.END_HEADERS, 1)),
    ],
    ids=["HTTP/1", "headers that cannot be read", "headers that nothing began"],
)
async def test_what_is_no_http2_ends_the_connection(settings: bytes | None, nonsense: bytes) -> None:
    async def behave(peer: Peer) -> None:
        await peer.read_request()
        peer.write(nonsense)
        await peer.reader.read()

    async with served(behave, settings) as channel:
        assert (await refused(infer(channel)))[0] is grpc.StatusCode.UNAVAILABLE


class _Nowhere(asyncio.Transport):
    def write(self, data: bytes) -> None:  # type: ignore[override]
        pass

    def is_closing(self) -> bool:
        return False


ENCODER = Encoder()
ENCODER.header_table_size = 0
HEAD = bytes(ENCODER.encode([("content-type", "application/grpc")], huffman=False))
TAIL = bytes(ENCODER.encode([("grpc-status", "0"), ("x", "y" * 40)], huffman=False))
ANSWER_IN_FRAMES = [
    frame(http2.SETTINGS, 0, 0, struct.pack(">HI", 3, 100)),
    frame(http2.HEADERS, http2.END_HEADERS | http2.PADDED | http2.WITH_PRIORITY, 1, b"\3" + bytes(5) + HEAD + bytes(3)),
    frame(http2.DATA, 0, 1, b"one "),
    frame(http2.DATA, http2.PADDED, 1, b"\2two --"),
    frame(http2.DATA, 0, 1, b""),
    frame(http2.HEADERS, http2.END_STREAM, 1, TAIL[:5]),
    frame(http2.CONTINUATION, 0, 1, TAIL[5:9]),
    frame(http2.CONTINUATION, http2.END_HEADERS, 1, TAIL[9:]),
]


@given(st.lists(st.integers(0, sum(map(len, ANSWER_IN_FRAMES)))))
def test_it_does_not_matter_where_the_bytes_are_cut(cuts: list[int]) -> None:
    async def receive() -> Response:
        connection = Http2Connection()
        connection.connection_made(_Nowhere())
        _, coming = connection.request(b"", [b"body"])
        received = b"".join(ANSWER_IN_FRAMES)
        edges = [0, *sorted(cuts), len(received)]
        for start, end in itertools.pairwise(edges):
            connection.data_received(received[start:end])
        return await asyncio.wait_for(coming, 5)

    response = asyncio.run(receive())
    assert response.body == b"one two "
    assert response.headers == {"content-type": "application/grpc", "grpc-status": "0", "x": "y" * 40}
