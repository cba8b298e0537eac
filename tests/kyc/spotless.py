"""A verification in which nothing is wrong, for the tests of the scorecard and the decision to spoil."""

from __future__ import annotations

from datetime import date

from serve_app.kyc import mrz
from serve_app.kyc.answers import Document, Face, FaceMatch, Liveness, Mrz, TextLine

TODAY = date(2026, 3, 15)


def face() -> Face:
    landmarks = [(40.0, 50.0), (70.0, 50.0), (55.0, 70.0), (43.0, 90.0), (68.0, 90.0)]
    return Face(box=(20, 20, 80, 100), landmarks=landmarks, score=0.94, sharpness=600.0, brightness=125.0)


def match() -> FaceMatch:
    return FaceMatch(similarity=0.75, threshold=0.375, match=True, selfie=face(), document=face())


def liveness() -> Liveness:
    return Liveness(
        assessed=True,
        score=0.9,
        live=True,
        moved=True,
        similarity=0.8,
        same_person=True,
        threshold=0.5,
        match_threshold=0.363,
        min_motion=0.1,
        frames=5,
        motion=0.3,
        parallax=0.1,
    )


def line(text: str, confidence: float = 0.97) -> TextLine:
    return TextLine(text=text, confidence=confidence, box=[(0, 0), (10, 0), (10, 5), (0, 5)])


def document() -> Document:
    """A passport of ICAO's Utopia, its printed text repeating its MRZ."""
    zone = ["P<UTOERIKSSON<<ANNA<MARIA<<<<<<<<<<<<<<<<<<<", "L898902C36UTO7408122F3104150<<<<<<<<<<<<<<04"]
    checks = mrz.parse("TD3", zone).checks
    printed = ["UTOPIA PASSPORT", "L898902C3", "ERIKSSON", "ANNA MARIA", "UTOPIAN", "12 AUG 1974", "F", "15 APR 2031"]
    fields: dict[str, str | None] = {
        "document_type": "P",
        "issuing_state": "UTO",
        "document_number": "L898902C3",
        "surname": "ERIKSSON",
        "given_names": "ANNA MARIA",
        "nationality": "UTO",
        "sex": "F",
        "date_of_birth": "1974-08-12",
        "date_of_expiry": "2031-04-15",
    }
    return Document(
        fields=fields,
        mrz=Mrz(format="TD3", lines=zone, valid=all(checks.values()), checks=checks, corrected=0),
        lines=[line(text) for text in [*printed, *zone]],
    )
