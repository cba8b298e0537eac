"""What a real Triton makes of names, paths and sizes that the validator refuses: commands run, servers end."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
import tritonclient.grpc as triton
from tritonclient.utils import InferenceServerException

from serve_app.spec.checks.amounts import SMALLEST_CACHE
from serve_app.spec.model import Resource
from serve_app.triton.error import TritonError
from serve_app.triton.launch import Features

CODE = "class TritonPythonModel:\n    def execute(self, requests):\n        return []\n"
TENSORS = (
    'max_batch_size: 8 input [{name: "x" data_type: TYPE_FP32 dims: [-1]}]'
    'output [{name: "y" data_type: TYPE_FP32 dims: [4]'
)


def config(more: str = "", output: str = "") -> str:
    return f"{TENSORS} {output}}}] {more}"


def warmed(what: str, dims: int = 4) -> str:
    x = f'inputs {{key: "x" value {{data_type: TYPE_FP32 dims: [{dims}] {what}}}}}'
    return config(f'model_warmup [{{name: "first" batch_size: 1 {x}}}]')


def kept(what: str, dims: int = 4) -> str:
    tensor = f"data_type: TYPE_FP32 dims: [{dims}]"
    initial = f'initial_state [{{name: "zero" {tensor} {what}}}]'
    return config(f'sequence_batching {{direct {{}} state [{{input_name: "b" output_name: "a" {tensor} {initial}}}]}}')


@pytest.fixture
def load(start: Any, repository: Any):
    """Loads the model m on a server of the test's own; answers what the server says, and the server."""

    async def load(text: str, file: str = "model.py") -> tuple[str, Any]:
        repository.add_lookup()
        server = await start()
        repository.add("m", CODE, text)
        folder = repository.folder / "m"
        for name in ("warmup", "initial_state"):
            (folder / name).mkdir()
        path = folder / "1" / file
        path.parent.mkdir(exist_ok=True)
        (folder / "1" / "model.py").rename(path)
        with triton.InferenceServerClient(server.address) as client:
            try:
                await asyncio.to_thread(client.load_model, "m", client_timeout=3)
            except InferenceServerException as refused:
                return str(refused), server
        return "loaded", server

    return load


@pytest.fixture
def marker(tmp_path: Path) -> Path:
    return tmp_path / "ran"


async def test_a_shell_runs_what_is_in_the_name_of_a_python_models_instances(load, marker) -> None:
    _, server = await load(config(f'instance_group [{{kind: KIND_CPU name: "g $(touch {marker})"}}]'))
    await server.stop(0)
    assert marker.exists()


async def test_a_shell_runs_what_is_in_the_path_of_a_python_models_environment(load, tmp_path, marker) -> None:
    folder = tmp_path / f"gone; cd {tmp_path}; touch {marker.name}; #"
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "activate").touch()
    _, server = await load(config(f'parameters {{key: "EXECUTION_ENV_PATH" value {{string_value: "{folder}"}}}}'))
    await server.stop(0)
    assert marker.exists()


@pytest.mark.parametrize("file", ["class.py", "my-model.py", "json.py", "sub/model.py", "-a.py"])
async def test_a_python_file_of_letters_digits_hyphens_and_underscores_loads(load, file: str) -> None:
    said, server = await load(config(f'default_model_filename: "{file}"'), file)
    await server.stop(0)
    assert said == "loaded"


@pytest.mark.parametrize(
    ("file", "says"),
    [
        ("a.b.py", "No module named '1.a'"),
        ("1.py", "No module named '1.1'"),
        ("sub.d/model.py", "No module named 'sub'"),
        ("model.so", "must end with '.py'"),
        ("my model.py", "Deadline Exceeded"),
    ],
)
async def test_another_python_file_does_not(load, file: str, says: str) -> None:
    said, server = await load(config(f'default_model_filename: "{file}"'), file)
    await server.stop(0)
    assert says in said


@pytest.mark.parametrize(
    ("text", "signal"),
    [
        (warmed('input_data_file: ""'), "SIGABRT"),
        (warmed('input_data_file: "."'), "SIGABRT"),
        (kept('data_file: ""'), "SIGABRT"),
        (kept('data_file: "."'), "SIGABRT"),
        (config(output='label_filename: "."'), "SIGABRT"),
        (warmed("zero_data: true", 10**17), "SIGSEGV"),
        (kept("zero_data: true", 10**17), "SIGSEGV"),
    ],
    ids=["warm-up of no file", "of a folder", "state of no file", "of a folder", "labels", "warm-up", "state"],
)
async def test_a_folder_instead_of_a_file_and_a_tensor_beyond_all_memory_end_the_server(load, text, signal) -> None:
    _, server = await load(text)
    try:
        assert signal in await asyncio.wait_for(server.wait_exit(), 20)
    finally:
        await server.stop(0)


async def test_a_server_does_not_start_with_a_smaller_cache_than_the_smallest(start, repository) -> None:
    repository.add_lookup()
    with pytest.raises(TritonError, match="Failed to initialize LocalCache"):
        await start(features=Features(response_cache=SMALLEST_CACHE - 1))
    server = await start(features=Features(response_cache=SMALLEST_CACHE))
    await server.stop(0)


async def test_a_server_does_not_start_with_a_colon_in_a_resources_name(start, repository) -> None:
    repository.add_lookup()
    with pytest.raises(TritonError):
        await start(features=Features(rate_limit=True, resources={"a:b": Resource(count=1)}))
