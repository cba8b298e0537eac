"""A model for Triton's python backend that answers the words it is sent, and misbehaves at some of them."""

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

    def answer(self, words: Any) -> Any:
        if b"raise" in words:
            raise RuntimeError("the model was told to fail")
        if b"hang" in words:
            threading.Event().wait()
        if b"grow" in words:
            self.kept.append(np.ones(GROWTH, np.uint8))
        return np.concatenate([words, words], axis=-1) if b"double" in words else words
