"""gRPC's own clients at the server, over a socket."""

from __future__ import annotations

import asyncio
import logging
import socket
import threading
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import grpc
import pytest

from serve_app.grpc_server.server import GrpcServer
from tests.http2.peer import Service

Code = grpc.StatusCode
LIMIT = 8 * 2**20
UNLIMITED = (("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1))


@dataclass
class Serving:
    """`address` is HOST:PORT."""

    server: GrpcServer
    service: Service
    address: str

    def channel(self, **options: Any) -> Any:
        return grpc.aio.insecure_channel(self.address, options=UNLIMITED, **options)


@pytest.fixture
async def serving(caplog: pytest.LogCaptureFixture) -> AsyncIterator[Serving]:
    service = Service()
    server = GrpcServer(service.methods(), limit=LIMIT, within=8)
    listening = socket.create_server(("127.0.0.1", 0))
    address = "{}:{}".format(*listening.getsockname())
    await server.start(listening)
    yield Serving(server, service, address)
    await server.stop(0)
    assert not server.tasks
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


@pytest.fixture
async def channel(serving: Serving) -> AsyncIterator[Any]:
    async with serving.channel() as channel:
        yield channel


async def refused(call: Any) -> grpc.aio.AioRpcError:
    with pytest.raises(grpc.aio.AioRpcError) as error:
        await call
    return error.value


@pytest.mark.parametrize("size", [0, 1, 16_000, 65_530, 65_531, 70_000, 1_000_000, LIMIT])
async def test_a_message_of_any_size_comes_back(channel: Any, size: int) -> None:
    echo = channel.unary_unary("/test/Echo")
    assert await echo(b"x" * size, timeout=20) == b"x" * size


async def test_a_message_beyond_the_limit_is_refused(channel: Any) -> None:
    echo = channel.unary_unary("/test/Echo")
    error = await refused(echo(bytes(LIMIT + 1), timeout=20))
    assert error.code() is Code.RESOURCE_EXHAUSTED
    assert "at most 8,388,608 are taken" in error.details()
    assert await echo(b"on", timeout=20) == b"on"


@pytest.mark.parametrize("packed", [grpc.Compression.Gzip, grpc.Compression.Deflate, grpc.Compression.NoCompression])
async def test_messages_may_be_packed(channel: Any, packed: grpc.Compression) -> None:
    message = b"hello" * 50_000
    assert await channel.unary_unary("/test/Echo")(message, compression=packed, timeout=20) == message
    chat = channel.stream_stream("/test/Chat")(iter([message, b"x"]), compression=packed, timeout=20)
    assert [answer async for answer in chat] == [message, b"x"]


async def test_a_bomb_is_refused(channel: Any) -> None:
    call = channel.unary_unary("/test/Echo")(bytes(8 * LIMIT), compression=grpc.Compression.Gzip, timeout=20)
    assert (await refused(call)).code() is Code.RESOURCE_EXHAUSTED


async def test_metadata_goes_both_ways(serving: Serving, channel: Any) -> None:
    metadata = (("x-tier", "bulk"), ("x-tier", "first"), ("blob-bin", b"\0\1"))
    call = channel.unary_unary("/test/Echo")(b"x", metadata=metadata, timeout=20)
    await call
    assert dict(await call.trailing_metadata())["x-request-id"] == "mine"
    given = [(name, value) for name, value in serving.service.calls[0].metadata if name != "x-tier"]
    assert [value for name, value in serving.service.calls[0].metadata if name == "x-tier"] == ["bulk", "first"]
    assert dict(given)["blob-bin"].rstrip("=") == "AAE"


async def test_metadata_that_differs_from_call_to_call_stays_with_its_call(serving: Serving, channel: Any) -> None:
    """Whole blocks of headers are remembered."""
    echo = channel.unary_unary("/test/Echo")
    for turn in range(200):
        await echo(b"x", metadata=(("x-request-id", str(turn // 2)),), timeout=20)
    given = [dict(call.metadata)["x-request-id"] for call in serving.service.calls]
    assert given == [str(turn // 2) for turn in range(200)]


async def test_a_deadline_is_the_calls_time(serving: Serving, channel: Any) -> None:
    await channel.unary_unary("/test/Echo")(b"x", timeout=5)
    left = serving.service.calls[0].time_remaining()
    assert left is not None
    assert 0 < left < 6  # clients round up
    error = await refused(channel.unary_unary("/test/Hold")(b"x", timeout=0.1))
    assert error.code() is Code.DEADLINE_EXCEEDED
    while not serving.service.cancelled:
        await asyncio.sleep(0.001)


@pytest.mark.parametrize("kind", ["unary", "stream"])
async def test_a_cancelled_call_is_cancelled_here_and_others_go_on(serving: Serving, channel: Any, kind: str) -> None:
    service = serving.service
    if kind == "unary":
        call = channel.unary_unary("/test/Hold")(b"x", timeout=20)
    else:
        call = channel.stream_stream("/test/Burst")(timeout=20)
    while not service.asked and not service.written:
        await asyncio.sleep(0.001)
    call.cancel()
    while not service.cancelled:
        await asyncio.sleep(0.001)
    assert await channel.unary_unary("/test/Echo")(b"on", timeout=20) == b"on"


async def test_a_client_that_closes_its_channel_cancels_its_calls(serving: Serving) -> None:
    async with serving.channel() as channel:
        calls = [asyncio.ensure_future(channel.unary_unary("/test/Hold")(b"x", timeout=20)) for _ in range(5)]
        while len(serving.service.asked) < 5:
            await asyncio.sleep(0.001)
    await asyncio.gather(*calls, return_exceptions=True)
    while serving.service.cancelled < 5:
        await asyncio.sleep(0.001)


async def test_many_calls_at_once_each_have_their_own_answer(channel: Any) -> None:
    echo = channel.unary_unary("/test/Echo")
    messages = [str(index).encode() * (1 + index * 97 % 5000) for index in range(1500)]
    assert await asyncio.gather(*(echo(message, timeout=30) for message in messages)) == messages


async def test_large_messages_both_ways_at_once(channel: Any) -> None:
    echo = channel.unary_unary("/test/Echo")
    messages = [bytes([index]) * (2**20 + index) for index in range(20)]
    assert await asyncio.gather(*(echo(message, timeout=30) for message in messages)) == messages


async def test_a_stream_both_ways(channel: Any) -> None:
    call = channel.stream_stream("/test/Chat")(timeout=20)
    for size in (0, 1, 200_000, 3):
        await call.write(b"x" * size)
        assert len(await call.read()) == size
    await call.done_writing()
    assert await call.read() is grpc.aio.EOF
    assert await call.code() is Code.OK


async def test_a_stream_of_many_requests_at_once(channel: Any) -> None:
    messages = [bytes(index % 3000) for index in range(2000)]
    call = channel.stream_stream("/test/Chat")(iter(messages), timeout=30)
    assert [answer async for answer in call] == messages


async def test_a_method_that_is_not_there(channel: Any) -> None:
    error = await refused(channel.unary_unary("/test/Nowhere")(b"x", timeout=20))
    assert (error.code(), "no such method" in error.details()) == (Code.UNIMPLEMENTED, True)


async def test_metadata_that_is_too_large_fails_its_call_alone(channel: Any) -> None:
    echo = channel.unary_unary("/test/Echo")
    assert await echo(b"x", timeout=20) == b"x"
    error = await refused(echo(b"x", metadata=(("x-large", "x" * 20_000),), timeout=20))
    assert error.code() is Code.RESOURCE_EXHAUSTED
    assert await echo(b"on", timeout=20) == b"on"


async def test_a_server_that_stops_answers_what_it_has_and_no_more(serving: Serving, channel: Any) -> None:
    held = asyncio.ensure_future(channel.unary_unary("/test/Hold")(b"x", timeout=20))
    while not serving.service.asked:
        await asyncio.sleep(0.001)
    stopping = asyncio.create_task(serving.server.stop(20))

    async def until_refused() -> None:
        while True:  # what is on its way when the client learns of it is answered
            await channel.unary_unary("/test/Echo")(b"x", timeout=20)

    assert (await refused(until_refused())).code() is Code.UNAVAILABLE
    assert not stopping.done()
    serving.service.is_released.set()
    assert await held == b"x"
    await stopping


async def test_a_server_that_stops_does_not_wait_longer_than_its_grace(serving: Serving, channel: Any) -> None:
    held = channel.unary_unary("/test/Hold")(b"x", timeout=20)
    waiting = asyncio.ensure_future(refused(held))
    while not serving.service.asked:
        await asyncio.sleep(0.001)
    await serving.server.stop(0.05)
    assert (await waiting).code() is Code.UNAVAILABLE
    assert serving.service.cancelled == 1


@pytest.fixture
def threaded() -> Iterator[str]:
    """A server in a thread of its own, for clients that block."""
    listening = socket.create_server(("127.0.0.1", 0))
    started, ended = threading.Event(), threading.Event()

    async def serve() -> None:
        server = GrpcServer(Service().methods(), limit=LIMIT, within=8)
        await server.start(listening)
        started.set()
        await asyncio.to_thread(ended.wait)
        await server.stop(0)

    thread = threading.Thread(target=asyncio.run, args=[serve()])
    thread.start()
    assert started.wait(20)
    yield "{}:{}".format(*listening.getsockname())
    ended.set()
    thread.join(20)


def test_clients_that_block(threaded: str) -> None:
    with grpc.insecure_channel(threaded, options=UNLIMITED) as channel:
        echo = channel.unary_unary("/test/Echo")
        with ThreadPoolExecutor(8) as pool:
            messages = [bytes([index]) * (index * 4001) for index in range(200)]
            assert [*pool.map(lambda message: echo(message, timeout=30), messages)] == messages
        chat = channel.stream_stream("/test/Chat")(iter(messages), timeout=30)
        assert [*chat] == messages
        with pytest.raises(grpc.RpcError) as error:
            channel.unary_unary("/test/Hold")(b"x", timeout=0.05)
        assert error.value.code() is Code.DEADLINE_EXCEEDED
