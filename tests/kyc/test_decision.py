from __future__ import annotations

import math
from collections.abc import Callable
from datetime import date, timedelta
from typing import Any

import pytest
from pydantic import ValidationError

from serve_app.kyc.answers import Document, FaceMatch, Liveness
from serve_app.kyc.decision import DecisionSettings, Reason, decide
from tests.kyc import spotless

# Binary fractions, so that sums and differences are exact and a boundary is one.
SETTINGS = DecisionSettings(
    face_margin=0.125,
    min_sharpness=20,
    min_brightness=20,
    max_brightness=235,
    min_text_confidence=0.5,
    min_printed_agreement=0.5,
    risk_review=0.25,
    risk_reject=0.75,
)
Evidence = tuple[FaceMatch, Document, Liveness, float | None]


def evidence(
    *,
    face: dict[str, Any] | None = None,
    selfie: dict[str, Any] | None = None,
    portrait: dict[str, Any] | None = None,
    document: dict[str, Any] | None = None,
    fields: dict[str, str | None] | None = None,
    mrz: dict[str, Any] | None = None,
    liveness: dict[str, Any] | None = None,
    risk: float | None = 0.02,
) -> Evidence:
    """A spotless verification with these differences."""
    match, paper, live = spotless.match(), spotless.document(), spotless.liveness()
    crops = {
        "selfie": match.selfie.model_copy(update=selfie or {}),
        "document": match.document.model_copy(update=portrait or {}),
    }
    assert paper.mrz is not None
    parts = {"fields": {**paper.fields, **(fields or {})}, "mrz": paper.mrz.model_copy(update=mrz or {})}
    return (
        match.model_copy(update={**crops, **(face or {})}),
        paper.model_copy(update={**parts, **(document or {})}),
        live.model_copy(update=liveness or {}),
        risk,
    )


def outcome(evidence: Evidence, settings: DecisionSettings = SETTINGS) -> tuple[str, list[str]]:
    decision, reasons = decide(*evidence, thresholds=settings, today=spotless.TODAY)
    return decision, [reason.name for reason in reasons]


def below(number: float) -> float:
    return math.nextafter(number, -math.inf)


def expiring(days_ahead: int) -> Evidence:
    return evidence(fields={"date_of_expiry": (spotless.TODAY + timedelta(days=days_ahead)).isoformat()})


def text_confidence(*confidences: float) -> Evidence:
    zone = spotless.document().lines
    return evidence(
        document={
            "lines": [
                line.model_copy(update={"confidence": confidences[i % len(confidences)]}) for i, line in enumerate(zone)
            ]
        }
    )


def unrelated_print() -> Evidence:
    lines = [spotless.line(text) for text in ("COFFEE", "2 FOR 1", "OPEN DAILY")]
    return evidence(document={"lines": lines + spotless.document().lines[-2:]})


NOT_ASSESSED = {"assessed": False, "score": None, "live": None, "frames": 1, "motion": None, "parallax": None}

ONE_REASON: list[tuple[str, Evidence, str, str]] = [
    ("similarity below the band", evidence(face={"similarity": below(0.25)}), "reject", "FACE_MISMATCH"),
    ("opposite faces", evidence(face={"similarity": -1.0}), "reject", "FACE_MISMATCH"),
    ("similarity at the band's lower end", evidence(face={"similarity": 0.25}), "review", "FACE_UNCERTAIN"),
    ("similarity at the threshold", evidence(face={"similarity": 0.375}), "review", "FACE_UNCERTAIN"),
    (
        "similarity just below the band's upper end",
        evidence(face={"similarity": below(0.5)}),
        "review",
        "FACE_UNCERTAIN",
    ),
    ("not live", evidence(liveness={"live": False, "score": 0.1}), "reject", "LIVENESS_FAILED"),
    ("a stranger's frames", evidence(liveness={"same_person": False}), "reject", "FRAMES_MISMATCH"),
    ("not moved", evidence(liveness={"live": False, "moved": False}), "review", "LIVENESS_NO_MOTION"),
    ("one frame", evidence(liveness=NOT_ASSESSED), "review", "LIVENESS_NOT_ASSESSED"),
    ("expired yesterday", expiring(-1), "reject", "DOCUMENT_EXPIRED"),
    ("no expiry", evidence(fields={"date_of_expiry": None}), "review", "EXPIRY_UNREADABLE"),
    ("expiry of no calendar", evidence(fields={"date_of_expiry": "2031-02-30"}), "review", "EXPIRY_UNREADABLE"),
    ("no MRZ", evidence(document={"mrz": None}), "review", "MRZ_MISSING"),
    ("a wrong check digit", evidence(mrz={"valid": False, "checks": {"composite": False}}), "review", "MRZ_INVALID"),
    ("other printed text", unrelated_print(), "review", "PRINTED_TEXT_DISAGREES"),
    ("blurred selfie", evidence(selfie={"sharpness": below(20)}), "review", "IMAGE_QUALITY_LOW"),
    ("blurred portrait", evidence(portrait={"sharpness": 3.0}), "review", "IMAGE_QUALITY_LOW"),
    ("dark selfie", evidence(selfie={"brightness": below(20)}), "review", "IMAGE_QUALITY_LOW"),
    ("glaring portrait", evidence(portrait={"brightness": 235.5}), "review", "IMAGE_QUALITY_LOW"),
    ("text hard to read", text_confidence(0.25, 0.625), "review", "IMAGE_QUALITY_LOW"),
    ("no risk", evidence(risk=None), "review", "ANTIFRAUD_UNAVAILABLE"),
    ("risk at the first threshold", evidence(risk=0.25), "review", "ANTIFRAUD_RISK_ELEVATED"),
    ("risk just below the second", evidence(risk=below(0.75)), "review", "ANTIFRAUD_RISK_ELEVATED"),
    ("risk at the second threshold", evidence(risk=0.75), "reject", "ANTIFRAUD_RISK_HIGH"),
]


@pytest.mark.parametrize(
    ("case", "decision", "reason"), [row[1:] for row in ONE_REASON], ids=[r[0] for r in ONE_REASON]
)
def test_a_single_finding_has_its_reason_and_its_outcome(case: Evidence, decision: str, reason: str) -> None:
    assert outcome(case) == (decision, [reason])


def test_every_reason_can_be_reached() -> None:
    assert {row[3] for row in ONE_REASON} == set(Reason.__members__)


ACCEPTABLE: dict[str, Evidence] = {
    "nothing wrong": evidence(),
    "similarity at the band's upper end": evidence(face={"similarity": 0.5}),
    "expires today": expiring(0),
    "sharpness at its threshold": evidence(selfie={"sharpness": 20.0}, portrait={"sharpness": 20.0}),
    "brightness at its thresholds": evidence(selfie={"brightness": 20.0}, portrait={"brightness": 235.0}),
    "text confidence at its threshold": text_confidence(0.375, 0.625),
    "risk just below the first threshold": evidence(risk=below(0.25)),
    "a risk of nothing": evidence(risk=0.0),
}


@pytest.mark.parametrize("case", ACCEPTABLE.values(), ids=ACCEPTABLE)
def test_what_is_exactly_good_enough_is_approved(case: Evidence) -> None:
    assert outcome(case) == ("approve", [])


def test_the_printed_agreement_may_be_exactly_its_threshold() -> None:
    full = DecisionSettings(min_printed_agreement=1)
    assert outcome(evidence(), full) == ("approve", [])


def test_a_margin_of_zero_leaves_the_threshold_alone_to_decide() -> None:
    sharp = SETTINGS.model_copy(update={"face_margin": 0.0})
    assert outcome(evidence(face={"similarity": 0.375}), sharp) == ("approve", [])
    assert outcome(evidence(face={"similarity": below(0.375)}), sharp) == ("reject", ["FACE_MISMATCH"])


def test_all_reasons_are_given_the_gravest_first_and_one_rejection_rejects() -> None:
    case = evidence(
        face={"similarity": 0.0},
        selfie={"sharpness": 1.0},
        mrz={"valid": False, "checks": {"composite": False}},
        liveness=NOT_ASSESSED,
        fields={"date_of_expiry": "2020-01-01"},
        risk=0.9,
    )
    assert outcome(case) == (
        "reject",
        [
            "FACE_MISMATCH",
            "DOCUMENT_EXPIRED",
            "ANTIFRAUD_RISK_HIGH",
            "LIVENESS_NOT_ASSESSED",
            "MRZ_INVALID",
            "IMAGE_QUALITY_LOW",
        ],
    )


def test_what_rejects_does_so_without_a_risk_too() -> None:
    case = evidence(face={"similarity": 0.0}, risk=None)
    assert outcome(case) == ("reject", ["FACE_MISMATCH", "ANTIFRAUD_UNAVAILABLE"])


def test_several_reasons_for_a_review_remain_a_review() -> None:
    case = evidence(document={"mrz": None}, liveness=NOT_ASSESSED, risk=0.5)
    assert outcome(case) == ("review", ["LIVENESS_NOT_ASSESSED", "MRZ_MISSING", "ANTIFRAUD_RISK_ELEVATED"])


def test_no_reason_that_rejects_comes_after_one_that_asks_for_a_review() -> None:
    severities = [reason.severity for reason in Reason]
    assert severities == sorted(severities)  # "reject" < "review"


def test_an_expiry_with_a_wrong_check_digit_is_for_a_person_to_read_not_a_rejection() -> None:
    checks = {"date_of_expiry": False, "composite": False}
    case = evidence(fields={"date_of_expiry": "2021-04-15"}, mrz={"valid": False, "checks": checks})
    assert outcome(case) == ("review", ["MRZ_INVALID", "EXPIRY_UNREADABLE"])


def test_the_day_is_the_one_that_was_given() -> None:
    _, reasons = decide(*evidence(), thresholds=SETTINGS, today=date(2031, 4, 16))
    assert reasons == [Reason.DOCUMENT_EXPIRED]


UNUSABLE: dict[str, Callable[[float], Evidence]] = {
    "face.similarity": lambda x: evidence(face={"similarity": x}),
    "face.threshold": lambda x: evidence(face={"threshold": x}),
    "face.selfie.sharpness": lambda x: evidence(selfie={"sharpness": x}),
    "face.document.brightness": lambda x: evidence(portrait={"brightness": x}),
    "liveness.score": lambda x: evidence(liveness={"score": x}),
    "document.lines.0.confidence": lambda x: text_confidence(x, 0.9),
    "risk": lambda x: evidence(risk=x),
}


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("name", UNUSABLE)
def test_a_number_that_is_not_finite_is_refused_by_name(name: str, number: float) -> None:
    with pytest.raises(ValueError, match=f"not a finite number: .*{name}"):
        outcome(UNUSABLE[name](number))


@pytest.mark.parametrize("missing", ["score", "live"])
def test_liveness_that_was_assessed_without_a_verdict_is_refused(missing: str) -> None:
    with pytest.raises(ValueError, match="liveness was assessed but has no score or verdict"):
        outcome(evidence(liveness={missing: None}))


def test_a_document_without_text_is_of_low_quality() -> None:
    _, reasons = outcome(evidence(document={"lines": [], "mrz": None}))
    assert reasons == ["MRZ_MISSING", "IMAGE_QUALITY_LOW"]


@pytest.mark.parametrize("name", DecisionSettings.model_fields)
@pytest.mark.parametrize("number", [-0.01, math.nan, math.inf, "0.5"])
def test_a_setting_out_of_its_range_is_refused_by_name(name: str, number: Any) -> None:
    with pytest.raises(ValidationError) as refused:
        DecisionSettings(**{name: number})
    assert refused.value.errors()[0]["loc"] == (name,)


@pytest.mark.parametrize("name", ["face_margin", "min_text_confidence", "min_printed_agreement", "risk_reject"])
def test_a_share_above_1_is_refused(name: str) -> None:
    with pytest.raises(ValidationError, match="less than or equal to 1"):
        DecisionSettings(**{name: 1.5})


@pytest.mark.parametrize("review", [0.5, 0.6])
def test_a_review_threshold_that_is_not_below_the_reject_threshold_is_refused(review: float) -> None:
    message = (
        rf"risk_review \({review}\) must be below risk_reject \(0.5\), or no risk would lead to a review: "
        "lower risk_review or raise risk_reject"
    )
    with pytest.raises(ValidationError, match=message):
        DecisionSettings(risk_review=review, risk_reject=0.5)


def test_brightness_thresholds_that_no_picture_could_meet_are_refused() -> None:
    with pytest.raises(ValidationError, match=r"min_brightness \(200\) must be below max_brightness \(100\)"):
        DecisionSettings(min_brightness=200, max_brightness=100)


def test_an_unknown_setting_is_refused() -> None:
    with pytest.raises(ValidationError, match="risk_rejects"):
        DecisionSettings(risk_rejects=0.9)  # type: ignore[call-arg]
