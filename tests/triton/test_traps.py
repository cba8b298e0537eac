"""What a real Triton does, without a word, with configurations that the validator warns of or refuses.

Each is rendered from the smallest spec that shows it, unchecked.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tritonclient.grpc as triton
import tritonclient.grpc.aio as triton_aio
from google.protobuf import text_format
from tritonclient.utils import InferenceServerException

from serve_app.render.triton import model_config
from serve_app.spec import Spec
from serve_app.triton.server import TritonServer
from tests.rules.case import patched
from tests.rules.feature_cases import ELEMENTS

# Answers y: the items that ran together, the number of the run, the tensors of the request, nothing. `work` is how long
# a run takes, in seconds; the file `began` is there once the first has begun.
RUN_CODE = """
import json
import time
from pathlib import Path

import numpy as np
import triton_python_backend_utils as pb_utils
from serve_app.triton.backend.tensors import read, write

class TritonPythonModel:
    def initialize(self, args):
        parameters = json.loads(args["model_config"])["parameters"]
        self.work = float(parameters.get("work", {}).get("string_value", "0"))
        self.began = Path(args["model_repository"]) / "began"
        self.runs = 0

    def execute(self, requests):
        self.began.touch()
        time.sleep(self.work)
        self.runs += 1
        items = [len(read(request, "x")) for request in requests]
        return [
            pb_utils.InferenceResponse(
                [write("y", np.tile(np.float32([sum(items), self.runs, len(request.inputs()), 0]), (own, 1)))]
            )
            for request, own in zip(requests, items)
        ]
"""
Patch = dict[str, Any]
WORK_S = "0.05"


class Served:
    """The model m of a spec, on the shared server."""

    def __init__(self, address: str):
        self.address = address

    async def ask(self, **options: Any) -> np.ndarray:
        """One request of one item; answers what RUN_CODE says about its run."""
        async with triton_aio.InferenceServerClient(self.address) as client:
            x = triton.InferInput("x", [1, 4], "FP32").set_data_from_numpy(np.zeros((1, 4), np.float32))
            answer = (await client.infer("m", [x], client_timeout=20, **options)).as_numpy("y")
            assert answer is not None
            return answer[0]

    async def ask_together(self, count: int, **options: Any) -> list[int | str]:
        """So many at the same time: the items of each one's run, or why it was refused."""
        answers = await asyncio.gather(*(self.ask(**options) for _ in range(count)), return_exceptions=True)
        return [int(each[0]) if isinstance(each, np.ndarray) else str(each) for each in answers]


@pytest.fixture
def serve(server: TritonServer, shared_folder: Path) -> Iterator[Callable[[Patch], Served]]:
    """Loads the model m as MINIMAL with a patch renders it."""
    folder = shared_folder / "models" / "m"

    def serve(patch: Patch, code: str = RUN_CODE) -> Served:
        (folder / "1").mkdir(parents=True)
        (folder / "1" / "model.py").write_text(code)
        config = model_config(Spec.model_validate(patched({"models": {"m": patch}})), "m", "embedded")
        (folder / "config.pbtxt").write_text(text_format.MessageToString(config))
        with triton.InferenceServerClient(server.address) as client:
            client.load_model("m", client_timeout=20)
        return Served(server.address)

    yield serve
    with triton.InferenceServerClient(server.address) as client:
        client.unload_model("m")
    shutil.rmtree(folder)


def batching(**fields: Any) -> Patch:
    return {"batching": {"priorities": "none", **fields}}


def working(**fields: Any) -> Patch:
    """A model that takes a while for a batch, so that requests gather behind it."""
    return {**batching(**fields), "parameters": {"work": WORK_S}}


# -- batches (T105, T107, T108)


async def test_a_lone_request_does_not_wait_where_1_is_a_preferred_size(serve) -> None:
    served = serve(batching(queue_delay="1h", preferred_sizes=[1, 8]))
    assert await served.ask_together(1) == [1]


async def test_requests_wait_for_the_smallest_preferred_size(serve) -> None:
    served = serve(batching(queue_delay="1h", preferred_sizes=[2, 8]))
    assert await served.ask_together(2) == [2, 2]


@pytest.mark.parametrize(("sizes", "largest"), [([2, 4], 4), ([2, 4, 8], 8), ([], 8)])
async def test_without_a_delay_no_batch_is_larger_than_the_largest_preferred_size(
    serve, sizes: list[int], largest: int
) -> None:
    served = serve(working(queue_delay="0s", preferred_sizes=sizes))
    assert max(await served.ask_together(32)) == largest


@pytest.mark.parametrize("max_batch", [0, 1])
async def test_a_queue_delay_of_a_model_without_batches_is_passed_over(serve, max_batch: int) -> None:
    tensor = {"tensor": "float32[-1, 4]" if max_batch == 0 else "float32[4]"}
    served = serve(
        {**batching(queue_delay="1h"), "max_batch": max_batch, "inputs": {"x": tensor}, "outputs": {"y": tensor}}
    )
    assert await served.ask_together(4) == [1, 1, 1, 1]


# -- queues (T102, T103, T111, T114, T115, T117)

TIMED_OUT = "[StatusCode.UNAVAILABLE] Request timeout expired"


async def test_a_lone_request_fails_where_the_timeout_is_shorter_than_the_delay(serve) -> None:
    served = serve(batching(queue_delay="300ms", queue={"timeout": "100ms"}))
    assert await served.ask_together(1) == [TIMED_OUT]


async def test_a_lone_request_is_served_after_its_timeout_where_late_ones_are_delayed(serve) -> None:
    served = serve(batching(queue_delay="300ms", queue={"timeout": "100ms", "on_timeout": "delay"}))
    assert await served.ask_together(1) == [1]


async def test_a_queue_shorter_than_a_batch_refuses_requests_that_the_batch_has_room_for(serve) -> None:
    served = serve(batching(queue_delay="1s", queue={"size": 3}))
    answers = await served.ask_together(8)
    assert [answer for answer in answers if isinstance(answer, int)] == [3, 3, 3]
    assert sum("Exceeds maximum queue size" in str(answer) for answer in answers) == 5


async def test_the_policy_of_a_level_that_there_is_not_is_passed_over(serve) -> None:
    served = serve(batching(queue_delay="300ms", queues={"1": {"size": 1}}))
    assert await served.ask_together(4, priority=1) == [4, 4, 4, 4]


async def test_as_many_requests_as_the_queues_size_may_wait_in_each_level(serve) -> None:
    served = serve(batching(queue_delay="1s", priorities={"levels": 2, "default": 2}, queue={"size": 3}))
    answers = await asyncio.gather(served.ask_together(3, priority=1), served.ask_together(3, priority=2))
    assert answers == [[6, 6, 6], [6, 6, 6]]


async def test_the_policy_of_a_level_that_there_is_counts(serve) -> None:
    served = serve(
        batching(queue_delay="300ms", priorities={"levels": 2, "default": 2}, queues={"1": {"size": 1}}),
    )
    answers = await served.ask_together(4, priority=1)
    assert [answer for answer in answers if isinstance(answer, int)] == [1]


@pytest.mark.parametrize(
    ("queue", "answer"),
    [
        ({"allow_override": True}, 1),
        ({"timeout": "10s"}, 1),
        ({"timeout": "10s", "allow_override": True}, TIMED_OUT),
    ],
    ids=["no timeout", "no override", "both"],
)
async def test_a_deadline_counts_only_where_it_may_shorten_a_timeout(
    serve, queue: dict[str, Any], answer: int | str
) -> None:
    served = serve(batching(queue_delay="300ms", queue=queue))
    assert await served.ask_together(1, timeout=1000) == [answer]


async def test_a_deadline_cannot_lengthen_a_timeout(serve) -> None:
    served = serve(batching(queue_delay="300ms", queue={"timeout": "100ms", "allow_override": True}))
    assert await served.ask_together(1, timeout=10_000_000) == [TIMED_OUT]


async def test_an_unscheduled_model_knows_no_deadlines_and_no_batches(serve) -> None:
    served = serve({"batching": None, "unscheduled": True, "parameters": {"work": WORK_S}})
    assert await served.ask_together(4, timeout=1) == [1, 1, 1, 1]


async def test_a_request_of_a_lower_level_waits_until_none_of_a_higher_one_is_left(
    serve, shared_folder, eventually
) -> None:
    served = serve(
        {
            **batching(queue_delay="0s", priorities={"levels": 2, "default": 1}),
            "max_batch": 1,
            "parameters": {"work": "0.3"},
        }
    )
    first = asyncio.create_task(served.ask())
    await asyncio.to_thread(eventually, (shared_folder / "models" / "m" / "began").exists)
    # The others gather behind the first.
    lower, *higher = await asyncio.gather(served.ask(priority=2), *(served.ask(priority=1) for _ in range(3)))
    await first
    assert lower[1] > max(each[1] for each in higher)


# -- features (T167, T172, T177, T178)


async def test_the_python_backend_makes_no_batch_inputs(serve) -> None:
    served = serve({"batch_inputs": [ELEMENTS]})
    assert (await served.ask())[2] == 1


async def test_triton_refuses_a_single_answer_of_a_decoupled_model(serve) -> None:
    served = serve({"decoupled": True})
    (answer,) = await served.ask_together(1)
    assert "ModelInfer RPC doesn't support models with decoupled transaction policy" in str(answer)


async def test_the_code_of_onnx_models_cannot_answer_for_a_decoupled_one(repository, start) -> None:
    repository.add_lookup()
    config = repository.folder / "lookup" / "config.pbtxt"
    config.write_text(config.read_text() + "model_transaction_policy {decoupled: true}")
    server = await start()

    async def requests():
        index = triton.InferInput("index", [1, 1], "INT64").set_data_from_numpy(np.zeros((1, 1), np.int64))
        yield {"model_name": "lookup", "inputs": [index]}

    try:
        async with triton_aio.InferenceServerClient(server.address) as client:
            answers = client.stream_infer(requests())
            _, error = await asyncio.wait_for(anext(answers), 20)
        assert "the execute function must return None" in str(error)
    finally:
        await server.stop(0)


@pytest.mark.parametrize("tag", ["cost-centre", "_team"])
async def test_a_tag_that_is_no_label_ends_the_server(repository, start, tag: str) -> None:
    repository.add_lookup()
    server = await start()
    try:
        config = (repository.folder / "lookup" / "config.pbtxt").read_text().partition("]")[2]
        repository.add("tagged", RUN_CODE, f'{config} metric_tags {{key: "{tag}" value: "7"}}')
        with triton.InferenceServerClient(server.address) as client, pytest.raises(InferenceServerException):
            client.load_model("tagged", client_timeout=20)
        assert "SIGABRT" in await asyncio.wait_for(server.wait_exit(), 20)
    finally:
        await server.stop(0)
