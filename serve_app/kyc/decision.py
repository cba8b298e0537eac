"""From everything that was found to approve, review or reject, with the reasons.

One reason that rejects is enough to reject, one that asks for a review is enough for a review, and only a verification
without any reason is approved. Every threshold belongs to the better side: a number equal to it is acceptable, except
for the risk, which counts as elevated or high from its threshold on.
"""

from __future__ import annotations

import math
from datetime import date
from enum import Enum
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from serve_app.kyc.answers import Document, Face, FaceMatch, Liveness
from serve_app.kyc.antifraud_measures import mean_confidence
from serve_app.kyc.document_dates import expiry_date
from serve_app.kyc.document_fields import printed_agreement

Outcome = Literal["approve", "review", "reject"]


class DecisionSettings(BaseModel):
    """The thresholds of the decision that do not already belong to the faces or liveness stage."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)

    face_margin: float = Field(
        default=0.05,
        ge=0,
        le=1,
        description="a similarity nearer to the face threshold than this, on either side, is for a person to judge",
    )
    min_sharpness: float = Field(
        default=20, ge=0, description="variance of the Laplacian that both aligned 112 by 112 face crops must have"
    )
    min_brightness: float = Field(default=20, ge=0, le=255, description="mean grey value both face crops must reach")
    max_brightness: float = Field(default=235, ge=0, le=255, description="mean grey value no face crop may exceed")
    min_text_confidence: float = Field(
        default=0.6, ge=0, le=1, description="mean confidence that the document's lines of text must have"
    )
    min_printed_agreement: float = Field(
        default=0.5, ge=0, le=1, description="how much of the MRZ must be found in the printed text"
    )
    risk_review: float = Field(default=0.2, ge=0, le=1, description="antifraud risk from which a person must look")
    risk_reject: float = Field(default=0.8, ge=0, le=1, description="antifraud risk from which nothing is accepted")

    @model_validator(mode="after")
    def _ordered(self) -> DecisionSettings:
        if self.risk_review >= self.risk_reject:
            raise ValueError(
                f"risk_review ({self.risk_review:g}) must be below risk_reject ({self.risk_reject:g}), "
                "or no risk would lead to a review: lower risk_review or raise risk_reject"
            )
        if self.min_brightness >= self.max_brightness:
            raise ValueError(
                f"min_brightness ({self.min_brightness:g}) must be below max_brightness ({self.max_brightness:g}), "
                "or no picture would pass: lower min_brightness or raise max_brightness"
            )
        return self


class Reason(Enum):
    """Why a verification was not approved, the gravest first. The names are codes that clients may branch on."""

    FACE_MISMATCH = ("reject", "the face in the selfie is not the face on the document")
    FRAMES_MISMATCH = ("reject", "a frame does not show the person of the selfie")
    LIVENESS_FAILED = ("reject", "the frames do not show a solid, moving head")
    DOCUMENT_EXPIRED = ("reject", "the document's last day of validity has passed")
    ANTIFRAUD_RISK_HIGH = ("reject", "the antifraud risk is at or above `risk_reject`")
    FACE_UNCERTAIN = ("review", "the similarity is within `face_margin` of the threshold, above or below it")
    LIVENESS_NO_MOTION = ("review", "the face kept still between the frames, so nothing is known about liveness")
    LIVENESS_NOT_ASSESSED = ("review", "fewer than two frames came, so nothing is known about liveness")
    MRZ_INVALID = ("review", "a check digit of the machine-readable zone is wrong")
    MRZ_MISSING = ("review", "no machine-readable zone was found")
    EXPIRY_UNREADABLE = ("review", "no date of expiry could be read, or its check digit is wrong")
    PRINTED_TEXT_DISAGREES = ("review", "the printed text does not repeat what the machine-readable zone says")
    IMAGE_QUALITY_LOW = ("review", "a face is blurred, too dark or too bright, or the text is hard to read")
    ANTIFRAUD_UNAVAILABLE = ("review", "the antifraud risk could not be had, or not in time")
    ANTIFRAUD_RISK_ELEVATED = ("review", "the antifraud risk is at or above `risk_review`")

    def __init__(self, severity: Literal["reject", "review"], meaning: str) -> None:
        self.severity = severity
        self.meaning = meaning


def decide(
    face: FaceMatch,
    document: Document,
    liveness: Liveness,
    risk: float | None,
    *,
    thresholds: DecisionSettings,
    today: date,
) -> tuple[Outcome, list[Reason]]:
    """The outcome and every reason for it, in the order of `Reason`; no reason means approve.

    `risk` is the scorecard's, 0 to 1, or None where it could not be had; `today` is the day on which the document has
    to be valid. Raises ValueError where a number is NaN or infinite, or `liveness` says that it was assessed without
    saying how: comparing NaN is always false, so it would pass as acceptable.
    """
    _refuse_unusable(face, document, liveness, risk)
    found = {
        *_face_reasons(face, thresholds.face_margin),
        *_liveness_reasons(liveness),
        *_document_reasons(document, thresholds.min_printed_agreement, today),
        *_risk_reasons(risk, thresholds),
    }
    if _quality_is_low(face, document, thresholds):
        found.add(Reason.IMAGE_QUALITY_LOW)
    reasons = [reason for reason in Reason if reason in found]
    if not reasons:
        return "approve", []
    return reasons[0].severity, reasons


def _refuse_unusable(face: FaceMatch, document: Document, liveness: Liveness, risk: float | None) -> None:
    numbers = {
        "face.similarity": face.similarity,
        "face.threshold": face.threshold,
        "face.selfie.sharpness": face.selfie.sharpness,
        "face.selfie.brightness": face.selfie.brightness,
        "face.document.sharpness": face.document.sharpness,
        "face.document.brightness": face.document.brightness,
        "liveness.threshold": liveness.threshold,
        **({} if risk is None else {"risk": risk}),
        **{f"document.lines.{i}.confidence": line.confidence for i, line in enumerate(document.lines)},
    }
    if liveness.assessed:
        if liveness.score is None or liveness.live is None:
            raise ValueError("cannot decide: liveness was assessed but has no score or verdict")
        numbers["liveness.score"] = liveness.score
    unusable = [name for name, number in numbers.items() if not math.isfinite(number)]
    if unusable:
        raise ValueError(f"cannot decide: not a finite number: {', '.join(unusable)}")


def _face_reasons(face: FaceMatch, margin: float) -> list[Reason]:
    if face.similarity < face.threshold - margin:
        return [Reason.FACE_MISMATCH]
    if face.similarity < face.threshold + margin:
        return [Reason.FACE_UNCERTAIN]
    return []


def _liveness_reasons(liveness: Liveness) -> list[Reason]:
    if not liveness.assessed:
        return [Reason.LIVENESS_NOT_ASSESSED]
    reasons = [] if liveness.same_person else [Reason.FRAMES_MISMATCH]
    if liveness.live:
        return reasons
    return [*reasons, Reason.LIVENESS_FAILED if liveness.moved else Reason.LIVENESS_NO_MOTION]


def _document_reasons(document: Document, min_printed_agreement: float, today: date) -> list[Reason]:
    reasons = []
    if document.mrz is None:
        reasons.append(Reason.MRZ_MISSING)
    else:
        if not document.mrz.valid:
            reasons.append(Reason.MRZ_INVALID)
        if printed_agreement(document) < min_printed_agreement:
            reasons.append(Reason.PRINTED_TEXT_DISAGREES)
    expiry = expiry_date(document)
    if expiry is None:
        reasons.append(Reason.EXPIRY_UNREADABLE)
    elif expiry < today:
        reasons.append(Reason.DOCUMENT_EXPIRED)
    return reasons


def _risk_reasons(risk: float | None, thresholds: DecisionSettings) -> list[Reason]:
    if risk is None:
        return [Reason.ANTIFRAUD_UNAVAILABLE]
    if risk >= thresholds.risk_reject:
        return [Reason.ANTIFRAUD_RISK_HIGH]
    if risk >= thresholds.risk_review:
        return [Reason.ANTIFRAUD_RISK_ELEVATED]
    return []


def _quality_is_low(face: FaceMatch, document: Document, thresholds: DecisionSettings) -> bool:
    confidence = mean_confidence(document.lines)
    hard_to_read = confidence is None or confidence < thresholds.min_text_confidence
    return hard_to_read or any(_is_poor(crop, thresholds) for crop in (face.selfie, face.document))


def _is_poor(face: Face, thresholds: DecisionSettings) -> bool:
    well_lit = thresholds.min_brightness <= face.brightness <= thresholds.max_brightness
    return not well_lit or face.sharpness < thresholds.min_sharpness
