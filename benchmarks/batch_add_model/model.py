"""Triton's smallest model that batches: adds two numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import triton_python_backend_utils as pb_utils

from serve_app.triton.backend.tensors import read, write


class TritonPythonModel:
    def execute(self, requests: Sequence[Any]) -> list[Any]:
        return [
            pb_utils.InferenceResponse([write("OUTPUT_SUM", read(request, "INPUT_A") + read(request, "INPUT_B"))])
            for request in requests
        ]
