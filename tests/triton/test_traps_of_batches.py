"""What a real Triton does, without a word, with batches that are never put together: which the validator warns of.

No test here depends on the order or the moment in which requests arrive.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tritonclient.grpc as triton
import tritonclient.grpc.aio as triton_aio
from tritonclient.utils import InferenceServerException

from serve_app.triton.server import TritonServer

# Answers y: the requests of its run, the number of the run, nothing, nothing. Runs only while there is a file `go`, and
# makes the file `began` where it waits for it.
CODE = """
import time
from pathlib import Path

import numpy as np
import triton_python_backend_utils as pb_utils
from serve_app.triton.backend.tensors import read, write

class TritonPythonModel:
    def initialize(self, args):
        self.folder = Path(args["model_repository"])
        self.runs = 0

    def execute(self, requests):
        (self.folder / "began").touch()
        while not (self.folder / "go").exists():
            time.sleep(0.01)
        self.runs += 1
        rows = [len(read(request, "x")) for request in requests]
        return [
            pb_utils.InferenceResponse([write("y", np.tile(np.float32([len(requests), self.runs, 0, 0]), (own, 1)))])
            for own in rows
        ]
"""
Ask = Callable[..., Any]
FULL = "Exceeds maximum queue size"


@pytest.fixture
def ask(server: TritonServer) -> Ask:
    """Sends one request with float32 tensors of the given dimensions; answers the first row of y."""

    async def ask(x: tuple[int, ...], z: tuple[int, ...] | None = None, **options: Any) -> np.ndarray:
        given = {"x": x, **({} if z is None else {"z": z})}
        inputs = [
            triton.InferInput(name, list(dims), "FP32").set_data_from_numpy(np.zeros(dims, np.float32))
            for name, dims in given.items()
        ]
        async with triton_aio.InferenceServerClient(server.address) as client:
            answer = (await client.infer("m", inputs, client_timeout=20, **options)).as_numpy("y")
            assert answer is not None
            return answer[0]

    return ask


@pytest.fixture
def model_folder(shared_folder: Path) -> Path:
    return shared_folder / "models" / "m"


def spec(**fields: Any) -> dict[str, Any]:
    return {"models": {"m": fields}}


async def first_of(asked: list[asyncio.Task[np.ndarray]]) -> asyncio.Task[np.ndarray]:
    """The first that is answered or refused; the others go on."""
    done, _ = await asyncio.wait(asked, return_when=asyncio.FIRST_COMPLETED)
    return done.pop()


@pytest.mark.parametrize("max_batch", [0, 1])
async def test_queues_and_priorities_of_a_model_without_batches_count(
    load, ask: Ask, model_folder: Path, eventually, max_batch: int
) -> None:
    """T108 is for batching that says nothing of them."""
    tensor = {"tensor": "float32[-1, 4]" if max_batch == 0 else "float32[4]"}
    batching = {
        "queue_delay": "0s",
        "priorities": {"levels": 2, "default": 1},
        "queues": {"1": {"size": 3}, "2": {"size": 1}},
    }
    load(spec(max_batch=max_batch, inputs={"x": tensor}, outputs={"y": tensor}, batching=batching), CODE)
    running = asyncio.create_task(ask((1, 4)))
    await asyncio.to_thread(eventually, (model_folder / "began").exists)

    waiting = {}
    for level, size in ((2, 1), (1, 3)):  # one more than may wait, of which one is refused: the level's queue is full
        asked = [asyncio.create_task(ask((1, 4), priority=level)) for _ in range(size + 1)]
        refused = await first_of(asked)
        with pytest.raises(InferenceServerException, match=FULL):
            refused.result()
        waiting[level] = [task for task in asked if task is not refused]
    (model_folder / "go").touch()
    runs = {level: [float((await task)[1]) for task in tasks] for level, tasks in waiting.items()}
    assert (await running)[1] == 1
    assert min(runs[2]) > max(runs[1])


PARTED = pytest.mark.parametrize(
    ("inputs", "one", "other"),
    [
        ({"x": "float32[-1]"}, [(1, 2)], [(1, 3)]),
        ({"z": {"tensor": "float32[4]", "optional": True}}, [(1, 4), (1, 4)], [(1, 4)]),
        (
            {"x": {"tensor": "float32[-1]", "ragged": True}, "z": "float32[-1]"},
            [(1, 2), (1, 2)],
            [(1, 2), (1, 3)],
        ),
    ],
    ids=["by dimensions", "by inputs", "by dimensions of what is not ragged"],
)


def of_pairs(inputs: dict[str, Any], delay: str) -> dict[str, Any]:
    return spec(max_batch=2, inputs=inputs, batching={"queue_delay": delay, "priorities": "none"})


@PARTED
async def test_requests_that_differ_never_share_a_batch(
    load, ask: Ask, model_folder: Path, inputs: dict[str, Any], one: list[Any], other: list[Any]
) -> None:
    """T137 and T150."""
    load(of_pairs(inputs, "300ms"), CODE)
    (model_folder / "go").touch()
    answers = await asyncio.gather(ask(*one), ask(*other))
    assert [float(answer[0]) for answer in answers] == [1, 1]


@PARTED
async def test_a_request_that_differs_waits_for_its_like_however_many_others_come(
    load, ask: Ask, model_folder: Path, inputs: dict[str, Any], one: list[Any], other: list[Any]
) -> None:
    load(of_pairs(inputs, "1h"), CODE)
    (model_folder / "go").touch()
    asked = {asyncio.create_task(ask(*each)): each for each in (one, other)}
    # Whichever comes second ends the wait of the first, which runs alone, and waits itself.
    first = await first_of(list(asked))
    assert first.result()[0] == 1
    (waiting,) = asked.keys() - {first}
    assert not waiting.done()
    alike = await ask(*asked[waiting])
    assert [float(alike[0]), float((await waiting)[0])] == [2, 2]


@PARTED
async def test_requests_that_are_alike_share_one(
    load, ask: Ask, model_folder: Path, inputs: dict[str, Any], one: list[Any], other: list[Any]
) -> None:
    load(of_pairs(inputs, "1h"), CODE)
    (model_folder / "go").touch()
    for each in (one, other):
        answers = await asyncio.gather(ask(*each), ask(*each))
        assert [float(answer[0]) for answer in answers] == [2, 2]


async def test_ragged_requests_of_different_dimensions_share_one_where_all_else_is_alike(
    load, ask: Ask, model_folder: Path
) -> None:
    load(of_pairs({"x": {"tensor": "float32[-1]", "ragged": True}, "z": "float32[-1]"}, "1h"), CODE)
    (model_folder / "go").touch()
    answers = await asyncio.gather(ask((1, 2), (1, 5)), ask((1, 3), (1, 5)))
    assert [float(answer[0]) for answer in answers] == [2, 2]
