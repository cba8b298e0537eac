"""Streams of requests over gRPC: unmodified clients against the door, with a real Triton behind it."""

from __future__ import annotations

import asyncio
import queue
from collections.abc import AsyncIterator, Iterator
from typing import Any

import grpc as plain
import numpy as np
import pytest
from tritonclient import grpc
from tritonclient.grpc import aio, service_pb2, service_pb2_grpc

from tests.protocol.codec import add_message, fp32
from tests.protocol.conftest import Bare, Door, Gate

Request = service_pb2.ModelInferRequest


def repeat(times: int, name: str = "r", **parameters: bool) -> Request:
    return Request(
        model_name="repeat",
        id=name,
        inputs=[{"name": "times", "datatype": "INT32", "shape": [1]}],
        raw_input_contents=[np.array([times], np.int32).tobytes()],
        parameters={key: service_pb2.InferParameter(bool_param=value) for key, value in parameters.items()},
    )


def gated(name: str) -> Request:
    return Request(
        model_name="gate",
        id=name,
        inputs=[{"name": "x", "datatype": "FP32", "shape": [1, 1]}],
        raw_input_contents=[fp32(1)],
    )


def answers(address: str, *requests: Request) -> list[Any]:
    """All that comes back on one stream."""
    with plain.insecure_channel(address) as channel:
        stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
        return list(stub.ModelStreamInfer(iter(requests), timeout=20))


@pytest.mark.parametrize(
    "requests",
    [
        [add_message(id=str(index)) for index in range(5)],
        [repeat(3)],
        [repeat(0)],
        [repeat(2, triton_enable_empty_final_response=True)],
        [repeat(0, triton_enable_empty_final_response=True)],
        [add_message(id="a", model_name="nowhere")],
    ],
    ids=["one answer each", "several answers", "none", "several and an end", "an end alone", "an error"],
)
def test_a_stream_has_tritons_answers(bare: Bare, door: Door, requests: list[Request]) -> None:
    assert answers(door.grpc, *requests) == answers(bare.grpc, *requests)


def test_requests_that_would_end_triton_on_one_stream_are_answered(bare: Bare, door: Door) -> None:
    got = answers(door.grpc, repeat(2), add_message(id="a"), repeat(1), add_message(id="b", model_name="nowhere"))
    told = [answer.infer_response.id for answer in got]
    assert sorted(told) == ["a", "b", "r", "r", "r"]
    assert told.index("a") < told.index("b")
    assert bare.server.alive()


def test_a_refused_request_is_told_in_its_place_and_the_stream_goes_on(door: Door) -> None:
    short = add_message(id="short", raw_input_contents=[b"abc", fp32(1)])
    got = answers(door.grpc, add_message(id="a"), short, add_message(id="b"))
    assert [answer.infer_response.id for answer in got] == ["a", "short", "b"]
    assert [bool(answer.error_message) for answer in got] == [False, True, False]
    assert "Expected 4, got 3" in got[1].error_message


def test_a_models_failure_is_told_without_what_is_inside(door: Door) -> None:
    broken = Request(
        model_name="breaks",
        id="b",
        inputs=[{"name": "x", "datatype": "FP32", "shape": [1]}],
        raw_input_contents=[fp32(1)],
    )
    (answer,) = answers(door.grpc, broken)
    assert answer.error_message.endswith("cannot open …, …, nor connect to …")


def test_a_sequence_may_be_sent_without_waiting(door: Door) -> None:
    requests = []
    for turn in range(8):
        request = Request(
            model_name="tally",
            inputs=[{"name": "x", "datatype": "INT32", "shape": [1, 1]}],
            raw_input_contents=[np.array([turn], np.int32).tobytes()],
        )
        request.parameters["sequence_id"].int64_param = 31
        request.parameters["sequence_start"].bool_param = turn == 0
        request.parameters["sequence_end"].bool_param = turn == 7
        requests.append(request)
    got = [answer.infer_response.raw_output_contents[0] for answer in answers(door.grpc, *requests)]
    assert [int(np.frombuffer(raw, np.int32)[0]) for raw in got] == [0, 1, 3, 6, 10, 15, 21, 28]


@pytest.fixture
def client(door: Door) -> Iterator[grpc.InferenceServerClient]:
    with grpc.InferenceServerClient(door.grpc) as client:
        yield client


def test_tritonclient_streams(client: grpc.InferenceServerClient) -> None:
    results: queue.Queue[Any] = queue.Queue()
    client.start_stream(lambda result, error: results.put((result, error)))
    times = grpc.InferInput("times", [1], "INT32").set_data_from_numpy(np.array([3], np.int32))
    client.async_stream_infer("repeat", [times], request_id="r", enable_empty_final_response=True)
    got = [results.get(timeout=10) for _ in range(4)]
    client.stop_stream()
    assert [error for _, error in got] == [None] * 4
    assert [int(result.as_numpy("turn")[0]) for result, _ in got[:3]] == [0, 1, 2]
    assert got[3][0].get_response().parameters["triton_final_response"].bool_param


async def test_tritonclient_aio_streams(door: Door) -> None:
    async def requests() -> AsyncIterator[dict[str, Any]]:
        times = grpc.InferInput("times", [1], "INT32").set_data_from_numpy(np.array([2], np.int32))
        yield {"model_name": "repeat", "inputs": [times]}

    async with aio.InferenceServerClient(door.grpc) as client:
        got = [int(result.as_numpy("turn")[0]) async for result, error in client.stream_infer(requests())]
    assert got == [0, 1]


async def test_a_client_that_leaves_ends_what_its_stream_asked_for(door: Door, gate: Gate) -> None:
    async with plain.aio.insecure_channel(door.grpc) as channel:
        stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
        ask = service_pb2.ModelStatisticsRequest(name="gate")
        before = (await stub.ModelStatistics(ask)).model_stats[0].inference_count
        call = stub.ModelStreamInfer()
        await call.write(gated("first"))
        while not gate.entered():
            await asyncio.sleep(0.01)
        await call.write(gated("second"))
        await asyncio.sleep(0.1)
        call.cancel()
        await asyncio.sleep(0.1)
        gate.open()
        await stub.ModelInfer(gated("third"))
        after = (await stub.ModelStatistics(ask)).model_stats[0].inference_count
    assert after - before == 2


async def test_a_stream_that_metadata_makes_unfit_is_refused_whole(door: Door) -> None:
    async with plain.aio.insecure_channel(door.grpc) as channel:
        stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
        call = stub.ModelStreamInfer(metadata=(("x-tier", "nobody"),))
        with pytest.raises(plain.aio.AioRpcError, match="X-Tier is not a tier") as refused:
            await call.read()
    assert refused.value.code() is plain.StatusCode.INVALID_ARGUMENT


@pytest.mark.parametrize("compression", [plain.Compression.NoCompression, plain.Compression.Gzip])
async def test_a_message_beyond_the_limit_is_refused_and_the_door_stays(door: Door, compression: Any) -> None:
    huge = add_message(raw_input_contents=[bytes(8 * 2**20), b""])
    async with plain.aio.insecure_channel(door.grpc) as channel:
        stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
        with pytest.raises(plain.aio.AioRpcError) as refused:
            await stub.ModelInfer(huge, compression=compression)
        assert refused.value.code() is plain.StatusCode.RESOURCE_EXHAUSTED
        assert (await stub.ModelInfer(add_message())).id == "7"


async def test_bytes_that_are_no_message_are_refused(door: Door) -> None:
    async with plain.aio.insecure_channel(door.grpc) as channel:
        for method in ("ModelInfer", "ModelMetadata"):
            call = channel.unary_unary(f"/inference.GRPCInferenceService/{method}")
            with pytest.raises(plain.aio.AioRpcError, match="cannot be read") as refused:
                await call(b"\xff\xff")
            assert refused.value.code() is plain.StatusCode.INVALID_ARGUMENT
