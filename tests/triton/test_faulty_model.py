"""Models whose code is at fault: what their clients are told, and that nobody else notices."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
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
from tests.triton.test_client import SPEC

INDEX = {"index": np.array([[1, 2]])}
# What is wrong with the answer is in x.
CODE = """
import numpy as np
import triton_python_backend_utils as pb_utils
from serve_app.triton.backend.tensors import read, write

KEPT = []

class TritonPythonModel:
    def execute(self, requests):
        answers = []
        for request in requests:
            x = read(request, "x")
            fault = int(x[0, 0])
            if fault == 1:
                raise ValueError("what the model says of itself")
            if fault == 2:
                return []
            if fault == 3:
                KEPT.append(np.ones(2**29, np.uint8))
            y = x[:, :1] if fault == 4 else x.astype(np.int32) if fault == 5 else x
            outputs = [write("y", y), write("rows", np.ones((len(x), 1), np.int32))]
            answers.append(pb_utils.InferenceResponse(outputs[: 1 if fault == 6 else 2]))
        return answers
"""


@pytest.fixture
async def started(repository: Any, start: Any) -> AsyncIterator[TritonServer]:
    repository.add("gate", CODE, "")
    (repository.folder / "gate" / "config.pbtxt").write_text(render_model_config(SPEC, "gate", "embedded", ""))
    (repository.folder / "gate" / "labels.txt").write_text("one\n", encoding="utf-8")
    repository.add_lookup()
    server = await start(features=Features(memory_limit=2**29))
    yield server
    await server.stop(0)


@pytest.fixture
def model(started: TritonServer, repository: Any) -> TritonModel:
    async def locate(lost: str | None) -> str:
        return started.address

    folder: Path = repository.folder
    return models_for(SPEC, "embedded", ["gate"], Connection(locate), folder)["gate"]


async def ask(model: TritonModel, fault: int) -> str:
    """What becomes of a request: "answered", or the problem's status and code."""
    with serving(RequestContext("request", 2, time.time() + 20)):
        try:
            await model(np.full((1, 2), fault, np.float32), np.ones((1, 1), np.float32))
        except Problem as problem:
            return f"{problem.status} {problem.code}"
    return "answered"


async def test_a_model_that_fails_or_answers_what_it_did_not_promise_is_said_to_have_failed_and_goes_on(
    started: TritonServer, model: TritonModel, infer: Any
) -> None:
    for fault in (1, 2, 4, 5, 6):
        assert (fault, await ask(model, fault)) == (fault, "503 model_failed")
        assert await ask(model, 0) == "answered"
    assert (await asyncio.to_thread(infer, started.address, "lookup", INDEX, "value")).tolist() == [[2, 4]]
    assert started.alive()


async def test_a_model_that_grows_without_end_is_ended_with_its_server(
    started: TritonServer, model: TritonModel
) -> None:
    assert await ask(model, 3) in ("answered", "503 model_unavailable")
    ended = await asyncio.wait_for(started.wait_exit(), 10)
    assert "was killed by SIGKILL, because it held" in ended
    assert "more than its limit of 512; gate" in ended
