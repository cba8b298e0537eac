"""A prepared model and the spec's tensors, compared without running either."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

from serve_app.kyc.antifraud import build_onnx
from serve_app.spec.tensors import Tensor, parse_tensor
from serve_app.weights.agreement import disagreements

FITTING = {"risk": "float32[1]", "contributions": "float32[17]"}


def tensors(named: dict[str, str]) -> dict[str, Tensor]:
    return {name: parse_tensor(text) for name, text in named.items()}


@pytest.fixture
def scorecard(tmp_path: Path) -> Path:
    path = tmp_path / "model.onnx"
    path.write_bytes(build_onnx().onnx)
    return path


@pytest.mark.parametrize(
    ("inputs", "outputs", "said"),
    [
        ({"factors": "float32[17]"}, FITTING, []),
        ({"factors": "float32[14]"}, FITTING, ["input factors is float32[17], and the spec's float32[14]"]),
        ({"factors": "float16[17]"}, FITTING, ["input factors is float32[17], and the spec's float16[17]"]),
        ({"factors": "float32[17, 1]"}, FITTING, ["input factors is float32[17], and the spec's float32[17, 1]"]),
        ({"factor": "float32[17]"}, FITTING, ["its inputs are factors, and the spec's factor"]),
        (
            {"factors": "float32[17]"},
            {"risk": "float32[1]"},
            ["its outputs are risk, contributions, and the spec's risk"],
        ),
    ],
    ids=["fits", "size", "type", "rank", "name", "an output too few"],
)
def test_what_differs_is_said(scorecard: Path, inputs: dict, outputs: dict, said: list[str]) -> None:
    assert disagreements(scorecard, tensors(inputs), tensors(outputs)) == said


def test_a_fixed_batch_dimension_is_said(scorecard: Path) -> None:
    model = onnx.load(scorecard)
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 1
    onnx.save(model, scorecard)
    (said,) = disagreements(scorecard, tensors({"factors": "float32[17]"}), tensors(FITTING))
    assert said.startswith("the batch dimension of input factors is fixed")
