"""What a real Triton does with tensors, names, instances and warm-ups that the validator refuses or warns of."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import pytest_asyncio
import tritonclient.grpc as triton
from tritonclient.utils import InferenceServerException

from serve_app.spec.checks.memory import REGION
from serve_app.spec.model import Resource
from serve_app.triton.launch import Features
from serve_app.triton.server import TritonServer

# Answers y, the requests of the run, whatever the inputs are.
COUNTING = """
import numpy as np
import triton_python_backend_utils as pb_utils
from serve_app.triton.backend.tensors import write

class TritonPythonModel:
    def execute(self, requests):
        count = np.full((1, 1), len(requests), np.float32)
        return [pb_utils.InferenceResponse([write("y", count)]) for _ in requests]
"""
READING = COUNTING.replace("count =", 'pb_utils.get_input_tensor_by_name(requests[0], "x").as_numpy()\n        count =')
ECHOING = COUNTING.replace("import write", "import read, write").replace(
    'write("y", count)]) for _ in', 'write("y", read(request, "x") + 0)]) for request in'
)
OUTPUT = 'output [{name: "y" data_type: TYPE_FP32 dims: [1]}]'
TOGETHER = "dynamic_batching {preferred_batch_size: [4] max_queue_delay_microseconds: 300000}"
LARGE = 2**20  # bytes of one item of the model `large`


def takes(tensor: str, *more: str) -> str:
    return " ".join(["max_batch_size: 4", f'input [{{name: "x" {tensor}}}]', OUTPUT, *more])


MODELS = {
    "strings": (COUNTING, takes("data_type: TYPE_STRING dims: [1]")),
    "bfloat16": (READING, takes("data_type: TYPE_BF16 dims: [1]")),
    "optional": (COUNTING, takes("data_type: TYPE_FP32 dims: [1] optional: true")),
    "shapes": (COUNTING, takes("data_type: TYPE_FP32 dims: [-1]", TOGETHER)),
    "ragged": (COUNTING, takes("data_type: TYPE_FP32 dims: [-1] allow_ragged_batch: true", TOGETHER)),
    "large": (
        ECHOING,
        takes(f"data_type: TYPE_UINT8 dims: [{LARGE}]", TOGETHER).replace(
            "TYPE_FP32 dims: [1]", f"TYPE_UINT8 dims: [{LARGE}]"
        ),
    ),
    "warmed": (
        COUNTING,
        takes(
            "data_type: TYPE_FP32 dims: [1]",
            'model_warmup [{name: "first" batch_size: 1',
            'inputs {key: "x" value {data_type: TYPE_FP32 dims: [1] zero_data: true}}',
            'inputs {key: "gone" value {data_type: TYPE_FP32 dims: [1] zero_data: true}}}]',
        ),
    ),
}


@pytest_asyncio.fixture
async def trapped(start: Callable[..., Any], repository: Any) -> AsyncIterator[TritonServer]:
    """A server with all of MODELS."""
    for name, (code, config) in MODELS.items():
        repository.add(name, code, config)
    server = await start()
    yield server
    await server.stop(0)


def tensor(array: np.ndarray, datatype: str) -> triton.InferInput:
    return triton.InferInput("x", list(array.shape), datatype).set_data_from_numpy(array)


def ask_together(address: str, model: str, inputs: list[triton.InferInput]) -> list[np.ndarray]:
    """The answers to requests that are sent at the same time."""
    answers: list[Any] = []
    done = threading.Event()

    def answered(result: Any, error: Any) -> None:
        answers.append(error or result.as_numpy("y"))
        if len(answers) == len(inputs):
            done.set()

    with triton.InferenceServerClient(address) as client:
        for each in inputs:
            client.async_infer(model, [each], answered, client_timeout=20)
        assert done.wait(20)
    return answers


async def test_varying_tensors_and_warm_ups_are_not_what_one_would_think(trapped: TritonServer) -> None:
    with triton.InferenceServerClient(trapped.address) as client:
        # T189: an input that the model does not have is passed over in a warm-up.
        assert client.is_model_ready("warmed")

        # T133: a request without any of the optional inputs is refused.
        with pytest.raises(InferenceServerException, match="request has 0 inputs"):
            client.infer("optional", [], client_timeout=20)

        # T137: a preferred size is not reached by requests of different dimensions, unless they are ragged.
        mixed = [tensor(np.zeros((1, size), np.float32), "FP32") for size in (1, 2, 3, 4)]
        assert {answer.item() for answer in ask_together(trapped.address, "shapes", mixed)} == {1}
        assert {answer.item() for answer in ask_together(trapped.address, "ragged", mixed)} == {4}


async def test_the_python_backends_memory_grows_by_the_tensors_of_a_batch_and_stays(trapped: TritonServer) -> None:
    def regions() -> list[int]:
        return [segment.stat().st_size for segment in Path("/dev/shm").glob(f"{trapped.prefix}*")]

    assert set(regions()) == {REGION}
    item = tensor(np.zeros((1, LARGE), np.uint8), "UINT8")
    ask_together(trapped.address, "large", [item] * 4)
    # T423: the inputs and outputs of the whole batch, at once.
    full = REGION + 4 * 2 * LARGE
    assert full <= max(regions()) < full * 1.5
    ask_together(trapped.address, "large", [item] * 12)
    assert full <= max(regions()) < full * 1.5


async def test_the_wheels_python_backend_can_do_nothing_with_strings_and_bfloat16(trapped: TritonServer) -> None:
    with triton.InferenceServerClient(trapped.address) as client:
        raw = triton.InferInput("x", [1, 1], "BF16")
        raw._raw_content = b"\x80\x3f"
        with pytest.raises(InferenceServerException, match="BF16 and cannot be converted to NumPy"):
            client.infer("bfloat16", [raw], client_timeout=20)

        # T126: a string ends the model's process before its code sees it, or the server.
        with pytest.raises(InferenceServerException, match=r"is not healthy|Socket closed"):
            client.infer("strings", [tensor(np.array([[b"text"]], np.object_), "BYTES")], client_timeout=20)


async def test_a_name_with_a_space_hangs_the_load_of_a_python_model(start: Any, repository: Any) -> None:
    repository.add("plain", COUNTING, takes("data_type: TYPE_FP32 dims: [1]"))
    server = await start()
    repository.add("two words", COUNTING, takes("data_type: TYPE_FP32 dims: [1]"))
    try:
        with triton.InferenceServerClient(server.address) as client:
            with pytest.raises(InferenceServerException, match="Deadline Exceeded"):
                client.load_model("two words", client_timeout=3)
            assert not client.is_model_ready("two words")
    finally:
        await server.stop(0)


async def test_a_request_to_a_model_with_passive_instances_only_ends_the_server(start: Any, repository: Any) -> None:
    repository.add("passive", COUNTING, takes("data_type: TYPE_FP32 dims: [1]"))
    config = repository.folder / "passive" / "config.pbtxt"
    config.write_text(config.read_text().replace("count: 1", "count: 1 passive: true", 1))
    server = await start()
    with triton.InferenceServerClient(server.address) as client, pytest.raises(InferenceServerException):
        client.infer("passive", [tensor(np.zeros((1, 1), np.float32), "FP32")], client_timeout=20)
    assert "SIGSEGV" in await server.wait_exit()


@pytest.mark.parametrize(
    ("wanted", "refusal"),
    [
        ('{name: "a" count: 1}, {name: "a" global: true count: 1}', "both global and device-specific"),
        ('{name: "b" count: 1}', 'Resource count for "b" is limited to 0'),
    ],
    ids=["of a device and of all", "that the server was not given"],
)
async def test_a_resource_is_refused(wanted: str, refusal: str, start: Any, repository: Any) -> None:
    given = {} if "global" in wanted else {"a": Resource(count=1)}
    server = await start(features=Features(rate_limit=True, resources=given))
    try:
        repository.add("limited", COUNTING, takes("data_type: TYPE_FP32 dims: [1]"))
        config = repository.folder / "limited" / "config.pbtxt"
        config.write_text(config.read_text().replace("count: 1", f"count: 1 rate_limiter {{resources [{wanted}]}}", 1))
        with (
            triton.InferenceServerClient(server.address) as client,
            pytest.raises(InferenceServerException, match=refusal),
        ):
            client.load_model("limited", client_timeout=20)
    finally:
        await server.stop(0)


async def test_a_warm_up_larger_than_the_models_batch_is_refused_or_ends_the_server(
    start: Any, repository: Any
) -> None:
    server = await start()
    warmup = 'model_warmup [{name: "first" batch_size: 5 inputs {key: "x" value {data_type: TYPE_FP32 dims: [1] '
    repository.add("warm", COUNTING, takes("data_type: TYPE_FP32 dims: [1]", f"{warmup} zero_data: true}}}}}}]"))
    try:
        with (
            triton.InferenceServerClient(server.address) as client,
            pytest.raises(InferenceServerException) as refused,
        ):
            client.load_model("warm", client_timeout=20)
        if "max allowed is 4" not in str(refused.value):
            assert "SIG" in await server.wait_exit()
    finally:
        await server.stop(0)
