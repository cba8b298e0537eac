"""From the bytes of an upload to an upright BGR picture, or a Problem that says why not.

One decoder, Pillow, whose header can be read without decoding: the pixel limit comes first. OpenCV makes the same
pixels of a JPEG (both use libjpeg-turbo) in half to two thirds of the time, but drops alpha, knows no frames, prints
libjpeg's complaints to stderr, and, before version 5, fills what a truncated file lacks with grey. Pillow refuses it.
Measured on one core: a JPEG of 2 MP takes 10 ms, of 12 MP 95 ms, and 33 ms with a `longest_side` of 1600.

The formats are what phones, browsers and screenshots write; GIF is among them so that an animated one is named as such.
TIFF is not: behind it stand dozens of codecs with a long record of memory errors, and hardly anyone uploads it.
"""

from __future__ import annotations

import io
import struct
import threading
import warnings
from dataclasses import dataclass

import cv2
import numpy as np
from PIL import Image

from serve_app.model import UInt8
from serve_app.problem import Problem

FORMATS = ("JPEG", "PNG", "WEBP", "BMP", "GIF")
_SIGNATURES = (b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n", b"RIFF", b"BM", b"GIF8")
_REDUCIBLE = {"L", "LA", "RGB", "RGBA", "CMYK"}
_ORIENTATION = 0x0112  # EXIF 2.32 table 4
# What Pillow's readers raise on bytes that are not what the header promised.
_DAMAGED = (OSError, SyntaxError, ValueError, EOFError, struct.error, IndexError, KeyError, TypeError, OverflowError)

# Pillow warns about odd EXIF blocks that cameras do write. `catch_warnings` swaps process-wide state, hence the lock.
_header = threading.Lock()
# A picture of 50 megapixels takes 200 MB while it is decoded, so not all threads of a process may do that at once.
_decoders = threading.BoundedSemaphore(2)


@dataclass(frozen=True)
class Picture:
    """An upright picture.

    `pixels`: uint8[H, W, 3], BGR. `scale`: its pixels per pixel of the upright original, at most 1.
    """

    pixels: UInt8
    scale: float


def decode(data: bytes, *, max_pixels: int, min_side: int, longest_side: int | None = None) -> Picture:
    """The picture in `data`: EXIF orientation applied, alpha on white, 16 bits scaled to 8, CMYK and grey as BGR.

    Its longer side is at most `longest_side` where that is given; a JPEG is then decoded at a reduced scale.

    Raises Problem: 415 `not_an_image`, 415 `animated_image`, 413 `image_too_many_pixels` (nothing decoded yet),
    422 `image_too_small` (a side shorter than `min_side`), 422 `image_truncated`.
    """
    with _decoders:
        return _decode(data, max_pixels, min_side, longest_side)


def _decode(data: bytes, max_pixels: int, min_side: int, longest_side: int | None) -> Picture:
    # Opening counts: a WebP is given the memory for its pixels by then.
    image, orientation = _open(data, max_pixels)
    width, height = image.size
    if width * height > max_pixels:
        raise _too_many(max_pixels)
    if min(width, height) < min_side:
        raise Problem(
            422,
            "image_too_small",
            f"the image is {width} by {height} pixels; send one with at least {min_side} on its shorter side",
        )
    pixels = _upright(_bgr(_load(image, longest_side)), orientation)
    if longest_side is not None and max(pixels.shape[:2]) > longest_side:
        size = _within(pixels.shape[1], pixels.shape[0], longest_side)
        # To half the size and above, bilinear takes every pixel into account, at a tenth of the cost.
        halved = max(pixels.shape[:2]) > 2 * longest_side
        pixels = np.asarray(cv2.resize(pixels, size, interpolation=cv2.INTER_AREA if halved else cv2.INTER_LINEAR))
    return Picture(pixels, max(pixels.shape[:2]) / max(width, height))


def _load(image: Image.Image, longest_side: int | None) -> Image.Image:
    """The image decoded, and shrunk where it is more than twice too large, before the copies that conversion makes."""
    if longest_side is not None:
        image.draft(None, _within(*image.size, longest_side))
    try:
        image.load()
    except _DAMAGED as error:
        raise _truncated() from error
    factor = 1 if longest_side is None else max(image.size) // longest_side
    if factor <= 1:
        return image
    if image.mode == "1":
        image = image.convert("L")
    if image.mode in _REDUCIBLE:
        return image.reduce(factor)
    # The mean of palette indices is no colour.
    return image.resize((image.width // factor, image.height // factor), Image.Resampling.NEAREST)


def letterbox(image: UInt8, size: int) -> tuple[UInt8, float]:
    """`image` in the top left of a black square: uint8[size, size, 3], and the scale it was shrunk by (at most 1).

    Every picture has the same shape then, so that a model's calls batch. Coordinates in the square divided by the scale
    are coordinates in `image`.
    """
    height, width = image.shape[:2]
    scale = min(1.0, size / max(height, width))
    square = np.zeros((size, size, 3), np.uint8)
    inner = (max(1, round(width * scale)), max(1, round(height * scale)))
    square[: inner[1], : inner[0]] = cv2.resize(image, inner, interpolation=cv2.INTER_AREA) if scale < 1 else image
    return square, scale


def sharpness(image: UInt8) -> float:
    """Variance of the grey picture's Laplacian: blur brings it towards 0 (Pech-Pacheco et al., ICPR 2000)."""
    grey = cv2.cvtColor(image, cv2.COLOR_BGR2GRAY)
    return float(cv2.Laplacian(grey, cv2.CV_64F).var())


def brightness(image: UInt8) -> float:
    """Mean grey value, 0 to 255."""
    return float(np.mean(cv2.cvtColor(image, cv2.COLOR_BGR2GRAY)))


def _open(data: bytes, max_pixels: int) -> tuple[Image.Image, int]:
    """The image with only its header read, and its EXIF orientation, 1 to 8."""
    with _header, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            image = Image.open(io.BytesIO(data), formats=FORMATS)
            # A phone's portrait often carries a gain or depth map as its second picture: MPO, not an animation.
            animated = image.format != "MPO" and bool(getattr(image, "is_animated", False))
        except Image.DecompressionBombError as error:
            raise _too_many(max_pixels) from error
        except _DAMAGED as error:
            if data.startswith(_SIGNATURES):
                raise _truncated() from error
            raise Problem(415, "not_an_image", "send a JPEG, PNG, WebP, BMP or GIF image") from error
        if animated:
            raise Problem(415, "animated_image", "the image has several frames; send a still one")
        return image, _orientation(image)


def _orientation(image: Image.Image) -> int:
    """EXIF orientation; 1 (upright) where there is none or the EXIF block cannot be read."""
    try:
        value = image.getexif().get(_ORIENTATION, 1)
    except _DAMAGED:
        return 1
    return value if isinstance(value, int) and 1 <= value <= 8 else 1


def _bgr(image: Image.Image) -> UInt8:
    if image.mode == "I;16":
        grey = cv2.convertScaleAbs(np.asarray(image), alpha=1 / 257)
        return np.asarray(cv2.cvtColor(grey, cv2.COLOR_GRAY2BGR), np.uint8)
    if image.has_transparency_data:
        opaque = image.convert("RGBA")
        image = Image.alpha_composite(Image.new("RGBA", opaque.size, "white"), opaque)
    return np.asarray(cv2.cvtColor(np.asarray(image.convert("RGB")), cv2.COLOR_RGB2BGR), np.uint8)


def _upright(image: UInt8, orientation: int) -> UInt8:
    """`image` with its EXIF orientation undone (EXIF 2.32 §4.6.4: where row 0 and column 0 of the file belong)."""
    if orientation in (5, 6, 7, 8):
        image = image.transpose(1, 0, 2)
    if orientation in (3, 4, 7, 8):
        image = image[::-1]
    if orientation in (2, 3, 6, 7):
        image = image[:, ::-1]
    return np.ascontiguousarray(image)


def _within(width: int, height: int, longest_side: int) -> tuple[int, int]:
    scale = min(1.0, longest_side / max(width, height))
    return max(1, round(width * scale)), max(1, round(height * scale))


def _too_many(max_pixels: int) -> Problem:
    return Problem(
        413, "image_too_many_pixels", f"the image has more than {max_pixels / 1e6:g} megapixels; send a smaller one"
    )


def _truncated() -> Problem:
    return Problem(422, "image_truncated", "the image is incomplete or damaged; send the whole file")
