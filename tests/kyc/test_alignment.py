from __future__ import annotations

import numpy as np
import pytest

from serve_app.kyc import alignment
from serve_app.kyc.faces import TEMPLATE

LANDMARKS = np.array([[310.2, 402.7], [455.1, 380.9], [396.4, 471.3], [340.8, 560.2], [470.5, 541.6]], np.float32)


def umeyama(source: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Eqs. 40 to 43 of Umeyama 1991 as they are printed, by singular value decomposition."""
    mean_s, mean_t = source.mean(0), target.mean(0)
    covariance = (target - mean_t).T @ (source - mean_s) / len(source)
    u, d, vt = np.linalg.svd(covariance)
    sign = np.diag([1.0, np.sign(np.linalg.det(u) * np.linalg.det(vt))])
    rotation = u @ sign @ vt
    scale = np.trace(np.diag(d) @ sign) / ((source - mean_s) ** 2).sum(1).mean()
    return np.column_stack([scale * rotation, mean_t - scale * rotation @ mean_s])


def least_squares(source: np.ndarray, target: np.ndarray) -> np.ndarray:
    """[[a, -b, s], [b, a, t]] from the normal equations."""
    rows, wanted = [], []
    for (x, y), (u, v) in zip(source, target, strict=True):
        rows += [[x, -y, 1, 0], [y, x, 0, 1]]
        wanted += [u, v]
    a, b, s, t = np.linalg.lstsq(np.array(rows, float), np.array(wanted, float), rcond=None)[0]
    return np.array([[a, -b, s], [b, a, t]])


@pytest.mark.parametrize("reference", [umeyama, least_squares])
def test_the_transform_is_umeyamas(reference):
    ours = alignment.similarity_transform(LANDMARKS, TEMPLATE)
    assert ours == pytest.approx(reference(LANDMARKS.astype(float), TEMPLATE.astype(float)), abs=1e-6)


def test_a_known_rotation_scale_and_shift_is_found_again():
    angle, scale, shift = np.radians(33), 0.4, np.array([7.0, -3.0])
    rotation = scale * np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    matrix = alignment.similarity_transform(LANDMARKS, LANDMARKS @ rotation.T + shift)
    assert matrix == pytest.approx(np.column_stack([rotation, shift]), abs=1e-4)


def test_a_mirrored_face_is_not_mirrored_back():
    matrix = alignment.similarity_transform(TEMPLATE * np.float32([-1, 1]), TEMPLATE)
    assert np.linalg.det(matrix[:, :2]) > 0


def test_points_that_are_all_the_same_have_no_transform():
    with pytest.raises(ValueError, match="all the same"):
        alignment.similarity_transform(np.ones((5, 2)), TEMPLATE)


def test_points_come_back_through_the_inverse():
    matrix = alignment.similarity_transform(LANDMARKS, TEMPLATE)
    there = LANDMARKS @ matrix[:, :2].T + matrix[:, 2]
    assert alignment.inverted(matrix, there) == pytest.approx(LANDMARKS, abs=1e-4)


@pytest.mark.parametrize("size", [0.6, 1, 2.3, 7])
def test_alignment_brings_every_landmark_to_its_place_in_the_template(size):
    """Discs at the template's points, turned and scaled, are found at the template's points again."""
    angle = np.radians(12)
    turn = size * np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    landmarks = TEMPLATE @ turn.T + np.array([60 * size, 20 * size])
    height, width = int(160 * size), int(200 * size)
    y, x = np.mgrid[0:height, 0:width]
    for point, place in zip(landmarks, TEMPLATE, strict=True):
        disc = np.clip(4 * size - np.hypot(x - point[0], y - point[1]) + 0.5, 0, 1) * 255
        crop = alignment.align(np.repeat(disc[..., None], 3, 2).astype(np.uint8), landmarks)
        assert crop.shape == (112, 112, 3)
        weight = crop[:, :, 0].astype(float)
        rows, columns = np.mgrid[0:112, 0:112]
        centre = [(columns * weight).sum() / weight.sum(), (rows * weight).sum() / weight.sum()]
        assert centre == pytest.approx(place.tolist(), abs=0.2)


def test_fine_detail_of_a_large_face_does_not_alias():
    checks = ((np.indices((1200, 1200)).sum(0) % 2) * 255).astype(np.uint8)[..., None].repeat(3, 2)
    crop = alignment.align(checks, TEMPLATE * 10)
    assert np.ptp(crop[5:-5, 5:-5].astype(int)) <= 4


def test_what_lies_outside_the_picture_is_black():
    crop = alignment.align(np.full((112, 60, 3), 200, np.uint8), TEMPLATE)
    assert (crop[:, :58] == 200).all()
    assert (crop[:, 62:] == 0).all()


def test_the_surroundings_of_a_box_are_twice_its_longer_side():
    image = np.zeros((400, 400, 3), np.uint8)
    image[150:250, 180:220] = 255  # a box of 40 by 100 pixels
    crop = alignment.around(image, np.array([180.0, 150.0, 40.0, 100.0]), 80)
    white = np.argwhere(crop[:, :, 0] > 127)
    assert white.min(0).tolist() == pytest.approx([20, 32], abs=1)
    assert white.max(0).tolist() == pytest.approx([59, 47], abs=1)
