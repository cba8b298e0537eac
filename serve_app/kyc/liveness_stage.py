"""Liveness from a few camera frames: the landmarks of the face in each, judged by the model `liveness`."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import numpy as np
from pydantic import Field

from serve_app.concurrency import together
from serve_app.kyc import detection
from serve_app.kyc.alignment import Matrix, align, inverted, similarity_transform, warp
from serve_app.kyc.answers import Liveness
from serve_app.kyc.detection import DetectionSettings, said_of
from serve_app.kyc.faces import TEMPLATE, Detection, cosine_similarity, largest, suppress
from serve_app.model import Float32, Model, UInt8
from serve_app.problem import Problem

# The crop in which landmarks are measured: the template about its nose, with 80 pixels between the eyes. Smaller faces
# (64 px in 256) make YuNet's landmarks lean less with the head's turn, larger ones jitter more.
_SIDE = 320
_INTER_OCULAR = 80.0
_PLACED: Float32 = (TEMPLATE - TEMPLATE[2]) * (
    _INTER_OCULAR / float(np.linalg.norm(TEMPLATE[1] - TEMPLATE[0]))
) + _SIDE / 2
_MIRRORED = [1, 0, 2, 4, 3]


class LivenessSettings(DetectionSettings):
    longest_side: int = Field(default=960, ge=320, description="pixels of the longer side; more is scaled down")
    # The landmarks are measured in a crop of their own, so a small face needs no second look.
    small_face: float = Field(default=0, ge=0, description="width in pixels below which a coarse face is small")
    threshold: float = Field(default=0.5, ge=0, le=1, description="the score from which a face counts as live")
    match_threshold: float = Field(
        default=0.363, ge=-1, le=1, description="cosine similarity from which a frame shows the selfie's person"
    )
    min_motion: float = Field(
        default=0.1, ge=0, description="inter-ocular distances that a face must move by, or it counts as still"
    )


class LivenessCheck:
    """Whether a face moved between frames as a solid head does; `serve_app.kyc.liveness` says what that can tell."""

    def __init__(self, face_detector: Model, arcface: Model, liveness: Model, settings: LivenessSettings):
        self.face_detector = face_detector
        self.arcface = arcface
        self.liveness = liveness
        self.settings = settings

    async def assess(self, frames: list[bytes], selfie: bytes | None = None) -> Liveness:
        """Assesses encoded `frames` of one face; with fewer than two nothing is assessed, nor looked at.

        Every frame has to show the person of `selfie`, or where there is none, of the first frame: a stranger's living
        face says nothing about the one that is to be verified. Raises Problem as `images.decode` does, and 422
        `no_face`, `several_faces` or `face_not_upright`, its field `selfie` or `frames[i]` counted from 0.
        """
        if len(frames) < 2:
            return self._answer(len(frames), None, None)
        named = {f"frames[{i}]": frame for i, frame in enumerate(frames)}
        pictures = await together(*(self._decode(name, frame) for name, frame in named.items()))
        faces = await self._faces(list(named), pictures)
        portraits = list(zip(pictures, faces, strict=True))
        if selfie is not None:
            picture = await self._decode("selfie", selfie)
            (face,) = await self._faces(["selfie"], [picture])
            portraits = [(picture, face), *portraits]
        similarity = await self._similarity(portraits)
        landmarks = await self._measure(pictures, faces)
        score, measures = await self.liveness(landmarks[None])
        assessment = (float(score[0, 0]), float(measures[0, 0]), float(measures[0, 1]))
        return self._answer(len(frames), assessment, similarity)

    async def _decode(self, name: str, picture: bytes) -> UInt8:
        with said_of(name):
            return (await asyncio.to_thread(detection.decode, picture, self.settings)).pixels

    async def _similarity(self, portraits: Sequence[tuple[UInt8, Detection]]) -> float:
        """The lowest cosine similarity of the first portrait's face to another's."""
        crops = await asyncio.to_thread(
            lambda: np.stack([align(picture, face.landmarks) for picture, face in portraits])
        )
        reference, *others = await self.arcface(crops)
        return min(cosine_similarity(reference, other) for other in others)

    async def _faces(self, names: Sequence[str], pictures: Sequence[UInt8]) -> list[Detection]:
        """The face of each picture. Frames are taken in one go: one being upright answers for all."""
        found = await detection.find(self.face_detector, pictures, self.settings)
        clearest = max(range(len(found)), key=lambda i: max((face.score for face in found[i]), default=0.0))
        chosen = []
        for i, faces in enumerate(found):
            with said_of(names[i]):
                if i == clearest or not faces:
                    await detection.require_upright(self.face_detector, pictures[i], faces, self.settings)
                detection.require_alone(faces, self.settings)
                chosen.append(largest(faces))
        return chosen

    async def _measure(self, pictures: Sequence[UInt8], faces: Sequence[Detection]) -> Float32:
        """The faces' landmarks fp32[F, 5, 2], measured where each is turned, scaled and moved to the same place.

        A detector's errors vary with where, how large and at what angle a face is, by more than the parallax sought.
        In the same place they are nearly the same, and the mean with the mirror image's has none to a side: the
        reduced chi of photos moved about fell from at most 4.1 to at most 1.7.
        """
        crops, matrices = await asyncio.to_thread(_placed, pictures, faces)
        candidates = await self.face_detector(crops)
        landmarks = []
        for i, matrix in enumerate(matrices):
            plain, mirrored = (self._landmarks(candidates[view]) for view in (i, i + len(faces)))
            if plain is None or mirrored is None:
                detail = "the face is not clear enough to follow; send a sharper frame"
                raise Problem(422, "no_face", detail, field=f"frames[{i}]")
            unmirrored = (np.array([_SIDE - 1, 0]) + mirrored * np.array([-1, 1]))[_MIRRORED]
            landmarks.append(inverted(matrix, (plain + unmirrored) / 2))
        return np.asarray(landmarks, np.float32)

    def _landmarks(self, candidates: Float32) -> Float32 | None:
        faces = suppress(candidates, self.settings.score_threshold, self.settings.overlap)
        return faces[0].landmarks if faces else None

    def _answer(self, frames: int, assessment: tuple[float, float, float] | None, similarity: float | None) -> Liveness:
        score, motion, parallax = assessment or (None, None, None)
        return Liveness(
            assessed=assessment is not None,
            score=score,
            live=None if score is None else score >= self.settings.threshold,
            moved=None if motion is None else motion >= self.settings.min_motion,
            similarity=similarity,
            same_person=None if similarity is None else similarity >= self.settings.match_threshold,
            threshold=self.settings.threshold,
            match_threshold=self.settings.match_threshold,
            min_motion=self.settings.min_motion,
            frames=frames,
            motion=motion,
            parallax=parallax,
        )


def _placed(pictures: Sequence[UInt8], faces: Sequence[Detection]) -> tuple[UInt8, list[Matrix]]:
    """The crop of each face, then each one's mirror image, uint8[2F, side, side, 3], and the F transforms into them."""
    matrices = [similarity_transform(face.landmarks, _PLACED) for face in faces]
    crops = [warp(picture, matrix, _SIDE) for picture, matrix in zip(pictures, matrices, strict=True)]
    return np.stack(crops + [crop[:, ::-1] for crop in crops]), matrices
