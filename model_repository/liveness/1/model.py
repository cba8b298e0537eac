"""Liveness in Triton: landmarks of a face over its frames in, how much like a solid head it moved out.

`landmarks` fp32[B, F, 5, 2] → `score` fp32[B, 1] and `measures` fp32[B, 2] (motion, parallax), as
`serve_app.kyc.liveness` has them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import triton_python_backend_utils as pb_utils

from serve_app.kyc.liveness import assess
from serve_app.triton.backend.tensors import read, write


class TritonPythonModel:
    def execute(self, requests: list[Any]) -> list[Any]:
        """One response per request; a request whose landmarks cannot be assessed gets an error of its own."""
        return [_respond(request) for request in requests]


def _respond(request: Any) -> Any:
    try:
        assessments = np.array([assess(face) for face in read(request, "landmarks")], np.float32).reshape(-1, 3)
    except ValueError as error:
        return pb_utils.InferenceResponse(error=pb_utils.TritonError(str(error), pb_utils.TritonError.INVALID_ARG))
    return pb_utils.InferenceResponse([write("score", assessments[:, :1]), write("measures", assessments[:, 1:])])
