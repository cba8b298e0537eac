"""DB's post-processing on probability maps whose right boxes can be worked out by hand."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from serve_app.kyc.text_detection import crop_line, detector_size, reading_rows, text_quads


def quad(x: float, y: float, width: float, height: float, degrees: float = 0.0) -> np.ndarray:
    """Corners from the text's own top left, turned around the picture's origin."""
    corners = np.array([[x, y], [x + width, y], [x + width, y + height], [x, y + height]], np.float32)
    turn = np.deg2rad(degrees)
    return corners @ np.array([[np.cos(turn), np.sin(turn)], [-np.sin(turn), np.cos(turn)]], np.float32)


@pytest.mark.parametrize(
    ("size", "given"),
    [
        ((1189, 1689), (512, 736)),
        ((1620, 1209), (736, 544)),
        ((400, 700), (384, 704)),
        ((10, 3000), (32, 736)),
        ((20, 20), (32, 32)),
    ],
)
def test_the_detector_is_given_multiples_of_32_within_its_limit(size, given):
    assert detector_size(*size, 736) == given


def test_a_region_becomes_its_rectangle_grown_by_area_over_perimeter():
    probability = np.zeros((200, 400), np.uint8)
    probability[50:71, 100:301] = 230  # minAreaRect spans pixel centres: 200 by 20
    quads, scores = text_quads(probability, (200, 400), unclip_ratio=1.5)
    offset = 200 * 20 * 1.5 / (2 * (200 + 20))
    expected = [
        [100 - offset, 50 - offset],
        [300 + offset, 50 - offset],
        [300 + offset, 70 + offset],
        [100 - offset, 70 + offset],
    ]
    np.testing.assert_allclose(quads, [expected], atol=0.01)
    np.testing.assert_allclose(scores, [230 / 255], atol=1e-6)


def test_boxes_are_in_pixels_of_the_picture_and_stay_inside_it():
    probability = np.zeros((64, 128), np.uint8)
    probability[10:21, 0:127] = 255
    quads, _ = text_quads(probability, (640, 384))
    assert quads[:, :, 0].min() == 0
    assert quads[:, :, 0].max() == 384
    assert quads[0, 0, 1] == pytest.approx((10 - 126 * 10 * 1.5 / (2 * 136)) * 10, abs=0.1)


def test_a_turned_region_gives_a_turned_box_from_its_own_top_left():
    probability = np.zeros((400, 400), np.uint8)
    cv2.fillPoly(probability, [np.rint(quad(120, 100, 200, 24, 10)).astype(np.int32)], 255)
    quads, _ = text_quads(probability, (400, 400), unclip_ratio=1.5)
    grown = 200 * 24 * 1.5 / (2 * 224)
    expected = quad(120 - grown, 100 - grown, 200 + 2 * grown, 24 + 2 * grown, 10)
    np.testing.assert_allclose(quads[0], expected, atol=2.5)


@pytest.mark.parametrize(
    ("value", "height", "found"),
    [(255, 20, 1), (160, 20, 1), (150, 20, 0), (70, 20, 0), (255, 3, 0), (255, 5, 1)],
    ids=[
        "certain",
        "above the box threshold",
        "below it",
        "below the pixel threshold",
        "too thin",
        "just thick enough",
    ],
)
def test_only_likely_and_large_enough_regions_are_text(value, height, found):
    probability = np.zeros((100, 200), np.uint8)
    probability[40 : 40 + height, 20:180] = value
    quads, scores = text_quads(probability, (100, 200), box_threshold=0.6)
    assert quads.shape == (found, 4, 2)
    assert scores.shape == (found,)


PAGE = [
    (20, 20, 100, 20),
    (300, 24, 60, 16),
    (20, 60, 80, 20),
    (200, 58, 90, 22),
    (320, 61, 40, 18),
    (20, 100, 340, 20),
]


@pytest.mark.parametrize("degrees", [0, 6, -6])
def test_text_is_read_by_rows_then_from_left_to_right_on_a_tilted_page_too(degrees):
    quads = np.stack([quad(*box, degrees) for box in PAGE])
    shuffled = [4, 1, 5, 0, 3, 2]
    rows = reading_rows(quads[shuffled])
    assert [[shuffled[index] for index in row] for row in rows] == [[0, 1], [2, 3, 4], [5]]


def test_no_text_has_no_rows():
    assert reading_rows(np.empty((0, 4, 2), np.float32)) == []


def test_a_crop_of_a_turned_line_is_upright():
    upright = np.full((300, 500, 3), 255, np.uint8)
    cv2.putText(upright, "UTOPIA 42", (60, 160), cv2.FONT_HERSHEY_SIMPLEX, 2, (0, 0, 0), 4)
    box = quad(50, 100, 400, 80)
    straight = crop_line(upright, box)
    np.testing.assert_array_equal(straight, upright[100:180, 50:450])
    matrix = cv2.getRotationMatrix2D((250, 150), 8, 1.0)
    turned = cv2.warpAffine(upright, matrix, (500, 300), borderValue=(255, 255, 255))
    moved = cv2.transform(box[None], matrix)[0].astype(np.float32)
    crop = crop_line(turned, moved)
    assert crop.shape == straight.shape
    assert np.abs(crop.astype(int) - straight).mean() < 6


def test_a_line_that_runs_down_the_page_is_turned_left():
    image = np.zeros((300, 100, 3), np.uint8)
    image[20:40, 40:60] = 255  # its beginning, at the top
    crop = crop_line(image, np.array([[40, 20], [60, 20], [60, 220], [40, 220]], np.float32))
    assert crop.shape == (20, 200, 3)
    assert crop[:, :20].mean() > 250
    assert crop[:, 30:].mean() < 5
