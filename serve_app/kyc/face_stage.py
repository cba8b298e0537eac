"""Finds, embeds and compares the faces of pictures."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import cv2
import numpy as np
from pydantic import Field

from serve_app.concurrency import together
from serve_app.kyc import detection, images
from serve_app.kyc.alignment import align
from serve_app.kyc.answers import Face, FaceComparison, FaceEmbedding, FaceMatch
from serve_app.kyc.detection import DetectionSettings, said_of
from serve_app.kyc.faces import TEMPLATE_SIDE, Detection, cosine_similarity
from serve_app.model import Model, UInt8
from serve_app.problem import Problem


class FacesSettings(DetectionSettings):
    match_threshold: float = Field(
        default=0.363,
        ge=-1,
        le=1,
        description="cosine similarity from which two faces are one person's. The default is OpenCV's for SFace, best "
        "on LFW; calibrate it to the false match rate that you accept, and anew for another model",
    )


@dataclass(frozen=True, eq=False)
class _Portrait:
    face: Face
    crop: UInt8


class Faces:
    """The largest face of a picture, its embedding, and whether two are one person's.

    Every method takes encoded pictures and raises Problem as `images.decode` does, and 422 `no_face` or
    `face_not_upright`; the problem's field is the argument's name.
    """

    def __init__(self, face_detector: Model, arcface: Model, settings: FacesSettings):
        self.face_detector = face_detector
        self.arcface = arcface
        self.settings = settings

    async def embed(self, image: bytes, aligned: bool = False) -> FaceEmbedding:
        """The largest face of `image` and its embedding.

        `aligned`: the picture is such a face's crop, its landmarks where `faces.TEMPLATE` has them; none is looked for.
        Raises Problem 422 `not_square` too, where it cannot be one.
        """
        if aligned:
            face, crop = None, await asyncio.to_thread(_aligned, image, self.settings)
        else:
            portrait = await self._portrait(image, "image")
            face, crop = portrait.face, portrait.crop
        (embedding,) = await self.arcface(crop[None])
        return FaceEmbedding(face=face, embedding=embedding.tolist())

    async def compare(self, a: bytes, b: bytes) -> FaceComparison:
        """The similarity of the largest faces of `a` and `b`."""
        portraits = await together(self._portrait(a, "a"), self._portrait(b, "b"))
        return await self._comparison(portraits)

    async def match(self, selfie: bytes, document: bytes) -> FaceMatch:
        """Whether `selfie` shows the person of `document`'s portrait.

        Raises Problem 422 `several_faces` too, where someone else is in the selfie. Documents often carry a second,
        fainter print of the portrait: there the largest face is taken.
        """
        portraits = await together(self._portrait(selfie, "selfie", alone=True), self._portrait(document, "document"))
        comparison = await self._comparison(portraits)
        return FaceMatch(**comparison.model_dump(), selfie=portraits[0].face, document=portraits[1].face)

    async def _comparison(self, portraits: list[_Portrait]) -> FaceComparison:
        a, b = await self.arcface(np.stack([portrait.crop for portrait in portraits]))
        similarity = cosine_similarity(a, b)
        threshold = self.settings.match_threshold
        return FaceComparison(similarity=similarity, threshold=threshold, match=similarity >= threshold)

    async def _portrait(self, image: bytes, field: str, *, alone: bool = False) -> _Portrait:
        with said_of(field):
            picture = await asyncio.to_thread(detection.decode, image, self.settings)
            (faces,) = await detection.find(self.face_detector, [picture.pixels], self.settings)
            face = await detection.require_upright(self.face_detector, picture.pixels, faces, self.settings)
            if alone:
                detection.require_alone(faces, self.settings)
            return await asyncio.to_thread(_cut_out, picture, face)


def _aligned(image: bytes, settings: FacesSettings) -> UInt8:
    """The crop uint8[112, 112, 3] that `image` holds."""
    with said_of("image"):
        pixels = detection.decode(image, settings).pixels
        height, width = pixels.shape[:2]
        if width != height:
            detail = (
                f"an aligned crop is square, and this picture is {width} by {height}; send the picture that it was cut "
                "from, without `aligned`"
            )
            raise Problem(422, "not_square", detail)
    size = (TEMPLATE_SIDE, TEMPLATE_SIDE)
    return pixels if width == TEMPLATE_SIDE else np.asarray(cv2.resize(pixels, size, interpolation=cv2.INTER_AREA))


def _cut_out(picture: images.Picture, face: Detection) -> _Portrait:
    crop = align(picture.pixels, face.landmarks)
    original = face.scaled(1 / picture.scale)
    x, y, width, height = original.box.tolist()
    return _Portrait(
        Face(
            box=(x, y, width, height),
            landmarks=[(x, y) for x, y in original.landmarks.tolist()],
            score=face.score,
            sharpness=images.sharpness(crop),
            brightness=images.brightness(crop),
        ),
        crop,
    )
