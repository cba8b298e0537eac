from __future__ import annotations

import asyncio
import math
import time
from typing import Any

import grpc
import pytest
from tritonclient.grpc import service_pb2

from serve_app.triton import connection as module
from serve_app.triton.channel import CallError
from serve_app.triton.connection import SILENCE_S, Connection

Code = grpc.StatusCode


async def test_it_is_known_since_when_a_lost_servers_successor_is_there() -> None:
    """Nothing is connected to: a channel does so for its first call."""
    asked, may_answer = asyncio.Event(), asyncio.Event()

    async def locate(lost: str | None) -> str:
        if lost is not None:
            asked.set()
            await may_answer.wait()
        return "127.0.0.1:9"

    connection = Connection(locate)
    first = await connection.channel(None, None)
    earlier = connection.disturbed()
    assert 0 < earlier <= time.time()
    assert await connection.channel(None, None) is first
    assert connection.disturbed() == earlier

    successor = asyncio.create_task(connection.channel(first, None))
    await asked.wait()
    assert connection.disturbed() == math.inf
    may_answer.set()
    await successor
    assert earlier <= connection.disturbed() <= time.time()


class Clock:
    """Stands for the module `time`."""

    def __init__(self) -> None:
        self.now = 1000.0

    def time(self) -> float:
        return self.now

    def monotonic(self) -> float:
        return self.now


class Server:
    """Stands for a channel: every call takes so long, and ends so."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.takes = 0.01
        self.refuses: Code | None = None
        self.is_lost = False

    async def call(self, method: str, request: Any, answer: type[Any], timeout: float) -> Any:
        self._clock.now += self.takes
        if self.refuses is not None:
            raise CallError(self.refuses, "Request timeout expired")
        return answer()


async def asked(connection: Connection) -> None:
    request, answer = service_pb2.ServerReadyRequest(), service_pb2.ServerReadyResponse
    try:
        await connection.call("ServerReady", request, answer, 10.0)
    except CallError:
        return


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(module, "time", clock)
    return clock


@pytest.fixture
def server(clock: Clock) -> Server:
    return Server(clock)


@pytest.fixture
def connection(server: Server) -> Connection:
    async def locate(lost: str | None) -> str:
        raise AssertionError("the server is not lost")

    connection = Connection(locate)
    connection.in_use = server  # type: ignore[assignment]
    return connection


async def test_of_a_server_that_answers_nothing_for_a_while_nothing_is_learned(
    connection: Connection, server: Server, clock: Clock
) -> None:
    server.takes, server.refuses = SILENCE_S / 2, Code.DEADLINE_EXCEEDED
    for _ in range(3):
        await asked(connection)
    assert connection.disturbed() == clock.now
    server.refuses = None
    await asked(connection)
    assert connection.disturbed() == -math.inf


@pytest.mark.parametrize("refuses", [None, Code.UNAVAILABLE, Code.INTERNAL])
async def test_a_server_that_answers_late_or_refuses_is_none_of_those(
    refuses: Code | None, connection: Connection, server: Server
) -> None:
    server.takes, server.refuses = 3 * SILENCE_S, refuses
    await asked(connection)
    assert connection.disturbed() == -math.inf


async def test_a_server_that_is_asked_nothing_is_none_either(connection: Connection, clock: Clock) -> None:
    await asked(connection)
    clock.now += 3 * SILENCE_S
    assert connection.disturbed() == -math.inf
