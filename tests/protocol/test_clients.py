"""Unmodified clients of Triton against the door, with a real Triton behind it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import numpy as np
import pytest
import tritonclient.grpc.aio as grpc_aio
from tritonclient import grpc, http
from tritonclient.http import aio as http_aio
from tritonclient.utils import InferenceServerException, triton_to_np_dtype

from tests.protocol.conftest import Bare, Door, Gate
from tests.protocol.served import TYPES

# What python's backend makes of tensors is NumPy's, which has no BF16.
WIRES = [wire for wire in TYPES.values() if wire != "BF16"]


@pytest.fixture
def http_client(door: Door) -> Iterator[http.InferenceServerClient]:
    with http.InferenceServerClient(door.http, concurrency=4) as client:
        yield client


@pytest.fixture
def grpc_client(door: Door) -> Iterator[grpc.InferenceServerClient]:
    with grpc.InferenceServerClient(door.grpc) as client:
        yield client


def tensors(module: Any, given: dict[str, np.ndarray], wire: str = "FP32", **options: Any) -> list[Any]:
    made = []
    for name, array in given.items():
        tensor = module.InferInput(name, list(array.shape), wire)
        tensor.set_data_from_numpy(array, **options)
        made.append(tensor)
    return made


def operands(rows: int = 1) -> dict[str, np.ndarray]:
    return {
        "INPUT_A": np.arange(rows, dtype=np.float32).reshape(rows, 1),
        "INPUT_B": np.full((rows, 1), 0.5, np.float32),
    }


def values(wire: str) -> np.ndarray:
    dtype = triton_to_np_dtype(wire)
    return np.array([[1, 0, 1], [0, 1, 1]], dtype)


@pytest.mark.parametrize("binary", [True, False], ids=["binary", "json"])
@pytest.mark.parametrize("compression", [None, "gzip", "deflate"])
def test_http(http_client: http.InferenceServerClient, binary: bool, compression: str | None) -> None:
    result = http_client.infer(
        "add",
        tensors(http, operands(3), binary_data=binary),
        outputs=[http.InferRequestedOutput("OUTPUT_SUM", binary_data=binary)],
        request_id="mine",
        priority=1,
        timeout=5_000_000,
        parameters={"note": "x"},
        request_compression_algorithm=compression,
        response_compression_algorithm=compression,
    )
    np.testing.assert_array_equal(result.as_numpy("OUTPUT_SUM"), [[0.5], [1.5], [2.5]])
    assert result.get_response()["id"] == "mine"


@pytest.mark.parametrize("wire", WIRES)
def test_http_with_every_type(http_client: http.InferenceServerClient, wire: str) -> None:
    array = values(wire)
    result = http_client.infer("every", tensors(http, {f"X_{wire}": array}, wire))
    np.testing.assert_array_equal(result.as_numpy(f"Y_{wire}"), array)


@pytest.mark.parametrize("wire", WIRES)
def test_grpc_with_every_type(grpc_client: grpc.InferenceServerClient, wire: str) -> None:
    array = values(wire)
    result = grpc_client.infer("every", tensors(grpc, {f"X_{wire}": array}, wire))
    np.testing.assert_array_equal(result.as_numpy(f"Y_{wire}"), array)


def test_http_classes(http_client: http.InferenceServerClient) -> None:
    scores = np.array([[1, 5, 3]], np.float32)
    asked = [http.InferRequestedOutput("y", class_count=2)]
    result = http_client.infer("scores", tensors(http, {"x": scores}), outputs=asked)
    assert list(result.as_numpy("y")[0]) == [b"5.000000:1:dog", b"3.000000:2:a bird"]


async def test_http_aio(door: Door) -> None:
    async with http_aio.InferenceServerClient(door.http) as client:
        assert await client.is_server_live()
        results = await asyncio.gather(*(client.infer("add", tensors(http, operands())) for _ in range(20)))
    assert {float(result.as_numpy("OUTPUT_SUM")[0, 0]) for result in results} == {0.5}


@pytest.mark.parametrize("compression", [None, "gzip", "deflate"])
def test_grpc(grpc_client: grpc.InferenceServerClient, compression: str | None) -> None:
    result = grpc_client.infer(
        "double",
        tensors(grpc, dict(zip("AB", operands(2).values(), strict=True))),
        request_id="mine",
        model_version="1",
        priority=2,
        timeout=5_000_000,
        headers={"x-tier": "second", "x-request-id": "traced"},
        compression_algorithm=compression,
    )
    np.testing.assert_array_equal(result.as_numpy("TWICE"), [[1], [3]])
    assert result.get_response().id == "mine"


async def test_grpc_aio(door: Door) -> None:
    async with grpc_aio.InferenceServerClient(door.grpc) as client:
        assert await client.is_server_ready()
        results = await asyncio.gather(*(client.infer("add", tensors(grpc, operands())) for _ in range(20)))
    assert {float(result.as_numpy("OUTPUT_SUM")[0, 0]) for result in results} == {0.5}


def test_a_sequence_keeps_its_state(
    http_client: http.InferenceServerClient, grpc_client: grpc.InferenceServerClient
) -> None:
    for client, module, sequence in ((http_client, http, 17), (grpc_client, grpc, 18)):
        sums = []
        for turn in range(3):
            given = tensors(module, {"x": np.array([[turn + 1]], np.int32)}, "INT32")
            position = {"sequence_id": sequence, "sequence_start": turn == 0, "sequence_end": turn == 2}
            sums.append(int(client.infer("tally", given, **position).as_numpy("sum")[0, 0]))
        assert sums == [1, 3, 6]


def test_every_question_of_the_http_client_is_answered(http_client: http.InferenceServerClient) -> None:
    assert http_client.is_server_live()
    assert http_client.is_server_ready()
    assert http_client.is_model_ready("add")
    assert http_client.is_model_ready("add", "1")
    assert not http_client.is_model_ready("hidden")
    assert http_client.get_server_metadata()["version"] == "2.51.0"
    assert http_client.get_model_metadata("add")["inputs"][0]["shape"] == [-1, 1]
    assert http_client.get_model_config("add")["max_batch_size"] == 4
    assert http_client.get_inference_statistics("add")["model_stats"][0]["name"] == "add"
    named = {model["name"] for model in http_client.get_inference_statistics()["model_stats"]}
    assert named == {model["name"] for model in http_client.get_model_repository_index()}
    assert "add" in named
    assert "hidden" not in named


def test_every_question_of_the_grpc_client_is_answered(grpc_client: grpc.InferenceServerClient) -> None:
    assert grpc_client.is_server_live()
    assert grpc_client.is_server_ready()
    assert grpc_client.is_model_ready("add", "1")
    assert not grpc_client.is_model_ready("hidden")
    assert grpc_client.get_server_metadata().version == "2.51.0"
    assert list(grpc_client.get_model_metadata("add").inputs[0].shape) == [-1, 1]
    assert grpc_client.get_model_config("add").config.max_batch_size == 4
    assert [model.name for model in grpc_client.get_inference_statistics("add").model_stats] == ["add"]
    named = {model.name for model in grpc_client.get_inference_statistics().model_stats}
    assert named == {model.name for model in grpc_client.get_model_repository_index().models}
    assert "hidden" not in named


def test_the_server_is_not_managed_from_outside(
    http_client: http.InferenceServerClient, grpc_client: grpc.InferenceServerClient
) -> None:
    calls: list[Callable[[Any], Any]] = [
        lambda client: client.load_model("hidden"),
        lambda client: client.unload_model("add"),
        lambda client: client.register_system_shared_memory("r", "/r", 4),
        lambda client: client.get_system_shared_memory_status(),
        lambda client: client.register_cuda_shared_memory("r", b"", 0, 4),
        lambda client: client.update_trace_settings(settings={}),
        lambda client: client.get_log_settings(),
    ]
    for call in calls:
        for client, status in ((http_client, "403"), (grpc_client, "StatusCode.UNAVAILABLE")):
            with pytest.raises(InferenceServerException, match="not managed here") as refused:
                call(client)
            assert refused.value.status() == status
    assert http_client.is_model_ready("add")


def test_the_models_failure_is_told_without_what_is_inside(grpc_client: grpc.InferenceServerClient) -> None:
    with pytest.raises(InferenceServerException) as failed:
        grpc_client.infer("breaks", tensors(grpc, {"x": np.zeros(1, np.float32)}))
    assert failed.value.status() == "StatusCode.INTERNAL"
    assert failed.value.message() == (
        "Failed to process the request(s) for model 'breaks_0_0', message: ValueError: "
        "cannot open …, …, nor connect to …"
    )


def test_a_deadline_is_kept_while_the_model_works(
    http_client: http.InferenceServerClient,
    grpc_client: grpc.InferenceServerClient,
    gate: Gate,
    eventually: Callable[..., None],
) -> None:
    x = {"x": np.zeros((1, 1), np.float32)}
    with ThreadPoolExecutor(1) as other:
        first = other.submit(grpc_client.infer, "gate", tensors(grpc, x))
        eventually(gate.entered)
        with pytest.raises(InferenceServerException) as late:
            grpc_client.infer("gate", tensors(grpc, x), client_timeout=0.2)
        assert late.value.status() == "StatusCode.DEADLINE_EXCEEDED"
        with pytest.raises(InferenceServerException) as late:
            http_client.infer("gate", tensors(http, x), headers={"X-Request-Timeout-Seconds": "0.2"})
        assert late.value.status() == "504"
        assert not first.done()
        gate.open()
        assert first.result().as_numpy("y") is not None


async def queued(client: grpc_aio.InferenceServerClient) -> None:
    """Wait until Triton has taken in what was sent: it tells no queue's length, but takes requests in their order."""
    for _ in range(20):
        assert await client.is_server_ready()


async def test_a_full_queue_and_a_timeout_have_tritons_codes(door: Door, gate: Gate) -> None:
    given = tensors(grpc, {"x": np.zeros((1, 1), np.float32)})
    async with grpc_aio.InferenceServerClient(door.grpc) as client, httpx.AsyncClient() as web:
        first = asyncio.create_task(client.infer("gate", given))
        while not gate.entered():
            await asyncio.sleep(0.01)
        short = asyncio.create_task(client.infer("gate", given, timeout=100_000))
        long = asyncio.create_task(client.infer("gate", given))
        await queued(client)
        with pytest.raises(InferenceServerException, match="Exceeds maximum queue size") as full:
            await client.infer("gate", given)
        assert full.value.status() == "StatusCode.UNAVAILABLE"
        tensor = {"name": "x", "datatype": "FP32", "shape": [1, 1], "data": [0]}
        answer = await web.post(f"http://{door.http}/v2/models/gate/infer", json={"inputs": [tensor]})
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
        assert "Exceeds maximum queue size" in answer.json()["error"]
        with pytest.raises(InferenceServerException, match="Request timeout expired") as late:
            await short
        gate.open()
        await asyncio.gather(first, long)
        assert late.value.status() == "StatusCode.UNAVAILABLE"


@pytest.mark.parametrize("protocol", ["http", "grpc"])
async def test_the_queued_inference_of_a_client_that_hangs_up_is_cancelled_in_triton(
    door: Door, gate: Gate, bare: Bare, protocol: str
) -> None:
    given = tensors(grpc, {"x": np.zeros((1, 1), np.float32)})
    tensor = {"name": "x", "datatype": "FP32", "shape": [1, 1], "data": [0]}
    async with grpc_aio.InferenceServerClient(door.grpc) as client, httpx.AsyncClient() as web:
        first = asyncio.create_task(client.infer("gate", given))
        while not gate.entered():
            await asyncio.sleep(0.01)
        before, cancelled = await inferences(client), bare.cancelled("gate")
        asked = (
            web.post(f"http://{door.http}/v2/models/gate/infer", json={"inputs": [tensor]})
            if protocol == "http"
            else client.infer("gate", given)
        )
        waiting = asyncio.ensure_future(asked)
        await asyncio.wait([waiting], timeout=0.2)
        await queued(client)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        await queued(client)
        gate.open()
        await first
        await client.infer("gate", given)
        assert await inferences(client) - before == 2
    assert bare.cancelled("gate") > cancelled


async def inferences(client: grpc_aio.InferenceServerClient) -> int:
    count: int = (await client.get_inference_statistics("gate")).model_stats[0].inference_count
    return count
