"""What a real Triton makes of a model's folder that is not right: that the rules for files are true, not believed."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tritonclient.grpc as triton
from google.protobuf import text_format
from tritonclient.grpc import model_config_pb2 as pb
from tritonclient.utils import InferenceServerException

from serve_app.triton.model_folder import folder_faults

ECHO = """
import triton_python_backend_utils as pb_utils
from serve_app.triton.backend.tensors import read, write

class TritonPythonModel:
    def execute(self, requests):
        return [pb_utils.InferenceResponse([write("y", read(request, "x"))]) for request in requests]
"""
WARMUP = """model_warmup {name: "w" batch_size: 1 inputs {key: "x" value {
    data_type: TYPE_FP32 dims: [4] input_data_file: "x.raw"}}}"""
STATE = """sequence_batching {state {input_name: "si" output_name: "so" data_type: TYPE_FP32 dims: [4]
    initial_state {name: "i" data_type: TYPE_FP32 dims: [4] data_file: "x.raw"}}}"""

ENVIRONMENT = """parameters {key: "EXECUTION_ENV_PATH"
    value {string_value: "$$TRITON_MODEL_DIRECTORY/environment.tar.gz"}}"""


@pytest.fixture
def folder(server: Any, shared_folder: Path) -> Iterator[Path]:
    made = shared_folder / "models" / "folder"
    yield made
    shutil.rmtree(made)


def write(folder: Path, more: str, files: Mapping[str, str | bytes], labels: str = "") -> pb.ModelConfig:
    """A model of four values in the folder, with `more` in its configuration."""
    text = (
        f'name: "folder" backend: "python" max_batch_size: 4 instance_group [{{kind: KIND_CPU}}] {more}'
        'input [{name: "x" data_type: TYPE_FP32 dims: [4]}]'
        f'output [{{name: "y" data_type: TYPE_FP32 dims: [4] label_filename: "{labels}"}}]'
    )
    usual = {} if any(name.startswith("1") for name in files) else {"1/model.py": ECHO}
    for name, content in {"config.pbtxt": text, **usual, **files}.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content.encode() if isinstance(content, str) else content)
    return text_format.Parse(text, pb.ModelConfig())


def codes(folder: Path, config: pb.ModelConfig) -> list[str]:
    return [problem.rule.code for problem in folder_faults(folder, config)]


@pytest.mark.parametrize(
    ("code", "more", "files", "labels", "says"),
    [
        ("W020", "", {"1/model.py": "class TritonPythonModel\n"}, "", "SyntaxError"),
        ("W020", "", {"1/model.py": "return 1\n"}, "", "SyntaxError"),
        ("W021", "", {"1/model.py": "class Model: ...\n"}, "", "TritonPythonModel"),
        ("W020", "", {"1/model.py": "# coding: no\n"}, "", "SyntaxError"),
        ("W020", "", {"1/model.py": f"x = {'1+' * 100000}1\n{ECHO}"}, "", "RecursionError"),
        ("W020", "", {"1/model.py": f"x = {'-' * 200000}1\n{ECHO}"}, "", "MemoryError"),
        ("W046", "", {"1/model.py": f"{ECHO}\n    def initialize(self): ...\n"}, "", "initialize() takes 1 positional"),
        ("W022", "", {}, "labels.txt", "failed to open text file"),
        ("W031", "", {"1/model.py/0": ""}, "", "No module named '1.model'"),
        ("W032", "version_policy {specific {versions: [1]}}", {"1": ""}, "", "at least one version must be available"),
        ("W025", "version_policy {specific {versions: [7]}}", {}, "", "at least one version must be available"),
        ("W030", ENVIRONMENT, {}, "", "environment.tar.gz"),
        ("W027", WARMUP, {}, "", "failed to open text file"),
        ("W028", WARMUP, {"warmup/x.raw": bytes(15)}, "", "expects 16 bytes"),
        ("W027", STATE, {}, "", "failed to open text file"),
        ("W028", STATE, {"initial_state/x.raw": bytes(15)}, "", "expects 16 bytes"),
    ],
)
def test_triton_refuses_it_too(
    server: Any, folder: Path, code: str, more: str, files: Mapping[str, str | bytes], labels: str, says: str
) -> None:
    assert code in codes(folder, write(folder, more, files, labels))
    with triton.InferenceServerClient(server.address) as client:
        with pytest.raises(InferenceServerException) as refused:
            client.load_model("folder", client_timeout=20)
        assert says in str(refused.value)


@pytest.mark.parametrize(
    ("code", "more", "files", "labels"),
    [
        ("W023", "", {"labels.txt": ""}, "labels.txt"),
        ("W024", "", {"labels.txt": "a\nb\n"}, "labels.txt"),
        ("W025", "version_policy {specific {versions: [1, 7]}}", {}, ""),
        ("W026", "", {"v2/model.py": ECHO}, ""),
        ("W028", WARMUP, {"warmup/x.raw": bytes(17)}, ""),
    ],
    ids=["no labels", "few labels", "a version missing beside another", "v2", "a warm-up file that is too long"],
)
def test_triton_takes_it_without_a_word(
    server: Any, folder: Path, code: str, more: str, files: Mapping[str, str | bytes], labels: str
) -> None:
    assert codes(folder, write(folder, more, files, labels)) == [code]
    with triton.InferenceServerClient(server.address) as client:
        client.load_model("folder", client_timeout=20)
        assert client.is_model_ready("folder")
        client.unload_model("folder")


@pytest.mark.parametrize(
    ("odd", "becomes", "within_s"),
    [("a folder", "UNAVAILABLE", 30), ("a FIFO", "DEADLINE_EXCEEDED", 3)],
    ids=["it ends", "it waits for ever"],
)
async def test_what_triton_does_with_something_else_than_a_file(
    repository: Any, start: Any, odd: str, becomes: str, within_s: float
) -> None:
    repository.add_lookup()
    own = await start()
    folder = repository.folder / "folder"
    config = write(folder, "", {}, "labels.txt")
    (folder / "labels.txt").mkdir() if odd == "a folder" else os.mkfifo(folder / "labels.txt")
    assert codes(folder, config) == ["W031"]
    with triton.InferenceServerClient(own.address) as client, pytest.raises(InferenceServerException, match=becomes):
        await asyncio.to_thread(client.load_model, "folder", client_timeout=within_s)
    await own.stop()


def test_numpy_arrays_arrive_and_leave_empty(server: Any, folder: Path) -> None:
    code = ECHO.replace('write("y", read(request, "x"))', 'pb_utils.Tensor("y", np.full((1, 4), 7, np.float32))')
    assert codes(folder, write(folder, "", {"1/model.py": f"import numpy as np\n{code}"})) == ["W029"]
    x = triton.InferInput("x", [1, 4], "FP32")
    x.set_data_from_numpy(np.zeros((1, 4), np.float32))
    with triton.InferenceServerClient(server.address) as client:
        client.load_model("folder", client_timeout=20)
        answer = client.infer("folder", [x], client_timeout=20)
        assert [*answer.get_response().raw_output_contents] == [b""]
        client.unload_model("folder")


def test_a_class_without_execute_loads_and_fails_at_each_request(server: Any, folder: Path) -> None:
    assert codes(folder, write(folder, "", {"1/model.py": "class TritonPythonModel: ...\n"})) == ["W021"]
    x = triton.InferInput("x", [1, 4], "FP32")
    x.set_data_from_numpy(np.zeros((1, 4), np.float32))
    with triton.InferenceServerClient(server.address) as client:
        client.load_model("folder", client_timeout=20)
        with pytest.raises(InferenceServerException, match="does not implement `execute`"):
            client.infer("folder", [x], client_timeout=20)
        client.unload_model("folder")


@pytest.mark.parametrize("parameters", ["requests", "self, requests, more"])
def test_an_execute_of_other_parameters_loads_and_fails_at_each_request(
    server: Any, folder: Path, parameters: str
) -> None:
    code = ECHO.replace("execute(self, requests)", f"execute({parameters})")
    assert codes(folder, write(folder, "", {"1/model.py": code})) == ["W046"]
    x = triton.InferInput("x", [1, 4], "FP32")
    x.set_data_from_numpy(np.zeros((1, 4), np.float32))
    with triton.InferenceServerClient(server.address) as client:
        client.load_model("folder", client_timeout=20)
        with pytest.raises(InferenceServerException, match="positional argument"):
            client.infer("folder", [x], client_timeout=20)
        client.unload_model("folder")


@pytest.mark.parametrize(
    ("found", "instead"),
    [
        ("self, requests", "self, requests, more=None"),
        ("self, requests):", "self, *given):\n        (requests,) = given"),
        ("class TritonPythonModel:\n    def execute", "class TritonPythonModel: ...\n\nif True:\n    def execute"),
    ],
    ids=["a default", "a star", "added later"],
)
def test_methods_that_can_be_called_as_the_backend_calls_them_work(
    server: Any, folder: Path, found: str, instead: str
) -> None:
    more = "\n    def initialize(self, args, more=1): ...\n    def finalize(self, *more): ...\n"
    code = ECHO.replace(found, instead) + more
    if "if True:" in instead:
        code += "".join(f"\nTritonPythonModel.{name} = {name}" for name in ("execute", "initialize", "finalize"))
    assert codes(folder, write(folder, "", {"1/model.py": code})) == []
    x = triton.InferInput("x", [1, 4], "FP32")
    x.set_data_from_numpy(np.zeros((1, 4), np.float32))
    with triton.InferenceServerClient(server.address) as client:
        client.load_model("folder", client_timeout=20)
        assert client.infer("folder", [x], client_timeout=20).get_response().outputs[0].name == "y"
        client.unload_model("folder")
