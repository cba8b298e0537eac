"""Models as stages call them, against a real Triton whose configuration was rendered from a spec."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from tritonclient.grpc import service_pb2

from serve_app.context import RequestContext, serving
from serve_app.problem import Problem
from serve_app.render.triton import render_model_config
from serve_app.spec.schema import Spec
from serve_app.triton.breaker import Breaker
from serve_app.triton.breakers import Breakers
from serve_app.triton.client import TritonModel, models_for
from serve_app.triton.connection import Connection
from serve_app.triton.server import TritonServer

SPEC_FILE = Path(__file__).parents[2] / "cluster" / "spec.yaml"
# Doubles x and adds a to it, says how many rows ran together, and waits before that while the gate is shut.
CODE = """
import pathlib
import time
import numpy as np
import triton_python_backend_utils as pb_utils
from serve_app.triton.backend.tensors import read, write

GATE = pathlib.Path("{folder}")

class TritonPythonModel:
    def execute(self, requests):
        (GATE / "entered").touch()
        while (GATE / "shut").exists():
            time.sleep(0.005)
        rows = sum(len(read(request, "x")) for request in requests)
        answers = []
        for request in requests:
            x, a = read(request, "x"), read(request, "a")
            together = np.full((len(x), 1), rows, np.int32)
            answers.append(pb_utils.InferenceResponse([write("y", 2 * x + a), write("rows", together)]))
        return answers
"""


def gate_spec() -> Spec:
    """The project's tiers and profiles, with a model of the test's own."""
    data: dict[str, Any] = yaml.safe_load(SPEC_FILE.read_text())
    data["models"] = {
        "gate": {
            "backend": "python",
            "inputs": {"x": "float32[2]", "a": "float32[1]"},
            "outputs": {"y": "float32[2]", "rows": {"tensor": "int32[1]", "labels": "labels.txt"}},
            "max_batch": 4,
            "latency_budget": "100ms",
            "batching": {"queue": {"size": 6}},
        }
    }
    return Spec.model_validate(data | {"stages": {}, "pipelines": {}})


SPEC = gate_spec()


@dataclass(frozen=True)
class Gate:
    """The model, and the way to hold up what it does."""

    model: TritonModel
    connection: CountingConnection
    folder: Path

    def shut(self) -> None:
        (self.folder / "entered").unlink(missing_ok=True)
        (self.folder / "shut").touch()

    def open(self) -> None:
        (self.folder / "shut").unlink(missing_ok=True)

    async def entered(self) -> None:
        """Wait until a batch is being worked on."""
        await _until((self.folder / "entered").exists)

    async def statistics(self) -> Any:
        request, answer = service_pb2.ModelStatisticsRequest(name="gate"), service_pb2.ModelStatisticsResponse
        return (await self.connection.call("ModelStatistics", request, answer, 10)).model_stats[0]


class CountingConnection(Connection):
    """Counts wake-up requests."""

    wake_ups = 0

    async def wake(self, request: Any) -> None:
        self.wake_ups += 1
        await super().wake(request)


async def _until(condition: Callable[[], bool], within: float = 10) -> None:
    give_up = time.monotonic() + within
    while not condition():
        assert time.monotonic() < give_up, f"not so within {within} s"
        await asyncio.sleep(0.005)


@pytest.fixture
async def started(repository: Any, tmp_path: Path, start: Any) -> AsyncIterator[TritonServer]:
    code = CODE.format(folder=tmp_path)
    repository.add("gate", code, "")
    (repository.folder / "gate" / "config.pbtxt").write_text(render_model_config(SPEC, "gate", "embedded", ""))
    (repository.folder / "gate" / "labels.txt").write_text("one\n \n", encoding="utf-8")
    server = await start()
    yield server
    await server.stop(0)


@pytest.fixture
async def gate(started: TritonServer, repository: Any, tmp_path: Path) -> AsyncIterator[Gate]:
    async def locate(lost: str | None) -> str:
        return started.address

    connection = CountingConnection(locate)
    model = models_for(SPEC, "embedded", ["gate"], connection, repository.folder)["gate"]
    gate = Gate(model, connection, tmp_path)
    yield gate
    gate.open()


def batch(rows: int) -> tuple[np.ndarray, np.ndarray]:
    x = np.arange(2 * rows, dtype=np.float32).reshape(rows, 2)
    return x, np.ones((rows, 1), np.float32)


def answer_of(x: np.ndarray) -> np.ndarray:
    return 2 * x + 1


async def call(gate: Gate, rows: int = 1, *, priority: int = 2, seconds: float = 20) -> Any:
    with serving(RequestContext("request", priority, time.time() + seconds)):
        return await gate.model(*batch(rows))


async def code_of(calling: Any) -> str:
    with pytest.raises(Problem) as refused:
        await calling
    return refused.value.code


async def test_a_batch_larger_than_the_model_takes_is_split_and_comes_back_in_order(gate: Gate) -> None:
    y, rows = await call(gate, 11)
    np.testing.assert_array_equal(y, answer_of(batch(11)[0]))
    assert rows.max() <= 4
    assert gate.model.labels == ["one", " "]


async def test_arrays_that_do_not_fit_the_spec_are_refused_before_they_are_sent(gate: Gate) -> None:
    x, a = batch(2)
    with serving(RequestContext("request", 2, time.time() + 20)):
        for inputs, reason in [
            ((x,), "takes 2 inputs"),
            ((x[:, :1], a), r"gate.x: float32\[2, 1\] is not a batch of float32\[2\]"),
            ((x.astype(np.float64), a), "gate.x: float64"),
            ((x, a[:1]), "all inputs need the same"),
            ((x[:0], a[:0]), "at least one"),
        ]:
            with pytest.raises(ValueError, match=reason):
                await gate.model(*inputs)


async def test_requests_share_batches_and_each_gets_its_own_answer(gate: Gate) -> None:
    gate.shut()
    first = asyncio.create_task(call(gate))
    await gate.entered()
    waiting = [asyncio.create_task(call(gate)) for _ in range(4)]
    await _queued(gate)
    gate.open()
    answers = [await task for task in waiting]
    await first
    assert [int(rows[0, 0]) for _, rows in answers] == [4, 4, 4, 4]


async def test_a_more_urgent_request_overtakes_those_that_wait(gate: Gate) -> None:
    gate.shut()
    first = asyncio.create_task(call(gate))
    await gate.entered()
    order: list[str] = []

    async def noted(name: str, priority: int) -> None:
        await call(gate, 4, priority=priority)
        order.append(name)

    bulk = asyncio.create_task(noted("bulk", 3))
    await _queued(gate)
    urgent = asyncio.create_task(noted("urgent", 1))
    await _queued(gate)
    gate.open()
    await asyncio.gather(first, bulk, urgent)
    assert order == ["urgent", "bulk"]


async def test_a_full_queue_refuses_at_once_and_the_others_are_answered(gate: Gate) -> None:
    gate.shut()
    first = asyncio.create_task(call(gate))
    await gate.entered()
    waiting = [asyncio.create_task(call(gate, 4)) for _ in range(6)]
    await _queued(gate)
    assert await code_of(call(gate)) == "queue_full"
    gate.open()
    for task in [first, *waiting]:
        await task


async def test_a_deadline_that_passes_while_the_model_works_is_told_in_time(gate: Gate) -> None:
    gate.shut()
    assert await code_of(call(gate, seconds=0.3)) == "deadline_exceeded"
    gate.open()
    await call(gate)


async def test_a_deadline_that_has_passed_sends_nothing(gate: Gate) -> None:
    gate.shut()
    (gate.folder / "entered").unlink(missing_ok=True)
    assert await code_of(call(gate, seconds=-1)) == "deadline_exceeded"
    await _queued(gate)
    assert not (gate.folder / "entered").exists()


async def test_cancelling_a_call_cancels_its_request_in_triton(gate: Gate) -> None:
    gate.shut()
    first = asyncio.create_task(call(gate))
    await gate.entered()
    waiting = asyncio.create_task(call(gate))
    await _queued(gate)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    gate.open()
    await first
    await call(gate)
    assert (await gate.statistics()).inference_count == 2


async def test_wake_up_requests_are_never_executed(gate: Gate) -> None:
    gate.shut()
    tasks = [asyncio.create_task(call(gate)) for _ in range(5)]
    await gate.entered()
    sent = gate.connection.wake_ups
    await _until(lambda: gate.connection.wake_ups >= sent + 2)
    gate.open()
    for task in tasks:
        await task
    statistics = await gate.statistics()
    assert statistics.inference_count == 5
    assert statistics.inference_stats.fail.count >= 2


async def test_a_server_that_went_away_is_looked_for_and_the_request_repeated(
    started: TritonServer, repository: Any, start: Any
) -> None:
    asked: list[str | None] = []
    addresses = [started.address]

    async def locate(lost: str | None) -> str:
        asked.append(lost)
        return addresses[-1]

    connection = CountingConnection(locate)
    gate = Gate(models_for(SPEC, "embedded", ["gate"], connection, repository.folder)["gate"], connection, Path())
    await call(gate)
    await started.stop(0)
    other = await start()
    addresses.append(other.address)
    try:
        y, _ = await call(gate, 2)
        np.testing.assert_array_equal(y, answer_of(batch(2)[0]))
        assert asked == [None, addresses[0]]
    finally:
        await other.stop(0)


async def test_a_server_that_stays_away_is_a_model_that_is_not_available(
    started: TritonServer, repository: Any
) -> None:
    async def locate(lost: str | None) -> str:
        return started.address

    connection = CountingConnection(locate)
    gate = Gate(models_for(SPEC, "embedded", ["gate"], connection, repository.folder)["gate"], connection, Path())
    await started.stop(0)
    assert await code_of(call(gate, seconds=5)) == "model_unavailable"
    assert not await connection.is_ready(1)


async def test_a_model_that_hangs_costs_few_requests_their_time_and_is_asked_again_when_it_is_well(
    gate: Gate, repository: Any
) -> None:
    ahead = 0.0
    breaker = Breaker(2, open_for=60, patience=0.1, tell=lambda _: None)
    breakers = Breakers({"gate": breaker}, gate.connection.renewed, lambda: time.time() + ahead)
    model = models_for(SPEC, "embedded", ["gate"], gate.connection, repository.folder, breakers=breakers)["gate"]
    guarded = Gate(model, gate.connection, gate.folder)
    await call(guarded)
    guarded.shut()
    for _ in range(2):
        assert await code_of(call(guarded, seconds=0.5)) == "deadline_exceeded"
    for _ in range(3):
        assert await code_of(call(guarded)) == "model_unavailable"
    guarded.open()
    ahead = 60
    for _ in range(3):
        y, _ = await call(guarded, 2)
        np.testing.assert_array_equal(y, answer_of(batch(2)[0]))


async def test_a_server_that_comes_back_is_asked_at_once_whatever_was_learned_of_its_predecessor(
    started: TritonServer, repository: Any, start: Any, tmp_path: Path
) -> None:
    addresses = [started.address]

    async def locate(lost: str | None) -> str:
        return addresses[-1]

    connection = CountingConnection(locate)
    breaker = Breaker(1, open_for=3600, patience=0.1, tell=lambda _: None)
    breakers = Breakers({"gate": breaker}, connection.renewed)
    model = models_for(SPEC, "embedded", ["gate"], connection, repository.folder, breakers=breakers)["gate"]
    gate = Gate(model, connection, tmp_path)
    await call(gate)
    gate.shut()
    assert await code_of(call(gate, seconds=0.5)) == "deadline_exceeded"
    assert await code_of(call(gate)) == "model_unavailable"
    gate.open()
    await started.stop(0)
    await _until(lambda: connection.renewed() == math.inf)
    await _until(lambda: connection.renewed() == math.inf)
    other = await start()
    addresses.append(other.address)
    try:
        y, _ = await call(gate, 2)
        np.testing.assert_array_equal(y, answer_of(batch(2)[0]))
    finally:
        await other.stop(0)


async def test_an_answer_that_is_not_what_the_spec_says_is_a_failure_of_the_model(tmp_path: Path) -> None:
    class Wrong(Connection):
        async def call(self, *_: Any, **__: Any) -> Any:
            answer = service_pb2.ModelInferResponse(model_name="gate")
            answer.outputs.add(name="y", datatype="FP32", shape=[1, 3])
            answer.raw_output_contents.append(bytes(12))
            return answer

    connection: Any = Wrong(lambda _: None)  # type: ignore[arg-type, return-value]
    gate = Gate(models_for(SPEC, "embedded", ["gate"], connection, tmp_path)["gate"], connection, tmp_path)
    assert await code_of(call(gate)) == "model_failed"


async def _queued(gate: Gate) -> None:
    """Wait until Triton has taken in what was sent.

    It does not tell its queue's length over gRPC, but takes requests of one connection in their order: when a few later
    ones have been answered, the earlier ones are in.
    """
    for _ in range(20):
        assert await gate.connection.is_ready(10)
