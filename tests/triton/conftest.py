"""A real Triton with small models, and what is needed to see from outside that nothing of it is left."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import pytest_asyncio
import tritonclient.grpc as triton
from google.protobuf import text_format
from onnx import TensorProto, helper
from tritonclient.utils import np_to_triton_dtype

from serve_app.artefacts import mirror_directory
from serve_app.render.triton import model_config
from serve_app.spec import Spec
from serve_app.triton.find import Installation, find
from serve_app.triton.server import TritonServer
from serve_app.weights.archive import unpack_wheel
from serve_app.weights.fetch import cache_directory, fetch
from tests.rules.case import patched

WHEEL = ("nvidia-pytriton==0.7.0", "21f063ff93bb426d0c06b7a55e7eb9efcfe62c0dddd9a908e9877e18710128df")
DTYPES = ["BOOL", "UINT8", "UINT16", "UINT32", "UINT64", "INT8", "INT16", "INT32", "INT64", "FP16", "FP32", "FP64"]
ONNX_CODE = "from serve_app.triton.backend.onnx_model import TritonPythonModel\n"

# Answers every input X_<dtype> in reverse along its last dimension, a view that is not contiguous, as Y_<dtype>.
REVERSE_CODE = """
import triton_python_backend_utils as pb_utils
from serve_app.triton.backend.tensors import read, write

class TritonPythonModel:
    def execute(self, requests):
        return [
            pb_utils.InferenceResponse(
                [write("Y" + tensor.name()[1:], read(request, tensor.name())[..., ::-1]) for tensor in request.inputs()]
            )
            for request in requests
        ]
"""


@dataclass(frozen=True)
class Repository:
    """A model repository in the making."""

    folder: Path

    def add(self, name: str, code: str, config: str, graph: onnx.ModelProto | None = None) -> None:
        version = self.folder / name / "1"
        version.mkdir(parents=True)
        (version / "model.py").write_text(code)
        (self.folder / name / "config.pbtxt").write_text(
            f'name: "{name}" backend: "python" instance_group [{{kind: KIND_CPU count: 1}}] {config}'
        )
        if graph is not None:
            onnx.save(graph, version / "model.onnx")

    def add_lookup(self, name: str = "lookup", *, dtype: str = "INT64", batch: int | str = "N") -> None:
        """index int64[-1] → value fp32[-1], twice the index, and merged int64[1], the rows of the run it was part of.

        An index above 9 makes ONNX Runtime fail the whole run.
        """
        config = (
            "max_batch_size: 8 dynamic_batching {max_queue_delay_microseconds: 100000}"
            f'input [{{name: "index" data_type: TYPE_{dtype} dims: [-1]}}]'
            'output [{name: "value" data_type: TYPE_FP32 dims: [-1]}, {name: "merged" data_type: TYPE_INT64 dims: [1]}]'
            'parameters {key: "intra_op_threads" value {string_value: "1"}}'
        )
        self.add(name, ONNX_CODE, config, lookup_graph(batch))

    def add_reverse(self) -> None:
        inputs = ",".join(
            f'{{name: "X_{d}" data_type: TYPE_{d} dims: [-1, -1, -1, -1] optional: true}}' for d in DTYPES
        )
        outputs = ",".join(f'{{name: "Y_{d}" data_type: TYPE_{d} dims: [-1, -1, -1, -1]}}' for d in DTYPES)
        self.add("reverse", REVERSE_CODE, f"max_batch_size: 0 input [{inputs}] output [{outputs}]")


def lookup_graph(batch: int | str) -> onnx.ModelProto:
    table = helper.make_tensor("table", TensorProto.FLOAT, [10], [2.0 * index for index in range(10)])
    one, zero = (helper.make_tensor(str(number), TensorProto.INT64, [1], [number]) for number in (1, 0))
    nodes = [
        helper.make_node("Gather", ["table", "index"], ["value"]),
        helper.make_node("Shape", ["index"], ["shape"]),
        helper.make_node("Slice", ["shape", "0", "1"], ["rows"]),
        helper.make_node("Concat", ["rows", "1"], ["column"], axis=0),
        helper.make_node("Expand", ["rows", "column"], ["merged"]),
    ]
    graph = helper.make_graph(
        nodes,
        "lookup",
        [helper.make_tensor_value_info("index", TensorProto.INT64, [batch, "K"])],
        [
            helper.make_tensor_value_info("value", TensorProto.FLOAT, [batch, "K"]),
            helper.make_tensor_value_info("merged", TensorProto.INT64, [batch, 1]),
        ],
        [table, one, zero],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.fixture(scope="session")
def unpacked() -> Path:
    """The nvidia-pytriton wheel, fetched as users fetch it."""
    folder = cache_directory() / "triton" / WHEEL[1]
    if not folder.is_dir():
        unpack_wheel(fetch(*WHEEL, "wheel", cache=cache_directory(), mirror=mirror_directory()), folder)
    return folder


@pytest.fixture(scope="session")
def installation(unpacked) -> Installation:
    return find(unpacked)


@pytest.fixture
def repository(tmp_path) -> Repository:
    (tmp_path / "models").mkdir()
    return Repository(tmp_path / "models")


@pytest.fixture(scope="session")
def shared_folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("shared-triton")


@pytest.fixture
def server_log(shared_folder) -> Path:
    return shared_folder / "logs" / f"triton-{os.getpid()}.log"


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def server(installation, shared_folder) -> AsyncIterator[TritonServer]:
    """The server that most tests share, with the models `reverse` and `lookup`."""
    repository = Repository(shared_folder / "models")
    repository.add_reverse()
    repository.add_lookup()
    started = await TritonServer.start(
        installation,
        repository.folder,
        models=["reverse", "lookup"],
        ready_timeout=60,
        exit_timeout=10,
        log_directory=shared_folder / "logs",
        environment={"CUDA_VISIBLE_DEVICES": ""},
    )
    yield started
    await started.stop()


@pytest.fixture
def start(installation, repository, tmp_path):
    """Starts a server of the test's own with all models of its `repository`."""

    async def start(**options: Any) -> TritonServer:
        given = {"ready_timeout": 60, "exit_timeout": 10, "environment": {"CUDA_VISIBLE_DEVICES": ""}, **options}
        repository_folder = given.pop("folder", repository.folder)
        models = sorted(folder.name for folder in repository_folder.iterdir())
        return await TritonServer.start(
            installation, repository_folder, models=models, log_directory=tmp_path / "logs", **given
        )

    return start


@pytest.fixture(scope="session")
def infer() -> Callable[..., np.ndarray]:
    """Sends one request over gRPC; answers the output asked for."""

    def infer(address: str, model: str, inputs: Mapping[str, np.ndarray], output: str) -> np.ndarray:
        with triton.InferenceServerClient(address) as client:
            return client.infer(
                model, encode(inputs), outputs=[triton.InferRequestedOutput(output)], client_timeout=20
            ).as_numpy(output)

    return infer


def encode(inputs: Mapping[str, np.ndarray]) -> list[triton.InferInput]:
    encoded = []
    for name, array in inputs.items():
        tensor = triton.InferInput(name, array.shape, np_to_triton_dtype(array.dtype))
        tensor.set_data_from_numpy(array)
        encoded.append(tensor)
    return encoded


@pytest.fixture(scope="session", name="encode")
def _encode():
    return encode


@pytest.fixture(scope="session")
def processes() -> Callable[[str], dict[int, list[str]]]:
    """The arguments of the live processes that have a text among them."""

    def processes(text: str) -> dict[int, list[str]]:
        found = {}
        for entry in Path("/proc").iterdir():
            try:
                arguments = (entry / "cmdline").read_text() if entry.name.isdigit() else ""
            except (FileNotFoundError, ProcessLookupError):
                continue
            if text in arguments and int(entry.name) != os.getpid():
                found[int(entry.name)] = arguments.split("\0")
        return found

    return processes


@pytest.fixture(scope="session")
def stub_of(processes) -> Callable[[str, str], int]:
    """The process of a model of the server whose names begin with a prefix."""

    def stub_of(prefix: str, model: str) -> int:
        (pid,) = (
            pid
            for pid, arguments in processes(prefix).items()
            if arguments[0].endswith("triton_python_backend_stub") and f"/{model}/" in arguments[1]
        )
        return pid

    return stub_of


@pytest.fixture(scope="session")
def belongings(processes) -> Callable[[str], Callable[[], list[str]]]:
    """Answers a function that lists what there is of the running server whose names begin with a prefix."""

    def belongings(prefix: str) -> Callable[[], list[str]]:
        (scratch,) = {
            Path(argument.partition("=")[2])
            for arguments in processes(prefix).values()
            for argument in arguments
            if argument.startswith("--backend-directory=")
        }

        def left() -> list[str]:
            segments = [segment.name for segment in Path("/dev/shm").glob(f"{prefix}*")]
            running = [f"{pid} {' '.join(arguments)}" for pid, arguments in processes(prefix).items()]
            return [*running, *segments, *([str(scratch)] if scratch.exists() else [])]

        assert len(left()) >= 4  # the server, a model's process, its memory, the scratch folder
        return left

    return belongings


@pytest.fixture(scope="session")
def eventually() -> Callable[..., None]:
    """Waits until a condition holds, and fails where it does not within `within` seconds."""

    def eventually(condition: Callable[[], object], within: float = 5.0) -> None:
        deadline = time.monotonic() + within
        while not condition():
            assert time.monotonic() < deadline, f"not within {within} s"
            time.sleep(0.01)

    return eventually


@pytest.fixture
def load(server: TritonServer, shared_folder: Path) -> Iterator[Callable[..., triton.InferenceServerClient]]:
    """Loads a model or ensemble of MINIMAL with a patch on the shared server, unchecked; `code` is all its models'."""
    folder = shared_folder / "models"
    before = set(folder.iterdir())
    with triton.InferenceServerClient(server.address) as client:

        def load(patch: Mapping[str, Any], code: str, name: str = "m") -> triton.InferenceServerClient:
            spec = Spec.model_validate(patched(patch))
            for each in [*spec.models, *spec.ensembles]:
                (folder / each / "1").mkdir(parents=True)
                if each in spec.models:
                    (folder / each / "1" / "model.py").write_text(code)
                config = text_format.MessageToString(model_config(spec, each, "embedded"))
                (folder / each / "config.pbtxt").write_text(config)
            client.load_model(name, client_timeout=20)
            return client

        yield load
        for added in set(folder.iterdir()) - before:
            client.unload_model(added.name)
            shutil.rmtree(added)
