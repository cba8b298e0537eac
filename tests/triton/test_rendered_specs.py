"""What the validator accepts, a real Triton loads: a few specs at random, with the files that they name."""

from __future__ import annotations

import math
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import tritonclient.grpc as triton
from google.protobuf import text_format
from hypothesis import Phase, given, settings
from tritonclient.grpc import model_config_pb2 as pb

from serve_app.importing.yaml_text import yaml_lines
from serve_app.render.triton import model_config
from serve_app.spec.load import examine
from serve_app.triton.server import TritonServer
from tests.render.specs import specs

LOAD_S = 60
BYTES = {"BOOL": 1, "UINT8": 1, "INT16": 2, "FP16": 2, "INT32": 4, "FP32": 4, "INT64": 8, "FP64": 8}
# Answers zeros, of the size 1 where a dimension varies.
ZEROS = """
import json
import numpy as np
import triton_python_backend_utils as pb_utils
from serve_app.triton.backend.tensors import write

class TritonPythonModel:
    def initialize(self, args):
        self.config = json.loads(args["model_config"])

    def execute(self, requests):
        responses = [self.zeros(request) for request in requests]
        if not self.config.get("model_transaction_policy", {}).get("decoupled"):
            return responses
        for request, response in zip(requests, responses):
            request.get_response_sender().send(response, flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)

    def zeros(self, request):
        batch = [request.inputs()[0].shape()[0]] if self.config["max_batch_size"] else []
        outputs = []
        for output in self.config["output"]:
            dims = [1 if int(size) < 0 else int(size) for size in output["dims"]]
            dtype = pb_utils.triton_string_to_numpy(output["data_type"])
            outputs.append(write(output["name"], np.zeros(batch + dims, dtype)))
        return pb_utils.InferenceResponse(outputs)
"""


def write_model(folder: Path, config: pb.ModelConfig) -> None:
    """The folder of a model or an ensemble, with every file that its configuration names."""
    folder.mkdir()
    (folder / "config.pbtxt").write_text(text_format.MessageToString(config, as_utf8=True))
    for version in config.version_policy.specific.versions or [1]:
        (folder / str(version)).mkdir()
        if not config.HasField("ensemble_scheduling"):
            (folder / str(version) / config.default_model_filename).write_text(ZEROS)
    for output in config.output:
        if output.label_filename:
            (folder / output.label_filename).write_text("label\n")
    for warmup in config.model_warmup:
        for source in warmup.inputs.values():
            if source.input_data_file:
                size = BYTES[pb.DataType.Name(source.data_type).removeprefix("TYPE_")] * math.prod(source.dims)
                path = folder / "warmup" / source.input_data_file
                path.parent.mkdir(exist_ok=True)
                if not path.is_file() or path.stat().st_size < size:
                    path.write_bytes(bytes(size))


def still_there(client: triton.InferenceServerClient, names: list[str]) -> list[str]:
    """Which of the models are loaded, or are still being unloaded."""
    index = client.get_model_repository_index().models
    return [model.name for model in index if model.name in names and model.state != "UNAVAILABLE"]


@settings(max_examples=5, phases=[Phase.generate], report_multiple_bugs=False)
@given(data=specs(profiles=(("embedded",),), backends=("python",), by_wheel=True))
def test_triton_loads_what_the_validator_accepts(
    server: TritonServer, shared_folder: Path, eventually: Callable[..., None], data: dict[str, Any]
) -> None:
    spec = examine("\n".join(yaml_lines(data))).usable()
    names = [*spec.models, *spec.ensembles]
    folders = [shared_folder / "models" / name for name in names]
    try:
        for name, folder in zip(names, folders, strict=True):
            write_model(folder, model_config(spec, name, "embedded"))
        with triton.InferenceServerClient(server.address) as client:
            for name in names:
                client.load_model(name, client_timeout=LOAD_S)
                assert client.is_model_ready(name)
            for name in reversed(names):
                client.unload_model(name)
            # Loading a model while another of its name is being unloaded crashes this Triton.
            eventually(lambda: not still_there(client, names), LOAD_S)
    finally:
        for folder in folders:
            shutil.rmtree(folder, ignore_errors=True)
