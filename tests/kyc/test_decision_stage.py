from __future__ import annotations

import math
from datetime import date, datetime, timezone

import pytest

from serve_app.kyc.answers import Antifraud, Verification
from serve_app.kyc.decision_stage import Decision, DecisionSettings
from serve_app.kyc.document_dates import utc_today
from tests.kyc import spotless


def stage(settings: DecisionSettings | None = None) -> Decision:
    return Decision(settings=settings or DecisionSettings(), today=lambda: spotless.TODAY)


def antifraud(risk: float = 0.02) -> Antifraud:
    return Antifraud(risk=risk, factors={}, measures={}, contributions={}, intercept=-4)


async def test_a_spotless_verification_is_approved_and_repeats_what_was_found() -> None:
    found = spotless.match(), spotless.document(), spotless.liveness(), antifraud()
    answer = await stage().decide(*found)
    assert (answer.decision, answer.reasons) == ("approve", [])
    assert (answer.face, answer.document, answer.liveness, answer.antifraud) == found


async def test_the_answer_holds_every_threshold_that_led_to_the_decision() -> None:
    settings = DecisionSettings(risk_review=0.3)
    answer = await stage(settings).decide(spotless.match(), spotless.document(), spotless.liveness(), antifraud())
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


async def test_reasons_are_the_stable_codes() -> None:
    face = spotless.match().model_copy(update={"similarity": 0.1, "match": False})
    answer = await stage().decide(face, spotless.document(), spotless.liveness(), antifraud(0.5))
    assert answer.decision == "reject"
    assert answer.reasons == ["FACE_MISMATCH", "ANTIFRAUD_RISK_ELEVATED"]


async def test_without_antifraud_a_person_has_to_look_and_the_answer_says_so() -> None:
    answer = await stage().decide(spotless.match(), spotless.document(), spotless.liveness(), None)
    assert (answer.decision, answer.reasons, answer.antifraud) == ("review", ["ANTIFRAUD_UNAVAILABLE"], None)


async def test_the_settings_decide() -> None:
    strict = DecisionSettings(min_sharpness=1000)
    answer = await stage(strict).decide(spotless.match(), spotless.document(), spotless.liveness(), antifraud())
    assert (answer.decision, answer.reasons) == ("review", ["IMAGE_QUALITY_LOW"])


async def test_the_day_is_asked_for_at_every_verification() -> None:
    days = iter([date(2031, 4, 15), date(2031, 4, 16)])
    decision = Decision(settings=DecisionSettings(), today=lambda: next(days))
    found = (spotless.match(), spotless.document(), spotless.liveness(), antifraud())
    assert (await decision.decide(*found)).decision == "approve"
    assert (await decision.decide(*found)).reasons == ["DOCUMENT_EXPIRED"]


@pytest.mark.parametrize("found", [antifraud(), None], ids=["whole", "without antifraud"])
async def test_the_answer_survives_json(found: Antifraud | None) -> None:
    answer = await stage().decide(spotless.match(), spotless.document(), spotless.liveness(), found)
    assert Verification.model_validate_json(answer.model_dump_json()) == answer


async def test_a_risk_that_is_not_a_number_is_refused_rather_than_approved() -> None:
    unusable = antifraud().model_copy(update={"risk": math.nan})
    with pytest.raises(ValueError, match="not a finite number: risk"):
        await stage().decide(spotless.match(), spotless.document(), spotless.liveness(), unusable)


def test_the_day_is_that_of_utc() -> None:
    before, day, after = datetime.now(timezone.utc).date(), utc_today(), datetime.now(timezone.utc).date()
    assert before <= day <= after
