"""What the antifraud scorecard measures: one number per factor, from what the other models and checks found."""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import date

from serve_app.kyc.answers import Document, FaceMatch, TextLine
from serve_app.kyc.document_dates import birth_date, expiry_date
from serve_app.kyc.document_fields import printed_agreement

LONGEST_LIFE = 120  # years


def measures(face: FaceMatch, document: Document, today: date) -> dict[str, float | None]:
    """The number behind each factor, by the factor's name; None where there is nothing to measure."""
    mrz, expiry = document.mrz, expiry_date(document)
    return {
        "face_distance": face.similarity - face.threshold,
        "selfie_face_doubt": face.selfie.score,
        "document_face_doubt": face.document.score,
        "selfie_blur": face.selfie.sharpness,
        "document_blur": face.document.sharpness,
        "selfie_exposure": face.selfie.brightness,
        "document_exposure": face.document.brightness,
        "text_doubt": mean_confidence(document.lines),
        "mrz_text_doubt": mean_confidence(line for line in document.lines if _is_mrz_like(line)),
        "mrz_missing": float(mrz is None),
        "mrz_check_digits": None if mrz is None else float(sum(not right for right in mrz.checks.values())),
        "mrz_corrections": None if mrz is None else float(mrz.corrected + mrz.mended),
        "printed_disagreement": None if mrz is None else printed_agreement(document),
        "expired": None if expiry is None else float((today - expiry).days),
        "expiry_unreadable": float(expiry is None),
        "implausible_dates": _implausible_dates(birth_date(document), expiry, today),
        "little_text": float(len(document.lines)),
    }


def mean_confidence(lines: Iterable[TextLine]) -> float | None:
    """0 to 1; None without lines."""
    confidences = [line.confidence for line in lines]
    return math.fsum(confidences) / len(confidences) if confidences else None


def _is_mrz_like(line: TextLine) -> bool:
    """At least 20 of the shortest MRZ line's 30 characters, and a filler among them: printed text has none."""
    return "<" in line.text and len("".join(line.text.split())) >= 20


def _implausible_dates(birth: date | None, expiry: date | None, today: date) -> float | None:
    if birth is None:
        return None
    age = today.year - birth.year - ((today.month, today.day) < (birth.month, birth.day))
    return float((birth > today) + (age > LONGEST_LIFE) + (expiry is not None and expiry <= birth))
