"""The way to a Triton that goes away, and comes back elsewhere."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, contextmanager
from typing import Any

import grpc
import pytest
from tritonclient.grpc import service_pb2 as pb
from tritonclient.grpc import service_pb2_grpc

from serve_app.problem import Problem
from serve_app.protocol.backend import TritonBackend
from serve_app.protocol.refusals import Code, Refusal
from serve_app.triton.breaker import Breaker
from serve_app.triton.breakers import Breakers
from serve_app.triton.connection import Connection
from serve_app.triton.error import TritonError
from tests.protocol.codec import add_message

REQUEST = add_message()


class Stub(service_pb2_grpc.GRPCInferenceServiceServicer):
    """A server that fails as it is told, or answers with its own name."""

    def __init__(self, name: str, failure: tuple[Code, str] | None = None):
        self.name = name
        self.failure = failure
        self.asked = 0

    async def ModelInfer(self, request: Any, context: Any) -> pb.ModelInferResponse:  # noqa: N802
        self.asked += 1
        if self.failure is not None:
            await context.abort(*self.failure)
        return pb.ModelInferResponse(id=self.name)

    async def ModelStreamInfer(self, requests: Any, context: Any) -> AsyncIterator[pb.ModelStreamInferResponse]:  # noqa: N802
        async for _ in requests:
            yield pb.ModelStreamInferResponse(infer_response=await self.ModelInfer(None, context))


class Places:
    """Where servers are: each time one is lost, the next in the list."""

    def __init__(self, addresses: list[str]):
        self.addresses = addresses
        self.lost: list[str | None] = []

    async def locate(self, lost: str | None) -> str:
        self.lost.append(lost)
        if len(self.lost) > len(self.addresses):
            raise TritonError("there is none")
        return self.addresses[len(self.lost) - 1]


@pytest.fixture
async def serve() -> AsyncIterator[Callable[..., Any]]:
    """Starts stubs, and answers the places where they are and a backend that finds them there."""
    async with AsyncExitStack() as stack:

        async def serve(*stubs: Stub) -> tuple[Places, TritonBackend]:
            addresses = []
            for stub in stubs:
                server = grpc.aio.server()
                service_pb2_grpc.add_GRPCInferenceServiceServicer_to_server(stub, server)
                addresses.append(f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}")
                await server.start()
                stack.push_async_callback(server.stop, 0)
            places = Places(addresses)
            connection = Connection(places.locate)

            async def close() -> None:
                if connection.in_use is not None:
                    connection.in_use.close()

            stack.push_async_callback(close)
            return places, TritonBackend(connection)

        yield serve


STOPPING = (Code.UNAVAILABLE, "Server is stopping, scheduler for model has stopped accepting new inference requests")
GONE = (Code.UNAVAILABLE, "Socket closed")


@pytest.mark.parametrize("failure", [STOPPING, GONE], ids=["stopping", "gone"])
async def test_a_known_server_that_is_lost_is_looked_for(serve: Callable[..., Any], failure: tuple[Code, str]) -> None:
    first = Stub("first")
    places, backend = await serve(first, Stub("second"))
    await backend.infer(REQUEST, 5)
    first.failure = failure
    assert (await backend.infer(REQUEST, 5)).id == "second"
    assert places.lost == [None, places.addresses[0]]


async def test_a_request_of_a_sequence_is_not_sent_twice(serve: Callable[..., Any]) -> None:
    first, second = Stub("first"), Stub("second")
    _, backend = await serve(first, second)
    await backend.infer(REQUEST, 5)
    first.failure = GONE
    with pytest.raises(Refusal) as refused:
        await backend.infer(REQUEST, 5, repeatable=False)
    assert (refused.value.code, second.asked) == (Code.UNAVAILABLE, 0)
    assert (await backend.infer(REQUEST, 5)).id == "second"


@pytest.mark.parametrize(
    ("failure", "code", "says"),
    [
        ((Code.UNAVAILABLE, "Exceeds maximum queue size"), Code.UNAVAILABLE, "Exceeds maximum queue size"),
        ((Code.UNAVAILABLE, "Request timeout expired"), Code.UNAVAILABLE, "Request timeout expired"),
        ((Code.INVALID_ARGUMENT, "no such /srv/a/b"), Code.INVALID_ARGUMENT, "no such …"),
        ((Code.DEADLINE_EXCEEDED, "x"), Code.DEADLINE_EXCEEDED, "the deadline passed"),
    ],
)
async def test_what_triton_itself_refuses_is_not_tried_again(
    serve: Callable[..., Any], failure: tuple[Code, str], code: Code, says: str
) -> None:
    first, second = Stub("first"), Stub("second")
    _, backend = await serve(first, second)
    await backend.infer(REQUEST, 5)
    first.failure = failure
    with pytest.raises(Refusal, match=says) as refused:
        await backend.infer(REQUEST, 5)
    assert (refused.value.code, second.asked) == (code, 0)


async def test_where_there_is_no_server_none_is_waited_for(serve: Callable[..., Any]) -> None:
    _, backend = await serve()
    with pytest.raises(Refusal, match="not available just now") as refused:
        await backend.infer(REQUEST, 5)
    assert refused.value.code is Code.UNAVAILABLE


async def test_a_stream_begins_anew_only_while_nothing_came_of_it(serve: Callable[..., Any]) -> None:
    first = Stub("first")
    _, backend = await serve(first, Stub("second"))
    await backend.infer(REQUEST, 5)
    first.failure = GONE
    got = [answer.infer_response.id async for answer in backend.stream(REQUEST, 5)]
    assert got == ["second"]


async def test_each_request_is_outstanding_for_its_model_until_it_is_answered(serve: Callable[..., Any]) -> None:
    events: list[str] = []

    @contextmanager
    def outstanding(model: str) -> Iterator[None]:
        events.append(f"{model} begins")
        yield
        events.append(f"{model} ends")

    _, plain = await serve(Stub("first"))
    backend = TritonBackend(plain._connection, outstanding)
    await backend.infer(REQUEST, 5)
    async for _ in backend.stream(REQUEST, 5):
        events.append("an answer")
    assert events == ["add begins", "add ends", "add begins", "an answer", "add ends"]


@pytest.mark.parametrize("streamed", [False, True], ids=["one answer", "a stream"])
async def test_a_model_that_does_not_answer_is_not_asked_again_at_once(
    serve: Callable[..., Any], streamed: bool
) -> None:
    silent = Stub("first", (Code.DEADLINE_EXCEEDED, "x"))
    _, plain = await serve(silent)
    breakers = Breakers({"add": Breaker(2, open_for=60, patience=0, tell=lambda _: None)})
    backend = TritonBackend(plain._connection, breakers=breakers)

    async def ask() -> None:
        if not streamed:
            await backend.infer(REQUEST, 5)
        async for _ in backend.stream(REQUEST, 5):
            pass

    for _ in range(2):
        with pytest.raises(Refusal, match="the deadline passed"):
            await ask()
    with pytest.raises(Problem) as refused:
        await ask()
    assert (refused.value.status, refused.value.code, silent.asked) == (503, "model_unavailable", 2)
    assert refused.value.retry_after == pytest.approx(60, abs=10)


async def test_a_stream_that_answers_keeps_its_model_in_use(serve: Callable[..., Any]) -> None:
    _, plain = await serve(Stub("first"))
    breakers = Breakers({"add": Breaker(1, open_for=60, patience=0, tell=lambda _: None)})
    backend = TritonBackend(plain._connection, breakers=breakers)
    for _ in range(3):
        stream: Any = backend.stream(REQUEST, 5)
        assert (await anext(stream)).infer_response.id == "first"
        await stream.aclose()
