"""A real server's model that stands still: what its clients see, and its neighbours."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from serve_app.context import RequestContext, serving
from serve_app.problem import Problem
from serve_app.render.triton import render_model_config
from serve_app.triton.client import TritonModel, models_for
from serve_app.triton.connection import Connection
from serve_app.triton.launch import Features
from serve_app.triton.server import TritonServer
from serve_app.triton.stall import Stall
from serve_app.triton.supervisor import RestartPolicy, TritonSupervisor
from serve_app.triton.watchdog import Watchdog
from tests.triton.test_client import SPEC

INDEX = {"index": np.array([[1, 2]])}
# Works for ever on a negative x, while the gate is shut on others; one that is loaded with the gate shut goes round it.
CODE = """
import pathlib
import time
import numpy as np
import triton_python_backend_utils as pb_utils
from serve_app.triton.backend.tensors import read, write

GATE = pathlib.Path("{folder}/shut")

class TritonPythonModel:
    def initialize(self, args):
        self.goes_round = GATE.exists()

    def execute(self, requests):
        answers = []
        for request in requests:
            x = read(request, "x")
            if x.min() < 0:
                GATE.with_name("hangs").touch()
            while x.min() < 0 or (GATE.exists() and not self.goes_round):
                time.sleep(0.005)
            answers.append(pb_utils.InferenceResponse([write("y", x), write("rows", np.ones((len(x), 1), np.int32))]))
        return answers
"""


@dataclass
class Service:
    """A supervised server with the models `gate` and `lookup`, and a stage's way to the first."""

    model: TritonModel
    gate: Path
    servers: list[TritonServer] = field(default_factory=list)
    stalls: list[Stall] = field(default_factory=list)

    async def ask(self, x: float, seconds: float) -> str:
        """What becomes of a request: "answered", or the problem's code."""
        with serving(RequestContext("request", 2, time.time() + seconds)):
            try:
                await self.model(np.full((1, 2), x, np.float32), np.ones((1, 1), np.float32))
            except Problem as problem:
                return problem.code
        return "answered"


Serve = Callable[[float], Awaitable[Service]]


@pytest.fixture
async def serve(repository: Any, tmp_path: Path, start: Any) -> AsyncIterator[Serve]:
    repository.add("gate", CODE.format(folder=tmp_path), "")
    (repository.folder / "gate" / "config.pbtxt").write_text(render_model_config(SPEC, "gate", "embedded", ""))
    (repository.folder / "gate" / "labels.txt").write_text("one\n", encoding="utf-8")
    repository.add_lookup()
    supervisors = []

    async def serve(limit: float) -> Service:
        async def start_another() -> TritonServer:
            service.servers.append(await start(features=Features(metrics=True)))
            return service.servers[-1]

        async def locate(lost: str | None) -> str:
            return await supervisor.address(asyncio.get_running_loop().time() + 20, other_than=lost)

        model = models_for(SPEC, "embedded", ["gate"], Connection(locate), repository.folder)["gate"]
        service = Service(model, tmp_path / "shut")
        watchdog = Watchdog({"gate": limit, "lookup": limit}, 20, service.stalls.append)
        supervisor = TritonSupervisor(start_another, RestartPolicy(), watchdog)
        supervisors.append(supervisor)
        await supervisor.start()
        return service

    yield serve
    for supervisor in supervisors:
        await supervisor.stop(0)


async def test_a_model_that_hangs_costs_its_own_request_and_those_behind_it_are_answered(
    serve: Serve, eventually: Any
) -> None:
    service = await serve(1.0)
    asked = time.monotonic()
    hanging = asyncio.create_task(service.ask(-1, 0.8))
    await asyncio.to_thread(eventually, service.gate.with_name("hangs").exists)
    behind = [asyncio.create_task(service.ask(1, 20)) for _ in range(3)]
    assert await hanging == "deadline_exceeded"
    assert time.monotonic() - asked < 2
    assert await asyncio.gather(*behind) == ["answered"] * 3
    assert await service.ask(1, 20) == "answered"
    assert len(service.servers) == 2
    assert [stall.model for stall in service.stalls] == ["gate"]


async def test_a_model_loaded_anew_serves_at_once_what_the_old_one_has_taken_it_answers_and_its_neighbour_goes_on(
    serve: Serve, infer: Any, stub_of: Any
) -> None:
    service = await serve(1.0)
    (server,) = service.servers
    neighbour = stub_of(server.prefix, "lookup")
    service.gate.touch()
    held = [asyncio.create_task(service.ask(1, 20)) for _ in range(3)]
    while (await service.ask(1, 0.2)) != "answered":
        value = await asyncio.to_thread(infer, server.address, "lookup", INDEX, "value")
        assert value.tolist() == [[2, 4]]
    assert not any(task.done() for task in held)
    service.gate.unlink()
    assert await asyncio.gather(*held) == ["answered"] * 3
    assert stub_of(server.prefix, "lookup") == neighbour
    assert service.servers == [server]
    assert server.alive()
    assert [stall.model for stall in service.stalls] == ["gate"]


async def test_a_batch_that_is_merely_long_is_left_alone_though_requests_and_wake_ups_queue_behind_it(
    serve: Serve, stub_of: Any
) -> None:
    service = await serve(3.0)
    (server,) = service.servers
    process = stub_of(server.prefix, "gate")
    service.gate.touch()
    held = [asyncio.create_task(service.ask(1, 20)) for _ in range(6)]
    await asyncio.wait(held, timeout=1.8)
    assert (await server.work(5))["gate"].pending > 0
    service.gate.unlink()
    assert await asyncio.gather(*held) == ["answered"] * 6
    assert service.stalls == []
    assert stub_of(server.prefix, "gate") == process


async def test_the_process_of_a_model_that_was_loaded_anew_is_watched_like_the_first(
    start: Any, repository: Any, infer: Any, stub_of: Any, belongings: Any
) -> None:
    repository.add_lookup()
    server = await start(features=Features(metrics=True))
    for _ in range(2):  # Triton loads nothing anew that is as it was, unless it is made to
        first = stub_of(server.prefix, "lookup")
        await server.reload("lookup", 20)
        assert stub_of(server.prefix, "lookup") != first
        assert infer(server.address, "lookup", INDEX, "value").tolist() == [[2, 4]]
    left = belongings(server.prefix)
    os.kill(stub_of(server.prefix, "lookup"), signal.SIGKILL)
    ended = await asyncio.wait_for(server.wait_exit(), 5)
    assert ended == "was killed by SIGKILL, because the process of its model lookup ended"
    assert left() == []
