from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import date, datetime, timezone

import numpy as np
import onnxruntime
import pytest

from serve_app.kyc import antifraud
from serve_app.kyc.answers import Verification
from serve_app.kyc.decision_stage import Decision, DecisionSettings
from serve_app.kyc.document_dates import utc_today
from serve_app.model import Array, Float32
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


def stage(settings: DecisionSettings | None = None) -> Decision:
    return Decision(antifraud=Scorecard(), settings=settings or DecisionSettings(), today=lambda: spotless.TODAY)


async def test_a_spotless_verification_is_approved_and_repeats_what_was_found() -> None:
    face, document, liveness = spotless.match(), spotless.document(), spotless.liveness()
    answer = await stage().decide(face, document, liveness)
    assert (answer.decision, answer.reasons) == ("approve", [])
    assert (answer.face, answer.document, answer.liveness) == (face, document, liveness)


async def test_the_answer_holds_every_number_that_led_to_the_decision() -> None:
    settings = DecisionSettings(risk_review=0.3)
    document = spotless.document().model_copy(update={"mrz": None})
    answer = await stage(settings).decide(spotless.match(), document, spotless.liveness())
    assert answer.thresholds == {
        "face_margin": 0.05,
        "min_sharpness": 20,
        "min_brightness": 20,
        "max_brightness": 235,
        "min_text_confidence": 0.6,
        "min_printed_agreement": 0.5,
        "risk_review": 0.3,
        "risk_reject": 0.8,
    }
    assert answer.today == spotless.TODAY
    assert answer.antifraud.measures["face_distance"] == pytest.approx(0.375)
    assert answer.antifraud.measures["mrz_check_digits"] is None
    assert answer.antifraud.factors["mrz_missing"] == 1
    assert answer.antifraud.contributions["mrz_missing"] == pytest.approx(1.2)


async def test_the_risk_follows_from_the_contributions_in_the_answer() -> None:
    face = spotless.match().model_copy(update={"similarity": 0.4})
    card = (await stage().decide(face, spotless.document(), spotless.liveness())).antifraud
    log_odds = card.intercept + sum(card.contributions.values())
    assert card.risk == pytest.approx(1 / (1 + math.exp(-log_odds)), rel=1e-5)
    assert card.contributions.keys() == card.factors.keys() == card.measures.keys()


async def test_reasons_are_the_stable_codes() -> None:
    face = spotless.match().model_copy(update={"similarity": 0.1, "match": False})
    answer = await stage().decide(face, spotless.document(), spotless.liveness())
    assert answer.decision == "reject"
    assert answer.reasons == ["FACE_MISMATCH", "ANTIFRAUD_RISK_ELEVATED"]


async def test_the_settings_decide() -> None:
    strict = DecisionSettings(min_sharpness=1000)
    answer = await stage(strict).decide(spotless.match(), spotless.document(), spotless.liveness())
    assert (answer.decision, answer.reasons) == ("review", ["IMAGE_QUALITY_LOW"])


async def test_the_day_is_asked_for_at_every_verification() -> None:
    days = iter([date(2031, 4, 15), date(2031, 4, 16)])
    decision = Decision(antifraud=Scorecard(), settings=DecisionSettings(), today=lambda: next(days))
    found = (spotless.match(), spotless.document(), spotless.liveness())
    assert (await decision.decide(*found)).decision == "approve"
    assert (await decision.decide(*found)).reasons == ["DOCUMENT_EXPIRED"]


async def test_the_answer_survives_json() -> None:
    answer = await stage().decide(spotless.match(), spotless.document(), spotless.liveness())
    assert Verification.model_validate_json(answer.model_dump_json()) == answer


async def test_a_risk_that_is_not_a_number_is_refused_rather_than_approved() -> None:
    decision = Decision(antifraud=Broken(), settings=DecisionSettings(), today=lambda: spotless.TODAY)
    with pytest.raises(ValueError, match="finite number"):
        await decision.decide(spotless.match(), spotless.document(), spotless.liveness())


def test_the_day_is_that_of_utc() -> None:
    before, day, after = datetime.now(timezone.utc).date(), utc_today(), datetime.now(timezone.utc).date()
    assert before <= day <= after
