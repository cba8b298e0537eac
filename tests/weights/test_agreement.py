"""The project's own graphs and its spec, compared without running either; tests/test_model_files.py has the rest."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

from serve_app.kyc.antifraud import build_onnx
from serve_app.spec.model import Model
from serve_app.weights.agreement import disagreements
from serve_app.weights.onnx_file import NotOnnx, read_graph

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
            ["factor: the graph's inputs are factors"],
        ),
        ({"factors": "float32[17]"}, {"risk": "float32[1]"}, ["outputs: the graph has an output contributions too"]),
    ],
    ids=["fits", "size", "type", "name", "an output too few"],
)
def test_what_differs_is_said(
    scorecard: Path, inputs: dict[str, str], outputs: dict[str, str], expected: list[str]
) -> None:
    assert said(scorecard, inputs, outputs) == expected


def test_one_name_that_is_wrong_on_each_side_is_to_be_renamed(scorecard: Path) -> None:
    outputs = {"risk": "float32[1]", "contributon": "float32[18]"}
    model = Model.model_validate({"inputs": {"factors": "float32[17]"}, "outputs": outputs, "max_batch": 8})
    name, dims = disagreements(read_graph(scorecard), model, 8, PLACE)
    assert name.message == (
        "the graph's outputs are risk, contributions: Triton refuses the model, or every request fails; "
        "call it contributions"
    )
    assert name.place == dims.place == (*PLACE, "outputs", "contributon")
    assert dims.what == "output contributions of the graph has [17], and the spec [18]"


def test_several_wrong_names_are_said_on_both_sides(scorecard: Path) -> None:
    assert said(scorecard, {"factors": "float32[17]"}, {"a": "float32[1]", "b": "float32[17]"}) == [
        "a: the graph's outputs are risk, contributions",
        "b: the graph's outputs are risk, contributions",
        "outputs: the graph has an output risk too",
        "outputs: the graph has an output contributions too",
    ]


@pytest.mark.parametrize("domain", ["", "ai.onnx", "ai.onnx.ml"])
def test_an_opset_that_there_is_not_is_no_model(scorecard: Path, domain: str) -> None:
    made = onnx.load(scorecard)
    made.opset_import.append(onnx.helper.make_opsetid(domain, 99))
    scorecard.write_bytes(made.SerializeToString())
    with pytest.raises(NotOnnx, match=f"^it is stamped with opset 99 of {domain or 'ai.onnx'}, and the newest that"):
        read_graph(scorecard)


def test_the_opset_of_a_domain_of_somebodys_own_is_his_to_count(scorecard: Path) -> None:
    made = onnx.load(scorecard)
    made.opset_import.append(onnx.helper.make_opsetid("com.example", 99))
    scorecard.write_bytes(made.SerializeToString())
    read_graph(scorecard)
