"""A model for Triton's python backend that answers what it is sent, and misbehaves where it is told to."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
import triton_python_backend_utils as pb_utils

from serve_app.bench.chaos.orders import GROWTH, Order
from serve_app.triton.backend.tensors import read, write


class TritonPythonModel:
    def initialize(self, arguments: dict[str, str]) -> None:
        self.kept: list[np.ndarray[Any, Any]] = []

    def execute(self, requests: Sequence[Any]) -> list[Any]:
        return [
            pb_utils.InferenceResponse([write("ECHO", self.answer(read(request, "ORDER")))]) for request in requests
        ]

    def answer(self, given: Any) -> Any:
        orders = set(given.ravel().tolist())
        if Order.RAISE in orders:
            raise RuntimeError("the model was told to fail")
        if Order.HANG in orders:
            threading.Event().wait()
        if Order.GROW in orders:
            self.kept.append(np.ones(GROWTH, np.uint8))
        return np.concatenate([given, given], axis=-1) if Order.WRONG_SHAPE in orders else given
