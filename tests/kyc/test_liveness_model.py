"""The code that Triton runs for the model `liveness`, in a stand-in for its python backend."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

from serve_app.kyc.liveness import assess
from tests.kyc.frames import FLAT_HEAD, HEAD, landmarks_of

CODE = Path(__file__).parents[2] / "model_repository/liveness/1/model.py"


class TritonError(Exception):
    INVALID_ARG = 3

    def __init__(self, message: str, code: int):
        super().__init__(message, code)


class InferenceResponse:
    def __init__(self, output_tensors=(), error=None):
        self.outputs = dict(output_tensors)
        self.error = error


@pytest.fixture
def model(monkeypatch):
    backend = ModuleType("triton_python_backend_utils")
    backend.TritonError, backend.InferenceResponse = TritonError, InferenceResponse
    tensors = ModuleType("serve_app.triton.backend.tensors")
    tensors.read = lambda request, name: request.inputs[name]
    tensors.write = lambda name, array: (name, array)
    monkeypatch.setitem(sys.modules, backend.__name__, backend)
    monkeypatch.setitem(sys.modules, tensors.__name__, tensors)
    spec = importlib.util.spec_from_file_location("liveness_model", CODE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.TritonPythonModel()


def request(*landmarks: np.ndarray) -> SimpleNamespace:
    return SimpleNamespace(inputs={"landmarks": np.stack(landmarks).astype(np.float32)})


def sequence(head: np.ndarray, *yaws: float) -> np.ndarray:
    return np.stack([landmarks_of(head, yaw=yaw) for yaw in yaws])


def test_every_request_gets_the_assessment_of_each_of_its_faces(model):
    turned, flat, long = sequence(HEAD, -20, 20), sequence(FLAT_HEAD, -20, 20), sequence(HEAD, -20, 0, 5, 20)
    two, one = model.execute([request(turned, flat), request(long)])
    for response, faces in ((two, (turned, flat)), (one, (long,))):
        expected = np.array([assess(face.astype(np.float32)) for face in faces], np.float32)
        assert response.error is None
        assert response.outputs["score"].dtype == response.outputs["measures"].dtype == np.float32
        assert np.array_equal(response.outputs["score"], expected[:, :1])
        assert np.array_equal(response.outputs["measures"], expected[:, 1:])
    assert two.outputs["score"][0, 0] > 0.9
    assert two.outputs["score"][1, 0] < 0.1


def test_a_request_with_a_single_frame_gets_an_error_and_the_one_beside_it_an_answer(model):
    bad, good = model.execute([request(sequence(HEAD, 0)), request(sequence(HEAD, -20, 20))])
    assert bad.outputs == {}
    assert bad.error.args == (
        "landmarks of two or more frames [F, 5, 2] are needed, not [1, 5, 2]",
        TritonError.INVALID_ARG,
    )
    assert good.error is None
    assert good.outputs["score"].shape == (1, 1)
