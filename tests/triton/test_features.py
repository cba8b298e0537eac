"""What the server does only where the profile asks for it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tritonclient.grpc as triton
from tritonclient.utils import InferenceServerException

from serve_app.spec.model import Resource
from serve_app.triton.launch import Features

COUNTING = """
import numpy as np
import triton_python_backend_utils as pb_utils
from serve_app.triton.backend.tensors import read, write

class TritonPythonModel:
    def initialize(self, args):
        self.runs = 0

    def execute(self, requests):
        self.runs += 1
        return [
            pb_utils.InferenceResponse([write("run", np.full((len(read(request, "x")), 1), self.runs, np.int32))])
            for request in requests
        ]
"""
CONFIG = (
    "max_batch_size: 4 response_cache {enable: true}"
    'input [{name: "x" data_type: TYPE_FP32 dims: [1]}] output [{name: "run" data_type: TYPE_INT32 dims: [1]}]'
)


@pytest.mark.parametrize(
    ("features", "runs"), [(Features(response_cache=2**20), [1, 1, 2]), (Features(), [1, 2, 3])], ids=["on", "off"]
)
async def test_a_request_that_came_before_is_answered_from_the_cache_where_there_is_one(
    features: Features, runs: list[int], repository: Any, start: Any, infer: Any
) -> None:
    repository.add("counting", COUNTING, CONFIG)
    server = await start(features=features)
    try:
        inputs = [np.full((1, 1), value, np.float32) for value in (1, 1, 2)]
        assert [infer(server.address, "counting", {"x": x}, "run").item() for x in inputs] == runs
    finally:
        await server.stop(0)


@pytest.mark.parametrize("all_devices", [True, False])
async def test_a_model_that_wants_more_of_a_resource_than_there_is_does_not_load(
    all_devices: bool, repository: Any, start: Any
) -> None:
    repository.add("first", COUNTING, CONFIG.replace("response_cache {enable: true}", ""))
    stock = Resource(count=1, all_devices=all_devices)
    server = await start(features=Features(rate_limit=True, resources={"memory": stock}))
    try:
        repository.add("second", COUNTING, CONFIG.replace("response_cache {enable: true}", ""))
        config = repository.folder / "second" / "config.pbtxt"
        scope = f"global: {str(all_devices).lower()}"
        wants = f'rate_limiter {{resources [{{name: "memory" count: 2 {scope}}}]}}'
        config.write_text(config.read_text().replace("count: 1}", f"count: 1 {wants}}}", 1))
        with (
            triton.InferenceServerClient(server.address) as client,
            pytest.raises(InferenceServerException, match="memory"),
        ):
            client.load_model("second", client_timeout=20)
    finally:
        await server.stop(0)
