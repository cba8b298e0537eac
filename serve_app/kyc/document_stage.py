"""Reads an identity document: detects its text, recognises it, and makes fields of it."""

from __future__ import annotations

import asyncio
import itertools

import cv2
import numpy as np
from pydantic import BaseModel, ConfigDict, Field, field_validator

from serve_app.kyc import images, mrz_correction, text_detection, text_recognition
from serve_app.kyc.answers import Document, TextLine
from serve_app.kyc.document_dates import utc_today
from serve_app.kyc.document_fields import document_fields
from serve_app.model import Array, Float32, Model, UInt8
from serve_app.problem import Problem


class DocumentsSettings(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    max_pixels: int = Field(default=50_000_000, gt=0, description="larger pictures are refused before decoding")
    min_side: int = Field(default=200, gt=0, description="pixels that the shorter side must have at least")
    longest_side: int = Field(
        default=2048, ge=640, description="pixels that the text is cut out at; more is scaled down"
    )
    detection_side: int = Field(
        default=736, ge=320, le=2048, description="pixels of the longest side that the text detector is given at most"
    )
    text_threshold: float = Field(default=0.3, gt=0, lt=1, description="probability from which a pixel is text")
    box_threshold: float = Field(
        default=0.5, gt=0, lt=1, description="mean probability that a line must have; long runs of < get little"
    )
    unclip_ratio: float = Field(
        default=1.5, gt=0, le=4, description="how much a detected line grows: area · ratio / perimeter"
    )
    widths: tuple[int, ...] = Field(
        default=(96, 160, 240, 320, 480, 640, 960, 1280),
        min_length=1,
        description="widths that line crops are padded to, ascending; wider ones are squeezed into the last",
    )
    max_lines: int = Field(default=200, gt=0, description="a picture with more lines of text is no document")
    min_confidence: float = Field(default=0.5, ge=0, le=1, description="lines read with less are dropped")

    @field_validator("widths")
    @classmethod
    def _ascending(cls, widths: tuple[int, ...]) -> tuple[int, ...]:
        if any(narrow >= wide for narrow, wide in itertools.pairwise((0, *widths))):
            raise ValueError("widths must be positive and ascend; write them in order, each once")
        return widths


class Documents:
    """Text and fields of a document's picture."""

    def __init__(self, paddleocr_det: Model, paddleocr_rec: Model, settings: DocumentsSettings):
        self.paddleocr_det = paddleocr_det
        self.paddleocr_rec = paddleocr_rec
        self.settings = settings

    async def read(self, image: bytes) -> Document:
        """Every line of text, the machine-readable zone and the fields of the document in `image`, an encoded picture.

        Raises Problem as `images.decode` does, and 422 `no_text` where nothing is read.
        """
        picture, small = await asyncio.to_thread(self._decode, image)
        probability = await self.paddleocr_det(small[None])
        rows, quads, crops = await asyncio.to_thread(self._lines, picture.pixels, probability[0])
        if len(quads) > self.settings.max_lines:
            detail = f"the picture has {len(quads)} lines of text, more than a document; send only the document"
            raise Problem(422, "too_much_text", detail)
        texts = await text_recognition.recognise(self.paddleocr_rec, crops, self.settings.widths)
        return await asyncio.to_thread(self._document, rows, quads / picture.scale, texts)

    def _decode(self, image: bytes) -> tuple[images.Picture, UInt8]:
        """The picture, and what the detector is given of it."""
        settings = self.settings
        picture = images.decode(
            image, max_pixels=settings.max_pixels, min_side=settings.min_side, longest_side=settings.longest_side
        )
        rows, columns = picture.pixels.shape[:2]
        height, width = text_detection.detector_size(rows, columns, settings.detection_side)
        small = cv2.resize(picture.pixels, (width, height), interpolation=cv2.INTER_AREA)
        return picture, np.asarray(small, np.uint8)

    def _lines(self, pixels: UInt8, probability: Array) -> tuple[list[list[int]], Float32, list[UInt8]]:
        """Rows of indices into the quads and their crops."""
        height, width = pixels.shape[:2]
        quads, _ = text_detection.text_quads(
            probability,
            (height, width),
            threshold=self.settings.text_threshold,
            box_threshold=self.settings.box_threshold,
            unclip_ratio=self.settings.unclip_ratio,
        )
        crops = [text_detection.crop_line(pixels, quad) for quad in quads]
        return text_detection.reading_rows(quads), quads, crops

    def _document(self, rows: list[list[int]], quads: Float32, texts: list[tuple[str, float]]) -> Document:
        legible = [[index for index in row if self._legible(*texts[index])] for row in rows]
        lines = [
            TextLine(
                text=texts[index][0],
                confidence=texts[index][1],
                box=[(float(x), float(y)) for x, y in quads[index]],
            )
            for row in legible
            for index in row
        ]
        if not lines:
            raise Problem(
                422, "no_text", "no text was read in the document; send a sharp, upright picture of all of it"
            )
        zone = mrz_correction.find(["".join(texts[index][0] for index in row) for row in legible])
        today = utc_today()
        return Document(fields=document_fields(zone, lines, today), mrz=zone, lines=lines)

    def _legible(self, text: str, confidence: float) -> bool:
        return bool(text.strip()) and confidence >= self.settings.min_confidence
