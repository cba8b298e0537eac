"""A model for Triton's python backend that answers each word with itself, and misbehaves at some."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
import triton_python_backend_utils as pb_utils

from serve_app.triton.backend.tensors import read, write

GROWTH = 64 * 2**20


class TritonPythonModel:
    def initialize(self, arguments: dict[str, str]) -> None:
        self.kept: list[np.ndarray[Any, Any]] = []

    def execute(self, requests: Sequence[Any]) -> list[Any]:
        return [pb_utils.InferenceResponse([write("ECHO", self.answer(read(request, "WORD")))]) for request in requests]

    def answer(self, letters: Any) -> Any:
        word = letters.tobytes()
        if word == b"raise":
            raise RuntimeError("the model was told to fail")
        if word == b"hang":
            threading.Event().wait()
        if word == b"grow":
            self.kept.append(np.ones(GROWTH, np.uint8))
        return np.concatenate([letters, letters]) if word == b"double" else letters
