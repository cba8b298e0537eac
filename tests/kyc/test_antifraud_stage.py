from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import onnxruntime
import pytest

from serve_app.kyc import antifraud
from serve_app.kyc.answers import Antifraud, Document, FaceMatch
from serve_app.kyc.antifraud_stage import AntifraudCheck
from serve_app.model import Array, Float32
from serve_app.problem import Problem
from tests.kyc import spotless


class Scorecard:
    """The antifraud model in this process."""

    labels: Sequence[str] = ()

    def __init__(self) -> None:
        self.session = onnxruntime.InferenceSession(antifraud.build_onnx().onnx, providers=["CPUExecutionProvider"])

    async def __call__(self, *inputs: Array) -> tuple[Float32, Float32]:
        (factors,) = inputs
        risk, contributions = self.session.run(["risk", "contributions"], {"factors": factors})
        return risk, contributions


class Broken(Scorecard):
    """Answers a risk that is not a number."""

    async def __call__(self, *inputs: Array) -> tuple[Float32, Float32]:
        risk, contributions = await super().__call__(*inputs)
        return np.full_like(risk, np.nan), contributions


async def assess(face: FaceMatch | None = None, document: Document | None = None) -> Antifraud:
    stage = AntifraudCheck(antifraud=Scorecard(), today=lambda: spotless.TODAY)
    return await stage.assess(face or spotless.match(), document or spotless.document())


async def test_the_answer_holds_every_number_that_led_to_the_risk() -> None:
    card = await assess(document=spotless.document().model_copy(update={"mrz": None}))
    assert card.measures["face_distance"] == pytest.approx(0.375)
    assert card.measures["mrz_check_digits"] is None
    assert card.factors["mrz_missing"] == 1
    assert card.contributions["mrz_missing"] == pytest.approx(1.2)


async def test_the_risk_follows_from_the_contributions_in_the_answer() -> None:
    card = await assess(face=spotless.match().model_copy(update={"similarity": 0.4}))
    log_odds = card.intercept + sum(card.contributions.values())
    assert card.risk == pytest.approx(1 / (1 + math.exp(-log_odds)), rel=1e-5)
    assert card.contributions.keys() == card.factors.keys() == card.measures.keys()


async def test_a_risk_that_is_not_a_number_is_a_failure_of_the_model() -> None:
    stage = AntifraudCheck(antifraud=Broken(), today=lambda: spotless.TODAY)
    with pytest.raises(Problem) as failed:
        await stage.assess(spotless.match(), spotless.document())
    assert (failed.value.status, failed.value.code) == (503, "model_failed")
