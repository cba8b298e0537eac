from __future__ import annotations

import cv2
import numpy as np
import pytest

from serve_app.kyc.faces import suppress
from serve_app.kyc.images import letterbox
from serve_app.kyc.liveness import assess
from serve_app.kyc.liveness_stage import LivenessCheck, LivenessSettings
from serve_app.problem import Problem
from tests.kyc.frames import of_a_print, with_head_turned

PEOPLE = ["person_a_1", "person_a_2", "person_b_1", "person_b_2", "impostor_1", "impostor_2"]
SWEEP = (-1.0, -0.33, 0.33, 1.0)
PRINT_MOVES = {
    "still": lambda a: {},
    "shifted": lambda a: {"shift": (30 * a, 15 * a, 0)},
    "brought nearer": lambda a: {"shift": (0, 0, 150 * a)},
    "turned in its plane": lambda a: {"roll": 15 * a},
    "tilted to the side": lambda a: {"yaw": 20 * a},
    "tilted back": lambda a: {"pitch": 30 * a},
    "all at once": lambda a: {"yaw": 25 * a, "pitch": 12 * a, "roll": 8 * a, "shift": (25 * a, 0, 25 * a)},
}


class InThisProcess:
    """The model `liveness` without Triton."""

    labels = ()

    async def __call__(self, landmarks):
        assert landmarks.dtype == np.float32
        results = np.array([assess(frames) for frames in landmarks], np.float32)
        return results[:, :1], results[:, 1:]


@pytest.fixture
def check(face_detector, arcface) -> LivenessCheck:
    return LivenessCheck(face_detector, arcface, InThisProcess(), settings=LivenessSettings())


def print_frames(photo: np.ndarray, move, steps=SWEEP) -> list[bytes]:
    return [of_a_print(photo, **move(a), seed=i) for i, a in enumerate(steps)]


@pytest.fixture
def head_frames(face_detector, pictures):
    """Frames of a person whose head turns by the given angles, in degrees."""

    async def make(name: str, *yaws: float, **move: float) -> list[bytes]:
        picture = pictures[name]
        photo = cv2.resize(
            picture, (480, round(480 * picture.shape[0] / picture.shape[1])), interpolation=cv2.INTER_AREA
        )
        square, scale = letterbox(photo, 320)
        face = suppress((await face_detector(square[None]))[0], 0.7, 0.3)[0].scaled(1 / scale)
        turned = [with_head_turned(photo, face.landmarks, yaw) for yaw in yaws]
        return [of_a_print(photo, seed=i, **move) for i, photo in enumerate(turned)]

    return make


@pytest.mark.parametrize("move", PRINT_MOVES)
@pytest.mark.parametrize("name", PEOPLE)
async def test_a_print_does_not_pass_however_it_is_moved(check, pictures, name, move):
    answer = await check.assess(print_frames(pictures[name], PRINT_MOVES[move]))
    assert answer.assessed
    assert answer.live is False
    assert answer.score < 0.1
    assert answer.frames == 4


@pytest.mark.parametrize("name", PEOPLE)
async def test_a_head_that_turns_by_15_degrees_to_both_sides_passes(check, head_frames, name):
    answer = await check.assess(await head_frames(name, -15, -5, 5, 15))
    assert answer.live is True
    assert answer.score > 0.9
    assert answer.parallax > 0.05


@pytest.mark.parametrize("name", PEOPLE)
async def test_two_frames_are_enough(check, head_frames, pictures, name):
    assert (await check.assess(await head_frames(name, 0, 20))).live is True
    assert (await check.assess(print_frames(pictures[name], PRINT_MOVES["all at once"], (0, 1)))).live is False


async def test_a_still_print_did_not_move_and_a_shifted_one_did(check, pictures):
    still = await check.assess(print_frames(pictures["person_a_2"], PRINT_MOVES["still"]))
    shifted = await check.assess(print_frames(pictures["person_a_2"], PRINT_MOVES["shifted"]))
    assert still.motion < 0.05
    assert still.moved is False
    assert shifted.motion > 1
    assert shifted.moved is True


@pytest.mark.parametrize("count", [0, 1])
async def test_fewer_than_two_frames_are_not_assessed(check, photos, count):
    answer = await check.assess([photos["person_a_1"]] * count)
    assert answer.model_dump() == {
        "assessed": False,
        "score": None,
        "live": None,
        "moved": None,
        "similarity": None,
        "same_person": None,
        "match_threshold": 0.363,
        "threshold": 0.5,
        "min_motion": 0.1,
        "frames": count,
        "motion": None,
        "parallax": None,
    }


async def test_all_frames_go_to_the_detector_in_one_call_and_their_crops_with_mirror_images_in_another(
    check, face_detector, pictures
):
    await check.assess(print_frames(pictures["person_a_2"], PRINT_MOVES["still"], (0, 0, 0)))
    assert face_detector.batches == [(3, 320, 320, 3), (6, 320, 320, 3)]


async def problem_of(call) -> tuple[int, str, str | None]:
    with pytest.raises(Problem) as caught:
        await call
    return caught.value.status, caught.value.code, caught.value.field


async def test_a_bad_frame_is_named(check, photos):
    good = photos["person_a_1"]
    nobody = cv2.imencode(".png", np.random.default_rng(0).integers(0, 255, (300, 400, 3), np.uint8))[1].tobytes()
    assert await problem_of(check.assess([good, good, b"text"])) == (415, "not_an_image", "frames[2]")
    assert await problem_of(check.assess([good, nobody])) == (422, "no_face", "frames[1]")


async def test_frames_upside_down_are_refused(check, pictures):
    frame = cv2.imencode(".jpg", cv2.rotate(pictures["person_b_1"], cv2.ROTATE_180))[1].tobytes()
    status, code, field = await problem_of(check.assess([frame, frame]))
    assert (status, code) == (422, "face_not_upright")
    assert field in {"frames[0]", "frames[1]"}


async def test_a_frame_with_two_people_is_refused(check, photos, pictures):
    both = np.hstack([cv2.resize(pictures[name], (600, 750)) for name in ("person_a_2", "impostor_1")])
    frames = [photos["person_a_2"], cv2.imencode(".jpg", both)[1].tobytes()]
    assert await problem_of(check.assess(frames)) == (422, "several_faces", "frames[1]")


@pytest.mark.parametrize("name", PEOPLE)
async def test_a_turning_head_stays_the_same_person(check, head_frames, photos, name):
    answer = await check.assess(await head_frames(name, -15, 0, 15), photos[name])
    assert answer.same_person is True
    assert answer.similarity > 0.5


async def test_frames_of_somebody_else_than_the_selfies_person_are_told_apart(check, head_frames, photos):
    answer = await check.assess(await head_frames("person_a_2", -15, 15), photos["person_b_1"])
    assert answer.live is True
    assert answer.same_person is False


async def test_frames_of_two_people_are_told_apart_without_a_selfie(check, photos):
    answer = await check.assess([photos["impostor_1"], photos["person_a_2"]])
    assert answer.same_person is False


async def test_a_selfie_without_a_face_is_named(check, photos):
    nobody = cv2.imencode(".png", np.full((300, 400, 3), 200, np.uint8))[1].tobytes()
    good = photos["person_a_1"]
    assert await problem_of(check.assess([good, good], nobody)) == (422, "no_face", "selfie")
