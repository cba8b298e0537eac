"""A model that sleeps as long as an accelerator would work: a time for each batch, and one for each item in it."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from typing import Any

import triton_python_backend_utils as pb_utils

from serve_app.triton.backend.tensors import read, write


class TritonPythonModel:
    """`batch_us` and `item_us` among the model's parameters are microseconds."""

    def initialize(self, args: Mapping[str, str]) -> None:
        parameters = json.loads(args["model_config"])["parameters"]
        self._batch_s, self._item_s = (
            float(parameters[name]["string_value"]) / 1e6 for name in ("batch_us", "item_us")
        )

    def execute(self, requests: Sequence[Any]) -> list[Any]:
        until = time.monotonic() + self._batch_s + self._item_s * len(requests)
        answers = [pb_utils.InferenceResponse([write("y", read(request, "x"))]) for request in requests]
        time.sleep(max(0.0, until - time.monotonic()))
        return answers
