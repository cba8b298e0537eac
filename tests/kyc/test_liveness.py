from __future__ import annotations

import numpy as np
import pytest

from serve_app.kyc.liveness import JITTER, assess
from tests.kyc.frames import FLAT_HEAD, HEAD, landmarks_of

SWEEP = (-1.0, -0.4, 0.4, 1.0)
FLAT_MOVES = {
    "still": lambda a: {},
    "shifted": lambda a: {"shift": (80 * a, 40 * a, 0)},
    "brought nearer": lambda a: {"shift": (0, 0, 150 * a)},
    "turned in its plane": lambda a: {"roll": 30 * a},
    "tilted to the side": lambda a: {"yaw": 35 * a},
    "tilted back": lambda a: {"pitch": 35 * a},
    "tilted close to the camera": lambda a: {"yaw": 40 * a, "pitch": 20 * a, "shift": (0, 0, -220)},
    "all at once": lambda a: {"yaw": 25 * a, "pitch": 10 * a, "roll": 20 * a, "shift": (40 * a, 0, 90 * a)},
}
HEAD_MOVES = {
    "turned": lambda a: {"yaw": 25 * a},
    "nodding": lambda a: {"pitch": 25 * a},
    "turned and shifted": lambda a: {"yaw": 25 * a, "roll": 5 * a, "shift": (30 * a, 0, 60 * a)},
}


def frames(head: np.ndarray, move, steps=SWEEP, noise: float = 0, seed: int = 0) -> np.ndarray:
    random = np.random.default_rng(seed)
    return np.stack([landmarks_of(head, **move(a), noise=noise, random=random) for a in steps])


@pytest.mark.parametrize("move", FLAT_MOVES)
def test_a_flat_picture_has_no_parallax_however_it_is_moved(move):
    assessment = assess(frames(FLAT_HEAD, FLAT_MOVES[move]))
    assert assessment.parallax == pytest.approx(0, abs=1e-9)
    assert assessment.score < 1e-4


@pytest.mark.parametrize("noise", [0.005, 0.01])
@pytest.mark.parametrize("steps", [(-1.0, 1.0), SWEEP, tuple(np.linspace(-1, 1, 10))], ids=len)
@pytest.mark.parametrize("move", FLAT_MOVES)
def test_a_flat_picture_scores_low_with_jittering_landmarks(move, steps, noise):
    scores = [assess(frames(FLAT_HEAD, FLAT_MOVES[move], steps, noise, seed)).score for seed in range(40)]
    assert np.median(scores) < 0.01
    assert np.mean(np.array(scores) >= 0.5) <= 0.025


@pytest.mark.parametrize("noise", [0, 0.005, 0.01])
@pytest.mark.parametrize("steps", [(-1.0, 1.0), SWEEP, tuple(np.linspace(-1, 1, 10))], ids=len)
@pytest.mark.parametrize("move", HEAD_MOVES)
def test_a_head_that_turns_by_25_degrees_to_both_sides_scores_high(move, steps, noise):
    scores = [assess(frames(HEAD, HEAD_MOVES[move], steps, noise, seed)).score for seed in range(20)]
    assert min(scores) > 0.9


def test_a_head_that_only_comes_nearer_scores_low():
    assert assess(frames(HEAD, FLAT_MOVES["brought nearer"])).score < 0.01


def test_a_larger_turn_has_a_larger_score_and_parallax():
    few, more, most = (assess(frames(HEAD, lambda a, d=d: {"yaw": d * a})) for d in (8, 12, 16))
    assert few.score < more.score < most.score
    assert few.parallax < more.parallax < most.parallax


def test_parallax_is_how_far_the_nose_left_the_plane():
    """A head of which only the nose moves, by a tenth of the distance between the eyes."""
    still = landmarks_of(FLAT_HEAD)
    moved = still.copy()
    size = np.linalg.norm(still[1] - still[0])
    moved[2, 0] += 0.1 * size
    # From the mean place, half of that; the model's face is a little narrower in the mouth than the template.
    assert assess(np.stack([still, moved])).parallax == pytest.approx(0.05, rel=0.02)


def test_motion_is_the_root_mean_square_way_in_inter_ocular_distances():
    still = landmarks_of(HEAD)
    size = np.linalg.norm(still[1] - still[0])
    assert assess(np.stack([still, still])).motion == 0
    shifted = still + np.array([0.3, 0.4]) * size
    assert assess(np.stack([still, shifted, still])).motion == pytest.approx(0.5)


def test_the_size_of_the_picture_does_not_matter():
    landmarks = frames(HEAD, HEAD_MOVES["turned"], noise=0.01)
    assert assess(landmarks * 7.3) == pytest.approx(assess(landmarks), rel=1e-6)


def test_the_order_of_the_frames_does_not_matter():
    landmarks = frames(HEAD, HEAD_MOVES["turned"], noise=0.01)
    assert assess(landmarks[[2, 0, 3, 1]]) == pytest.approx(assess(landmarks), rel=1e-9)


def test_jitter_as_large_as_assumed_has_a_reduced_chi_of_one():
    """What the score is made of, seen through it: by the logistic function, chi is linear in the score's log-odds."""
    scores = np.array(
        [assess(frames(FLAT_HEAD, FLAT_MOVES["still"], SWEEP, JITTER, seed)).score for seed in range(300)]
    )
    log_odds = np.log(scores / (1 - scores))
    chi = 2.4 + log_odds / 5
    assert np.sqrt(np.mean(chi**2)) == pytest.approx(1, rel=0.06)


def test_a_slanted_photo_does_not_pass_by_its_larger_jitter():
    """Seen at 78 degrees, a photo's landmarks jitter so much in the plane that parallax alone would look alive."""
    slanted = [assess(frames(FLAT_HEAD, lambda a: {"yaw": 78 + 4 * a}, SWEEP, 0.01, seed)) for seed in range(40)]
    turned = assess(frames(HEAD, lambda a: {"yaw": 8 * a}))
    assert np.median([result.parallax for result in slanted]) > turned.parallax
    assert max(result.score for result in slanted) < 0.1
    assert turned.score > 0.9


def test_frames_whose_eyes_and_mouth_lie_in_a_line_are_left_out():
    profile = landmarks_of(HEAD)
    profile[:, 0] = profile[0, 0]
    profile[1, 1] += 5
    landmarks = np.concatenate([frames(HEAD, HEAD_MOVES["turned"]), profile[None]])
    assert assess(landmarks).score == pytest.approx(assess(landmarks[:-1]).score)
    assert assess(np.stack([landmarks[0], profile]))[::2] == (0, 0)


@pytest.mark.parametrize(
    ("landmarks", "message"),
    [
        (np.zeros((1, 5, 2)), r"two or more frames .* \[1, 5, 2\]"),
        (np.zeros((0, 5, 2)), "two or more frames"),
        (np.zeros((3, 4, 2)), r"\[3, 4, 2\]"),
        (np.zeros((3, 5, 2)), "both eyes"),
        (np.full((2, 5, 2), np.nan), "not finite"),
    ],
    ids=["one frame", "none", "four landmarks", "all in one place", "nan"],
)
def test_landmarks_that_say_nothing_are_refused(landmarks, message):
    with pytest.raises(ValueError, match=message):
        assess(landmarks)
