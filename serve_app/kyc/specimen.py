"""Draws a specimen identity document: nobody's, of no state, and marked so.

It is what the sample verification after `tandem up` and the tests read, since pictures of real documents cannot be
shipped. Sizes are ICAO 9303's: a TD3 data page of 125 x 88 mm, or both sides of a TD1 card of 85.6 x 54 mm below each
other, as on a photocopy; about two megapixels.
"""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from typing import Literal

import cv2
import numpy as np
from PIL import Image, ImageDraw, ImageFont

from serve_app.kyc import mrz, mrz_writing
from serve_app.model import UInt8

_PAPER, _INK, _LABEL, _MARK = (244, 241, 232), (25, 25, 35), (70, 90, 120), (190, 60, 60)
_MARGIN = 5.0  # mm
_MRZ_PITCH, _MRZ_LINE, _MRZ_HEIGHT = 2.54, 6.35, 3.6  # mm: ten characters an inch, lines a quarter inch apart (part 3)


_MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")


@dataclass(frozen=True)
class Identity:
    """Whom the specimen is made out to. The state is 9303's Utopia unless another is given."""

    surname: str = "ERIKSSON"
    given_names: str = "ANNA MARIA"
    document_number: str = "L898902C3"
    nationality: str = "UTO"
    issuing_state: str = "UTO"
    date_of_birth: datetime.date = datetime.date(1974, 8, 12)
    sex: Literal["M", "F", "X"] = "F"
    date_of_expiry: datetime.date = datetime.date(2034, 4, 15)
    personal_number: str = "ZE184226B"


def render(portrait: UInt8, identity: Identity, format: Literal["TD3", "TD1"] = "TD3") -> UInt8:
    """The document as a BGR picture uint8[H, W, 3]: TD3 1189 x 1688, TD1 1620 x 1209.

    `portrait` (BGR uint8[h, w, 3]) is cropped around its centre to the 35:45 of a passport photo.
    Raises ValueError where the identity does not fit the format's machine-readable zone.
    """
    zone = zone_lines(identity, format)
    if format == "TD3":
        page = _Page(125, 88, 13.51)
        page.front(portrait, identity, "PASSPORT", top=0.0, photo=(35.0, 45.0), columns=(45.0, 84.0))
        page.zone(zone, left=6.0, top=88 - 17.5)
        return page.pixels()
    page = _Page(85.6, 54 * 2 + 6.7, 14.12)
    page.front(portrait, identity, "IDENTITY CARD", top=0.0, photo=(26.0, 33.4), columns=(35.0, 60.0))
    page.rule(54 + 3.3)
    page.mark(54 + 8.0)
    page.zone(zone, left=4.0, top=54 * 2 + 6.7 - 22.0)
    return page.pixels()


def zone_lines(identity: Identity, format: mrz.Format) -> list[str]:
    """The specimen's machine-readable zone."""
    return mrz_writing.compose(
        format,
        document_type="P" if format == "TD3" else "I",
        issuing_state=identity.issuing_state,
        document_number=identity.document_number,
        nationality=identity.nationality,
        date_of_birth=identity.date_of_birth,
        sex=identity.sex,
        date_of_expiry=identity.date_of_expiry,
        surname=identity.surname,
        given_names=identity.given_names,
        personal_number=identity.personal_number,
    )


class _Page:
    """A sheet of paper measured in millimetres."""

    def __init__(self, width: float, height: float, pixels_per_mm: float):
        self.width, self.scale = width, pixels_per_mm
        self.image = Image.new("RGB", (round(width * pixels_per_mm), round(height * pixels_per_mm)), _PAPER)
        self.draw = ImageDraw.Draw(self.image)

    def pixels(self) -> UInt8:
        return np.ascontiguousarray(np.asarray(self.image)[:, :, ::-1])

    def front(
        self,
        portrait: UInt8,
        identity: Identity,
        title: str,
        *,
        top: float,
        photo: tuple[float, float],
        columns: tuple[float, float],
    ) -> None:
        compact = self.width < 100
        size, step = (2.7, 6.4) if compact else (3.1, 8.4)
        self._text(_MARGIN, top + 3.5, f"{title}  UTOPIA", size * 1.25, _LABEL)
        self._text(self.width - 29, top + 3.5, "SPECIMEN", size * 1.25, _MARK)
        self._photo(portrait, (_MARGIN, top + 11.5), photo)
        rows = [
            [("Type", "P" if title == "PASSPORT" else "I"), ("Document No", identity.document_number)],
            [("Surname", identity.surname)],
            [("Given names", identity.given_names)],
            [("Nationality", identity.nationality), ("Sex", identity.sex)],
            [("Date of birth", _printed(identity.date_of_birth)), ("Personal No", identity.personal_number)],
            [("Date of expiry", _printed(identity.date_of_expiry)), ("Issuing state", identity.issuing_state)],
        ]
        for row, pairs in enumerate(rows):
            for left, (label, value) in zip(columns, pairs, strict=False):
                self._text(left, top + 11 + row * step, label, size * 0.72, _LABEL)
                self._text(left, top + 11 + row * step + size * 0.95, value, size, _INK)

    def rule(self, y: float) -> None:
        self.draw.line([(0, y * self.scale), (self.width * self.scale, y * self.scale)], fill=_LABEL, width=2)

    def mark(self, y: float) -> None:
        self._text(_MARGIN, y, "SPECIMEN", 5.0, _MARK)

    def zone(self, lines: list[str], *, left: float, top: float) -> None:
        """The lines at fixed pitch, each character in the middle of its place; I has serifs as in the zone's OCR-B."""
        font = ImageFont.load_default(size=_MRZ_HEIGHT * self.scale)
        serif = 0.28 * _MRZ_PITCH * self.scale
        for row, line in enumerate(lines):
            for column, character in enumerate(line):
                x = (left + (column + 0.5) * _MRZ_PITCH) * self.scale
                y = (top + row * _MRZ_LINE + _MRZ_HEIGHT) * self.scale
                self.draw.text((x, y), character, fill=_INK, font=font, anchor="ms")
                if character == "I":
                    _, cap, _, base = self.draw.textbbox((x, y), character, font=font, anchor="ms")
                    for edge in (cap, base):
                        self.draw.line([(x - serif, edge), (x + serif, edge)], fill=_INK, width=round(serif / 3))

    def _text(self, x: float, y: float, text: str, height: float, colour: tuple[int, int, int]) -> None:
        font = ImageFont.load_default(size=height * self.scale)
        self.draw.text((x * self.scale, y * self.scale), text, fill=colour, font=font)

    def _photo(self, portrait: UInt8, corner: tuple[float, float], size: tuple[float, float]) -> None:
        width, height = (round(side * self.scale) for side in size)
        rows, columns = portrait.shape[:2]
        fit = min(columns / width, rows / height)
        wide, tall = int(width * fit), int(height * fit)
        left, top = (columns - wide) // 2, (rows - tall) // 2
        cut = portrait[top : top + tall, left : left + wide]
        photo = cv2.resize(cut, (width, height), interpolation=cv2.INTER_AREA if fit > 1 else cv2.INTER_CUBIC)
        self.image.paste(
            Image.fromarray(np.ascontiguousarray(photo[:, :, ::-1])),
            (round(corner[0] * self.scale), round(corner[1] * self.scale)),
        )


def _printed(day: datetime.date) -> str:
    return f"{day.day:02d} {_MONTHS[day.month - 1]} {day.year}"
