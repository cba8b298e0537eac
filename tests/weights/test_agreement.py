"""The project's own graphs and its spec, compared without running either; tests/test_model_files.py has the rest."""

from __future__ import annotations

from pathlib import Path

import pytest

from serve_app.kyc.antifraud import build_onnx
from serve_app.spec.model import Model
from serve_app.weights.agreement import disagreements
from serve_app.weights.onnx_file import read_graph

PLACE = ("models", "antifraud")
FITTING = {"risk": "float32[1]", "contributions": "float32[17]"}


@pytest.fixture
def scorecard(tmp_path: Path) -> Path:
    path = tmp_path / "model.onnx"
    path.write_bytes(build_onnx().onnx)
    return path


def said(file: Path, inputs: dict[str, str], outputs: dict[str, str]) -> list[str]:
    model = Model.model_validate({"inputs": inputs, "outputs": outputs, "max_batch": 8})
    return [f"{fault.place[-1]}: {fault.what}" for fault in disagreements(read_graph(file), model, 8, PLACE)]


@pytest.mark.parametrize(
    ("inputs", "outputs", "expected"),
    [
        ({"factors": "float32[17]"}, FITTING, []),
        (
            {"factors": "float32[14]"},
            FITTING,
            ["factors: input factors of the graph has [17], and the spec [14]"],
        ),
        (
            {"factors": "float16[17]"},
            FITTING,
            ["factors: input factors of the graph is float32, and the spec's float16"],
        ),
        (
            {"factor": "float32[17]"},
            FITTING,
            [
                "factor: the graph's inputs are factors",
                "inputs: the graph takes an input factors, and the spec's are factor",
            ],
        ),
        ({"factors": "float32[17]"}, {"risk": "float32[1]"}, ["outputs: the graph has an output contributions too"]),
    ],
    ids=["fits", "size", "type", "name", "an output too few"],
)
def test_what_differs_is_said(
    scorecard: Path, inputs: dict[str, str], outputs: dict[str, str], expected: list[str]
) -> None:
    assert said(scorecard, inputs, outputs) == expected
