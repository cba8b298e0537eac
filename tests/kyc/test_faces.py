from __future__ import annotations

import numpy as np
import pytest

from serve_app.kyc import faces
from serve_app.kyc.faces import Detection

UPRIGHT = np.array([[30, 40], [70, 40], [50, 60], [35, 80], [65, 80]], np.float32)


def candidate(score: float, x: float, y: float, width: float, height: float, mark: float = 0) -> list[float]:
    return [score, x, y, width, height, *[mark] * 10]


def candidates(*rows: list[float]) -> np.ndarray:
    return np.array(rows, np.float32)


def found(*sizes: float) -> list[Detection]:
    return [Detection(np.array([0, 0, size, size], np.float32), UPRIGHT, 0.9) for size in sizes]


def turned(landmarks: np.ndarray, degrees: float) -> np.ndarray:
    angle = np.radians(degrees)
    return landmarks @ np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])


def test_intersection_over_union_by_hand():
    box = np.array([0, 0, 10, 10], np.float32)
    others = np.array(
        [[0, 0, 10, 10], [5, 0, 10, 10], [5, 5, 10, 10], [10, 0, 10, 10], [2, 2, 5, 4], [3, 3, 0, 0]], np.float32
    )
    expected = [1, 50 / 150, 25 / 175, 0, 20 / 100, 0]
    assert faces.intersection_over_union(box, others).tolist() == pytest.approx(expected)


def test_of_overlapping_candidates_the_best_stays_and_apart_ones_both_do():
    # The third overlaps the first by 60 / 140 = 0.43, the fourth by 20 / 180 = 0.11.
    rows = candidates(
        candidate(0.8, 100, 100, 30, 30),
        candidate(0.9, 0, 0, 10, 10),
        candidate(0.85, 4, 0, 10, 10),
        candidate(0.75, 8, 0, 10, 10),
    )
    kept = faces.suppress(rows, 0.7, 0.3)
    assert [face.score for face in kept] == pytest.approx([0.9, 0.8, 0.75])
    assert kept[0].box.tolist() == [0, 0, 10, 10]


def test_what_a_suppressed_candidate_overlaps_stays_where_the_best_does_not_reach():
    # A chain: each overlaps its neighbour by 1/3 + and the ends not at all.
    rows = candidates(candidate(0.9, 0, 0, 10, 10), candidate(0.8, 5, 0, 10, 10), candidate(0.7, 10, 0, 10, 10))
    assert [face.score for face in faces.suppress(rows, 0.5, 0.3)] == pytest.approx([0.9, 0.7])


def test_a_face_is_the_mean_of_its_candidates_weighted_by_score():
    # They overlap by 80 / 120 = 2/3.
    rows = candidates(candidate(0.9, 0, 0, 10, 10, mark=1), candidate(0.6, 2, 0, 10, 10, mark=2))
    (face,) = faces.suppress(rows, 0.5, 0.3)
    assert face.box.tolist() == pytest.approx([2 * 0.6 / 1.5, 0, 10, 10])
    assert face.landmarks.tolist() == [[pytest.approx((0.9 + 1.2) / 1.5)] * 2] * 5
    assert face.score == pytest.approx(0.9)


def test_candidates_below_the_threshold_and_padding_are_no_faces():
    rows = candidates(candidate(0.69, 0, 0, 10, 10), candidate(0, 0, 0, 0, 0), candidate(0, 0, 0, 0, 0))
    assert faces.suppress(rows, 0.7, 0.3) == []


def test_a_box_without_an_area_does_not_stop_suppression():
    rows = candidates(candidate(0.9, 5, 5, 0, 0), candidate(0.8, 0, 0, 10, 10))
    assert [face.score for face in faces.suppress(rows, 0.7, 0.3)] == pytest.approx([0.9, 0.8])


def test_the_largest_face_is_chosen_by_area():
    assert faces.largest(found(10, 30, 20)).box[2] == 30


@pytest.mark.parametrize(("sizes", "expected"), [((), False), ((10,), False), ((10, 5), True), ((4.9, 10), False)])
def test_a_second_face_counts_from_a_share_of_the_largest_ones_area(sizes, expected):
    assert faces.has_company(found(*sizes), 0.25) is expected


@pytest.mark.parametrize("degrees", [0, 20, -20, 90, -90, 135, 180])
def test_roll_is_the_angle_a_face_is_turned_by(degrees):
    assert faces.roll(turned(UPRIGHT, degrees)) == pytest.approx(abs(degrees), abs=1e-4)


def test_a_face_on_its_head_is_seen_where_the_eyes_are_named_by_their_place_in_the_picture():
    flipped = UPRIGHT * np.float32([1, -1])
    assert faces.roll(flipped) == 180


def test_scaling_moves_box_and_landmarks():
    face = found(10)[0].scaled(2)
    assert face.box.tolist() == [0, 0, 20, 20]
    assert np.array_equal(face.landmarks, UPRIGHT * 2)


def test_cosine_similarity_of_normalised_embeddings():
    a, b = np.float32([0.6, 0.8]), np.float32([0.8, 0.6])
    assert faces.cosine_similarity(a, b) == pytest.approx(0.96)
    assert faces.cosine_similarity(a, -a) == pytest.approx(-1)
    assert -1 <= faces.cosine_similarity(a * np.float32(1.000001), a) <= 1
