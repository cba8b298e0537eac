"""Finds the faces in pictures with the model `face_detector`, coarse to fine, and refuses those not upright."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from serve_app.kyc import images
from serve_app.kyc.alignment import around
from serve_app.kyc.faces import Detection, has_company, largest, roll, suppress
from serve_app.model import Model, UInt8
from serve_app.problem import Problem

_SIDEWAYS = 45.0  # degrees


class DetectionSettings(BaseModel):
    """Limits of pictures, and what counts as a face."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    max_pixels: int = Field(default=50_000_000, gt=0, description="larger pictures are refused before decoding")
    min_side: int = Field(default=64, gt=0, description="pixels that the shorter side must have at least")
    longest_side: int = Field(default=1600, ge=320, description="pixels of the longer side; more is scaled down")
    coarse_side: int = Field(default=320, gt=0, multiple_of=32, description="pixels of the first detection's square")
    fine_side: int = Field(
        default=640,
        gt=0,
        multiple_of=32,
        description="pixels of the second's, where the first finds no or a small face",
    )
    small_face: float = Field(default=48, ge=0, description="width in pixels below which a coarse face is small")
    score_threshold: float = Field(default=0.7, gt=0, lt=1, description="the detector's score from which it is a face")
    overlap: float = Field(
        default=0.3, gt=0, lt=1, description="intersection over union above which two candidates are one face"
    )
    second_face: float = Field(
        default=0.25, gt=0, le=1, description="share of the largest face's area from which a second one counts"
    )
    certain_score: float = Field(
        default=0.92, gt=0, le=1, description="score from which a face is upright without trying the picture turned"
    )
    turn_margin: float = Field(
        default=0.02, ge=0, lt=1, description="how much better a face must score when turned to be refused"
    )


@contextmanager
def said_of(field: str) -> Iterator[None]:
    """Problems of a picture raised inside name `field`; those of a model or a deadline stay as they are."""
    try:
        yield
    except Problem as problem:
        if problem.is_of_the_input:
            raise problem.in_field(field) from problem
        raise


def decode(data: bytes, settings: DetectionSettings) -> images.Picture:
    """`images.decode` within the settings' limits."""
    return images.decode(
        data, max_pixels=settings.max_pixels, min_side=settings.min_side, longest_side=settings.longest_side
    )


async def find(detector: Model, pictures: Sequence[UInt8], settings: DetectionSettings) -> list[list[Detection]]:
    """The faces of each picture uint8[H, W, 3], the most certain first.

    One call for all pictures at the coarse size, and one at the fine size for those without a face or whose largest
    is small, unless the coarse size had every pixel; what the fine one finds replaces the coarse faces.
    """
    found = await _detect(detector, pictures, settings.coarse_side, settings)
    unsure = [i for i, faces in enumerate(found) if _deserves_a_finer_look(faces, pictures[i], settings)]
    fine = await _detect(detector, [pictures[i] for i in unsure], settings.fine_side, settings)
    for i, faces in zip(unsure, fine, strict=True):
        found[i] = faces or found[i]
    return found


async def require_upright(
    detector: Model, picture: UInt8, faces: Sequence[Detection], settings: DetectionSettings
) -> Detection:
    """The largest of a picture's faces.

    Raises Problem 422 `no_face`, or 422 `face_not_upright` where the picture shows a face only, or better, when turned.

    YuNet also finds faces that lie or stand on their head, and gives them upright landmarks. But it scores the same
    face at least 0.05 higher the right way up, where it has 0.92 and more (42 pictures of 6 people, 4 turns each).
    """
    if not faces:
        turned = await _detect(detector, _turns(picture)[1:], settings.fine_side, settings)
        raise _not_upright() if any(turned) else Problem(422, "no_face", "no face was found; send a picture of one")
    face = largest(faces)
    if roll(face.landmarks) > _SIDEWAYS:
        raise _not_upright()
    if face.score < settings.certain_score:
        crop = await asyncio.to_thread(around, picture, face.box, settings.coarse_side)
        candidates = await detector(np.stack(_turns(crop)))
        upright, *turned_scores = candidates[:, :, 0].max(axis=1)
        if max(turned_scores) > upright + settings.turn_margin:
            raise _not_upright()
    return face


def require_alone(faces: Sequence[Detection], settings: DetectionSettings) -> None:
    """Raises Problem 422 `several_faces` where a second face is nearly as large as the first."""
    if has_company(faces, settings.second_face):
        raise Problem(422, "several_faces", "the picture shows several people; send one with a single face")


async def _detect(
    detector: Model, pictures: Sequence[UInt8], side: int, settings: DetectionSettings
) -> list[list[Detection]]:
    if not pictures:
        return []
    squares, scales = await asyncio.to_thread(_letterboxed, pictures, side)
    candidates = await detector(squares)
    return [
        [face.scaled(1 / scale) for face in suppress(each, settings.score_threshold, settings.overlap)]
        for each, scale in zip(candidates, scales, strict=True)
    ]


def _letterboxed(pictures: Sequence[UInt8], side: int) -> tuple[UInt8, list[float]]:
    squares, scales = zip(*(images.letterbox(picture, side) for picture in pictures), strict=True)
    return np.stack(squares), list(scales)


def _deserves_a_finer_look(faces: Sequence[Detection], picture: UInt8, settings: DetectionSettings) -> bool:
    scale = settings.coarse_side / max(picture.shape[:2])
    if scale >= 1:
        return False
    return not faces or bool(largest(faces).box[2] * scale < settings.small_face)


def _turns(picture: UInt8) -> list[UInt8]:
    return [np.ascontiguousarray(np.rot90(picture, quarter)) for quarter in range(4)]


def _not_upright() -> Problem:
    return Problem(422, "face_not_upright", "the face lies on its side or is upside down; turn the picture upright")
