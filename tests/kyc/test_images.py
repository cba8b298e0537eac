from __future__ import annotations

import io
import struct
import warnings
import zlib
from concurrent.futures import ThreadPoolExecutor

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from serve_app.kyc import images
from serve_app.problem import Problem


def decode(data: bytes, *, max_pixels: int = 1_000_000, min_side: int = 2, longest_side: int | None = None):
    return images.decode(data, max_pixels=max_pixels, min_side=min_side, longest_side=longest_side)


def code_of(data: bytes, **limits: int) -> tuple[int, str]:
    with pytest.raises(Problem) as caught:
        decode(data, **limits)
    return caught.value.status, caught.value.code


def encoded(image: Image.Image, kind: str, **options: object) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


def scene(width: int = 160, height: int = 120) -> np.ndarray:
    """A smooth picture, BGR, every channel different."""
    y, x = np.mgrid[0:height, 0:width]
    return np.stack([x * 255 // width, y * 255 // height, (x + y) * 255 // (width + height)], -1).astype(np.uint8)


def scene_image(**size: int) -> Image.Image:
    return Image.fromarray(np.ascontiguousarray(scene(**size)[:, :, ::-1]))


def png_header(width: int, height: int) -> bytes:
    """A PNG that ends before its first pixel."""

    def chunk(name: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))

    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
        + chunk(b"IDAT", b"")
    )


JPEG = encoded(scene_image(), "JPEG", quality=95)
KINDS = {"JPEG": JPEG, **{kind: encoded(scene_image(), kind) for kind in ("PNG", "WEBP", "BMP", "GIF")}}


@pytest.mark.parametrize("kind", KINDS)
def test_every_format_decodes_to_bgr(kind):
    picture = decode(KINDS[kind])
    assert picture.pixels.dtype == np.uint8
    assert picture.pixels.flags.c_contiguous
    assert picture.scale == 1
    tolerance = {"GIF": 30, "JPEG": 5, "WEBP": 12}.get(kind, 0)
    assert np.abs(picture.pixels.astype(int) - scene()).max() <= tolerance


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"not a picture\n" * 9,
        b"\x00" * 500,
        b"<svg xmlns='http://www.w3.org/2000/svg'/>",
        b"\0\0\0\x18ftypheic" + b"\0" * 64,
        encoded(Image.new("RGB", (99, 99)), "TIFF"),
    ],
    ids=["empty", "text", "zeros", "svg", "heic", "tiff"],
)
def test_what_is_no_picture_is_refused(data):
    assert code_of(data) == (415, "not_an_image")


@pytest.mark.parametrize("size", [(10_000, 10_000), (1001, 1000), (60_000, 60_000)], ids=str)
def test_too_many_pixels_are_refused_before_any_is_decoded(size):
    # The file has no pixels: decoding it would fail as truncated.
    assert code_of(png_header(*size)) == (413, "image_too_many_pixels")
    assert code_of(png_header(1000, 1000)) == (422, "image_truncated")


def test_a_real_100_megapixel_png_is_refused():
    data = encoded(Image.new("1", (10_000, 10_000)), "PNG")
    assert code_of(data, max_pixels=50_000_000) == (413, "image_too_many_pixels")


@pytest.mark.parametrize("size", [(1, 1), (300, 63), (63, 300)], ids=str)
def test_a_picture_with_too_short_a_side_is_refused(size):
    assert code_of(encoded(Image.new("RGB", size), "PNG"), min_side=64) == (422, "image_too_small")


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "BMP", "GIF"])
@pytest.mark.parametrize("kept", [0.02, 0.3, 0.6, 0.97])
def test_a_truncated_file_is_refused(kind, kept):
    data = KINDS[kind]
    assert code_of(data[: max(10, int(len(data) * kept))]) == (422, "image_truncated")


def test_a_jpeg_that_lacks_its_last_marker_is_refused():
    assert JPEG.endswith(b"\xff\xd9")
    assert code_of(JPEG[:-2]) == (422, "image_truncated")


def test_bytes_after_the_end_of_a_jpeg_do_not_matter():
    assert np.array_equal(decode(JPEG + b"trailer" * 100).pixels, decode(JPEG).pixels)


@pytest.mark.parametrize("kind", ["GIF", "PNG", "WEBP"])
def test_a_picture_with_several_frames_is_refused(kind):
    frames = [Image.new("RGB", (40, 30), colour) for colour in ("red", "green", "blue")]
    assert code_of(encoded(frames[0], kind, save_all=True, append_images=frames[1:])) == (415, "animated_image")


def test_a_photo_with_a_second_picture_inside_as_phones_store_gain_maps_is_its_first_picture():
    data = encoded(scene_image(), "MPO", save_all=True, append_images=[Image.new("RGB", (40, 30))], quality=95)
    assert np.array_equal(decode(data).pixels, decode(JPEG).pixels)


# Where EXIF 2.32 §4.6.4 puts the file's row 0 and its column 0, by orientation.
SIDES = {
    1: ("top", "left"),
    2: ("top", "right"),
    3: ("bottom", "right"),
    4: ("bottom", "left"),
    5: ("left", "top"),
    6: ("right", "top"),
    7: ("right", "bottom"),
    8: ("left", "bottom"),
}


def side_of(pixels: np.ndarray, side: str) -> np.ndarray:
    return {"top": pixels[0], "bottom": pixels[-1], "left": pixels[:, 0], "right": pixels[:, -1]}[side]


def marked(kind: str, orientation: int) -> bytes:
    """48 by 32 pixels: row 0 green, column 0 red, in one corner both."""
    pixels = np.zeros((32, 48, 3), np.uint8)
    pixels[:8, :, 1] = 255
    pixels[:, :8, 0] = 255
    exif = Image.Exif()
    exif[0x0112] = orientation
    lossless = {"lossless": True} if kind == "WEBP" else {}
    return encoded(Image.fromarray(pixels), kind, exif=exif, **lossless)


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP"])
@pytest.mark.parametrize("orientation", SIDES)
def test_exif_orientation_is_applied(orientation, kind):
    pixels = decode(marked(kind, orientation)).pixels
    row, column = SIDES[orientation]
    assert pixels.shape == ((32, 48, 3) if orientation < 5 else (48, 32, 3))
    assert (side_of(pixels, row)[:, 1] > 150).all()
    assert (side_of(pixels, column)[:, 2] > 150).all()
    assert pixels[16, 20].max() < 60


@pytest.mark.parametrize(
    "exif",
    [
        b"Exif\0\0II*\0\x08\0\0\0\x09\0\x12\x01\x03\0",
        b"Exif\0\0garbage",
        b"Exif\0\0MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x63\0\0",
    ],
    ids=["cut off", "garbage", "orientation 99"],
)
def test_a_photo_whose_exif_block_is_damaged_is_taken_as_upright(exif):
    segment = b"\xff\xe1" + struct.pack(">H", len(exif) + 2) + exif
    assert np.array_equal(decode(JPEG[:2] + segment + JPEG[2:]).pixels, decode(JPEG).pixels)


def test_transparent_pixels_lie_on_white():
    pixels = np.zeros((4, 3, 4), np.uint8)
    pixels[..., 0] = 200
    pixels[:, :, 3] = [0, 255, 51]
    row = decode(encoded(Image.fromarray(pixels), "PNG")).pixels[0]
    # 51 / 255 = 0.2 of (200, 0, 0) and 0.8 of white.
    assert row.tolist() == [[255, 255, 255], [0, 0, 200], [204, 204, 244]]


def test_a_transparent_palette_colour_is_white():
    palette = Image.new("P", (4, 4), 1)
    palette.putpalette([0, 0, 0, 10, 20, 30])
    palette.putpixel((0, 0), 0)
    pixels = decode(encoded(palette, "PNG", transparency=0)).pixels
    assert pixels[0, 0].tolist() == [255, 255, 255]
    assert pixels[1, 1].tolist() == [30, 20, 10]


def test_grey_with_alpha_lies_on_white():
    data = encoded(Image.merge("LA", [Image.new("L", (4, 4), 100), Image.new("L", (4, 4), 51)]), "PNG")
    assert decode(data).pixels[0, 0].tolist() == [224, 224, 224]


def test_16_bit_grey_is_scaled():
    values = np.array([[0, 257, 257 * 100, 65535], [128, 129, 30000, 65406]], np.uint16)
    ok, data = cv2.imencode(".png", values)
    assert ok
    assert decode(data.tobytes()).pixels[:, :, 1].tolist() == [[0, 1, 100, 255], [0, 1, 117, 254]]


def test_16_bit_colour_is_scaled():
    ok, data = cv2.imencode(".png", scene().astype(np.uint16) * 257)
    assert ok
    assert np.array_equal(decode(data.tobytes()).pixels, scene())


def test_cmyk_is_converted_as_opencv_does():
    cmyk = encoded(scene_image().convert("CMYK"), "JPEG", quality=98)
    assert np.abs(decode(cmyk).pixels.astype(int) - cv2.imdecode(np.frombuffer(cmyk, np.uint8), 1)).max() <= 3
    assert np.abs(decode(cmyk).pixels.astype(int) - scene()).max() <= 12


def test_grey_and_black_and_white_pictures_get_three_channels():
    assert decode(encoded(Image.new("L", (4, 4), 77), "PNG")).pixels.tolist() == [[[77] * 3] * 4] * 4
    assert decode(encoded(Image.new("1", (4, 4), 1), "PNG")).pixels.tolist() == [[[255] * 3] * 4] * 4


@pytest.mark.parametrize("kind", ["JPEG", "PNG"])
def test_a_large_picture_is_scaled_to_its_longest_side(kind):
    picture = decode(encoded(scene_image(width=800, height=600), kind, quality=95), longest_side=160)
    assert picture.pixels.shape == (120, 160, 3)
    assert picture.scale == 0.2
    assert np.abs(picture.pixels.astype(int) - scene()).max() <= 6


def test_a_turned_picture_is_scaled_by_its_longest_side_too():
    exif = Image.Exif()
    exif[0x0112] = 6
    picture = decode(encoded(scene_image(width=800, height=600), "JPEG", exif=exif), longest_side=400)
    assert picture.pixels.shape == (400, 300, 3)
    assert picture.scale == 0.5


def test_a_small_picture_is_not_enlarged():
    assert decode(JPEG, longest_side=1000).pixels.shape == (120, 160, 3)


@settings(max_examples=150, deadline=None)
@given(kind=st.sampled_from(sorted(KINDS)), where=st.floats(0, 1), junk=st.binary(min_size=1, max_size=8))
def test_damaged_files_are_decoded_or_refused_and_nothing_else(kind, where, junk):
    data = bytearray(KINDS[kind])
    at = int(where**2 * (len(data) - 1))
    data[at : at + len(junk)] = junk
    try:
        shape = decode(bytes(data)).pixels.shape
    except Problem as problem:
        shape, refused = None, problem.status in {413, 415, 422}
    assert refused if shape is None else shape[2] == 3


def test_decoding_in_many_threads_leaves_the_warning_filters_as_they_were():
    before = list(warnings.filters)
    with ThreadPoolExecutor(8) as pool:
        shapes = list(pool.map(lambda _: decode(JPEG).pixels.shape, range(64)))
    assert set(shapes) == {(120, 160, 3)}
    assert list(warnings.filters) == before


def test_letterboxing_shrinks_to_the_square_and_pads_right_and_below():
    square, scale = images.letterbox(np.full((100, 200, 3), 9, np.uint8), 64)
    assert square.shape == (64, 64, 3)
    assert scale == 0.32
    assert (square[:32] == 9).all()
    assert (square[32:] == 0).all()


def test_letterboxing_does_not_enlarge():
    square, scale = images.letterbox(scene(width=20, height=10), 64)
    assert scale == 1
    assert np.array_equal(square[:10, :20], scene(width=20, height=10))
    assert square[10:].max() == square[:, 20:].max() == 0


def test_blur_lowers_sharpness_and_light_raises_brightness():
    checks = np.kron(np.indices((14, 14)).sum(0) % 2, np.ones((8, 8)))[..., None].repeat(3, 2).astype(np.uint8) * 200
    assert images.sharpness(checks) > 10 * images.sharpness(cv2.GaussianBlur(checks, (0, 0), 3))
    assert images.brightness(checks) == 100
    assert images.sharpness(np.full((112, 112, 3), 50, np.uint8)) == 0


@pytest.mark.parametrize("mode", ["P", "1", "I;16", "RGB", "CMYK"])
def test_a_picture_many_times_too_large_is_shrunk_whatever_its_kind(mode: str) -> None:
    pixels = np.zeros((400, 800, 3), np.uint8)
    pixels[:, 400:] = 255
    image = Image.fromarray(pixels)
    if mode == "I;16":
        image = Image.fromarray(pixels[..., 0].astype(np.uint16) * 257)
    elif mode != "RGB":
        image = image.convert(mode)
    picture = decode(encoded(image, "JPEG" if mode == "CMYK" else "PNG"), longest_side=100)
    assert picture.pixels.shape == (50, 100, 3)
    assert picture.scale == 0.125
    assert picture.pixels[:, :45].max() <= 5
    assert picture.pixels[:, 55:].min() >= 250
