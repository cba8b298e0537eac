"""What the application answers: the JSON of the HTTP API, and so its OpenAPI schema."""

from __future__ import annotations

from datetime import date
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field


class Answer(BaseModel):
    """Answers are complete and final once made."""

    # What is wrong with a value is said without the value, which is somebody's. A number that is none is a fault.
    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True, allow_inf_nan=False)


class Face(Answer):
    """The largest face of a picture."""

    box: tuple[float, float, float, float] = Field(description="x, y, width, height in pixels of the upright picture")
    landmarks: list[tuple[float, float]] = Field(
        description="right eye, left eye, nose tip, right and left mouth corner (the person's own right), in pixels"
    )
    score: float = Field(description="the detector's confidence, 0 to 1")
    sharpness: float = Field(description="variance of the Laplacian of the aligned 112x112 grey crop")
    brightness: float = Field(description="mean of the aligned crop's grey values, 0 to 255")


class FaceEmbedding(Answer):
    face: Face | None = Field(description="null where the request says that the picture is an aligned crop")
    embedding: list[float] = Field(description="L2-normalised; the dot product of two is their cosine similarity")


class FaceComparison(Answer):
    similarity: float = Field(description="cosine similarity of the two embeddings, -1 to 1")
    threshold: float = Field(description="the similarity from which two faces count as one person's")
    match: bool


class FaceMatch(FaceComparison):
    selfie: Face
    document: Face


class Liveness(Answer):
    assessed: bool = Field(description="false where fewer than two frames came: then nothing is known")
    score: float | None = Field(
        description="0 (flat or still) to 1 (moved as a solid head does); null when not assessed"
    )
    live: bool | None = Field(description="score ≥ threshold; null when not assessed")
    moved: bool | None = Field(description="motion ≥ min_motion: whether anything moved at all; null when not assessed")
    similarity: float | None = Field(
        description="the lowest cosine similarity of a frame's face to the selfie's, or the first frame's without one"
    )
    same_person: bool | None = Field(description="similarity ≥ match_threshold; null when not assessed")
    threshold: float
    match_threshold: float
    min_motion: float
    frames: int
    motion: float | None = Field(description="how far the face moved between frames, in inter-ocular distances")
    parallax: float | None = Field(
        description="how far the nose left the plane of eyes and mouth, in inter-ocular distances"
    )


class TextLine(Answer):
    text: str
    confidence: float = Field(description="mean probability of the characters, 0 to 1")
    box: list[tuple[float, float]] = Field(
        description="the four corners from the text's own top left, clockwise, pixels"
    )


class Mrz(Answer):
    format: Literal["TD1", "TD2", "TD3"]
    lines: list[str] = Field(description="the machine-readable zone after correction")
    valid: bool = Field(description="every check digit is right")
    checks: dict[str, bool] = Field(description="check digit by field")
    corrected: int = Field(
        description="characters changed, added or dropped because the fields' alphabets or the lines' length ask for it"
    )
    mended: int = Field(
        default=0,
        description="characters changed because a check digit and the printed text ask for it",
    )


class Document(Answer):
    fields: dict[str, str | None] = Field(description="what the document says: MRZ first, else the printed text")
    mrz: Mrz | None
    lines: list[TextLine] = Field(description="every line of text in reading order")


class Antifraud(Answer):
    risk: float = Field(description="0 to 1, from the scorecard")
    factors: dict[str, float] = Field(description="the scorecard's inputs, each 0 (nothing suspicious) to 1")
    measures: dict[str, float | None] = Field(
        description="the number behind each factor, in the scorecard's units; null where there was nothing to measure"
    )
    contributions: dict[str, float] = Field(description="what each factor added to the score, in log-odds")
    intercept: float = Field(
        description="the score without any suspicion, in log-odds: risk = sigmoid(intercept + sum of contributions)"
    )


class Verification(Answer):
    decision: Literal["approve", "review", "reject"]
    reasons: list[str] = Field(description="stable codes, the gravest first; empty for approve")
    face: FaceMatch
    liveness: Liveness
    document: Document
    antifraud: Antifraud | None = Field(
        description="null where it failed or was too late; then ANTIFRAUD_UNAVAILABLE is among the reasons"
    )
    thresholds: dict[str, float] = Field(
        description="the decision's own thresholds, by setting; those of face and liveness are with them"
    )
    today: date = Field(description="the day for which the decision holds, by the service's clock (UTC)")
