"""The gRPC port: what the ingress's limits, deadlines and crashes are there."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from typing import Any

import grpc
import pytest
from tritonclient.grpc import service_pb2 as pb
from tritonclient.grpc import service_pb2_grpc

from serve_app.admission import AdmissionLimits
from serve_app.problem import Problem
from tests.http.conftest import Listen, Listening
from tests.protocol.asgi import Behind
from tests.protocol.codec import add_message

Code = grpc.StatusCode


@pytest.fixture
async def stub(listen: Listen) -> AsyncIterator[tuple[Listening, Any]]:
    """An ingress that works on one request while another may wait, and its methods."""
    listening = await listen(AdmissionLimits(1, 1, 429, 1))
    async with grpc.aio.insecure_channel(listening.grpc) as channel:
        yield listening, service_pb2_grpc.GRPCInferenceServiceStub(channel)


async def refused(call: Any) -> grpc.aio.AioRpcError:
    with pytest.raises(grpc.aio.AioRpcError) as error:
        await call
    return error.value


async def held(stub: Any, listening: Listening, count: int) -> list[Any]:
    """So many requests that nothing answers yet."""
    calls = [stub.ModelInfer(add_message(), timeout=20) for _ in range(count)]
    waiting = [asyncio.ensure_future(call) for call in calls]
    while listening.admission.requests < count:
        await asyncio.sleep(0.001)
    return [calls, waiting]


async def test_a_full_ingress_refuses_requests_and_still_answers_questions(
    stub: tuple[Listening, Any], behind: Behind
) -> None:
    listening, methods = stub
    behind.hold = True
    calls, waiting = await held(methods, listening, 2)
    error = await refused(methods.ModelInfer(add_message(), timeout=10))
    assert (error.code(), error.details()) == (Code.RESOURCE_EXHAUSTED, "too many requests wait; retry in 1 s")
    assert dict(error.trailing_metadata() or ())["retry-after"] == "1"
    (told,) = [answer async for answer in methods.ModelStreamInfer(iter([add_message(id="7")]), timeout=10)]
    assert (told.error_message, told.infer_response.id) == ("too many requests wait; retry in 1 s", "7")
    assert (await methods.ServerLive(pb.ServerLiveRequest(), timeout=10)).live
    assert (await methods.ServerMetadata(pb.ServerMetadataRequest(), timeout=10)).version == "2.51.0"
    assert len(behind.requests) == 1
    for call in calls:
        call.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    behind.hold = False
    while listening.admission.requests:
        await asyncio.sleep(0.001)
    assert (await methods.ModelInfer(add_message(), timeout=10)).model_name == "add"


async def test_a_model_that_is_not_asked_is_unavailable_and_the_answer_says_when_to_come_back(
    stub: tuple[Listening, Any], behind: Behind
) -> None:
    _, methods = stub
    behind.answer = Problem(503, "model_unavailable", "add does not answer just now; retry in 2 s", retry_after=1.5)
    error = await refused(methods.ModelInfer(add_message(), timeout=10))
    assert (error.code(), error.details()) == (Code.UNAVAILABLE, "add does not answer just now; retry in 2 s")
    assert dict(error.trailing_metadata() or ())["retry-after"] == "2"


async def test_a_request_that_waits_too_long_for_its_turn_has_missed_its_deadline(
    stub: tuple[Listening, Any], behind: Behind
) -> None:
    listening, methods = stub
    behind.hold = True
    calls, waiting = await held(methods, listening, 1)
    metadata = (("x-request-timeout-seconds", "0.3"),)
    error = await refused(methods.ModelInfer(add_message(), timeout=10, metadata=metadata))
    assert error.code() is Code.DEADLINE_EXCEEDED
    (told,) = [
        answer async for answer in methods.ModelStreamInfer(iter([add_message()]), timeout=10, metadata=metadata)
    ]
    assert "the deadline passed" in told.error_message
    assert len(behind.requests) == 1
    calls[0].cancel()
    await asyncio.gather(*waiting, return_exceptions=True)


async def test_a_client_that_gives_up_cancels_its_inference(stub: tuple[Listening, Any], behind: Behind) -> None:
    listening, methods = stub
    behind.hold = True
    calls, waiting = await held(methods, listening, 1)
    await behind.asked.wait()
    calls[0].cancel()
    await asyncio.wait_for(behind.cancelled.wait(), 10)
    await asyncio.gather(*waiting, return_exceptions=True)


async def test_a_crash_shows_nothing_and_its_cause_is_in_the_log(
    stub: tuple[Listening, Any], behind: Behind, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.getLogger("ray.serve"), "propagate", True)
    behind.answer = RuntimeError("secret")
    error = await refused(stub[1].ModelInfer(add_message(), timeout=10, metadata=(("x-request-id", "mine"),)))
    assert error.code() is Code.INTERNAL
    assert error.details() == "the service failed; its log has the cause under request mine"
    assert dict(error.trailing_metadata())["x-request-id"] == "mine"
    assert "request mine failed" in caplog.text
    assert "RuntimeError: secret" in caplog.text


async def test_a_header_that_comes_twice_is_refused(stub: tuple[Listening, Any]) -> None:
    metadata = (("x-tier", "bulk"), ("x-tier", "bulk"))
    error = await refused(stub[1].ServerLive(pb.ServerLiveRequest(), timeout=10, metadata=metadata))
    assert (error.code(), error.details()) == (Code.INVALID_ARGUMENT, "the header x-tier comes twice; send it once")
