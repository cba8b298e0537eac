from __future__ import annotations

import asyncio

import cv2
import numpy as np
import pytest

from serve_app.kyc.alignment import align
from serve_app.kyc.face_stage import Faces, FacesSettings
from serve_app.problem import Problem

MATCHES = [("person_a_1", "person_a_2"), ("person_b_1", "person_b_2")]
OTHERS = [
    ("person_a_1", "person_b_1"),
    ("person_a_2", "impostor_1"),
    ("person_b_2", "impostor_2"),
    ("impostor_1", "impostor_2"),
]


@pytest.fixture
def faces(face_detector, arcface) -> Faces:
    return Faces(face_detector, arcface, settings=FacesSettings())


def jpeg(picture: np.ndarray) -> bytes:
    return cv2.imencode(".jpg", picture, [cv2.IMWRITE_JPEG_QUALITY, 92])[1].tobytes()


def on_a_card(portrait: np.ndarray, *, height: int = 500, ghost: bool = False) -> np.ndarray:
    """An identity card of 1580 by 1000 pixels with a portrait, and a fainter small one where there is a ghost."""
    card = np.full((1000, 1580, 3), 215, np.uint8)
    width = round(height * portrait.shape[1] / portrait.shape[0])
    card[250 : 250 + height, 60 : 60 + width] = cv2.resize(portrait, (width, height), interpolation=cv2.INTER_AREA)
    if ghost:
        small = cv2.resize(portrait, (width * 2 // 3, height * 2 // 3), interpolation=cv2.INTER_AREA)
        card[300 : 300 + len(small), 1100 : 1100 + small.shape[1]] = small // 2 + 107
    for line in range(8):
        cv2.putText(card, "SPECIMEN 0123456789", (520, 280 + 60 * line), 0, 1.2, (40, 40, 40), 2)
    return card


def side_by_side(*pictures: np.ndarray) -> np.ndarray:
    return np.hstack([cv2.resize(picture, (600, 750), interpolation=cv2.INTER_AREA) for picture in pictures])


async def problem_of(call) -> tuple[int, str, str | None]:
    with pytest.raises(Problem) as caught:
        await call
    return caught.value.status, caught.value.code, caught.value.field


@pytest.mark.parametrize(("selfie", "document"), MATCHES)
async def test_two_photos_of_one_person_match(faces, photos, pictures, selfie, document):
    answer = await faces.match(photos[selfie], jpeg(on_a_card(pictures[document])))
    assert answer.match
    assert answer.similarity > 0.5
    assert answer.threshold == 0.363


@pytest.mark.parametrize(("selfie", "document"), OTHERS)
async def test_photos_of_two_people_do_not_match(faces, photos, pictures, selfie, document):
    answer = await faces.match(photos[selfie], jpeg(on_a_card(pictures[document])))
    assert not answer.match
    assert answer.similarity < 0.3


@pytest.mark.parametrize("side", [112, 224])
async def test_a_face_that_is_aligned_already_needs_no_detector(faces, arcface, photos, pictures, side):
    found = await faces.embed(photos["person_a_1"])
    crop = align(pictures["person_a_1"], np.array(found.face.landmarks))
    enlarged = cv2.resize(crop, (side, side), interpolation=cv2.INTER_CUBIC)
    png = cv2.imencode(".png", enlarged)[1].tobytes()
    alone = Faces(None, arcface, settings=FacesSettings())
    answer = await alone.embed(png, aligned=True)
    assert answer.face is None
    assert np.dot(answer.embedding, found.embedding) > 0.99


async def test_a_picture_that_is_not_square_is_no_aligned_crop(faces):
    picture = jpeg(np.zeros((112, 120, 3), np.uint8))
    assert await problem_of(faces.embed(picture, aligned=True)) == (422, "not_square", "image")
    with pytest.raises(Problem, match="send the picture that it was cut from, without `aligned`"):
        await faces.embed(picture, aligned=True)


async def test_both_crops_go_to_the_embedding_network_as_one_batch(faces, arcface, photos):
    arcface.batches.clear()
    await faces.compare(photos["person_a_1"], photos["person_a_2"])
    assert arcface.batches == [(2, 112, 112, 3)]


async def test_a_picture_compared_with_itself_is_the_same(faces, photos):
    answer = await faces.compare(photos["impostor_1"], photos["impostor_1"])
    assert answer.similarity == pytest.approx(1)


async def test_an_embedding_is_normalised_and_the_same_as_in_a_comparison(faces, photos):
    a, b = [await faces.embed(photos[name]) for name in ("person_a_1", "person_a_2")]
    assert np.linalg.norm(a.embedding) == pytest.approx(1, abs=1e-5)
    comparison = await faces.compare(photos["person_a_1"], photos["person_a_2"])
    assert np.dot(a.embedding, b.embedding) == pytest.approx(comparison.similarity, abs=1e-5)


async def test_box_and_landmarks_are_in_pixels_of_the_picture_as_it_was_sent(faces, pictures):
    picture = pictures["person_b_1"]
    small = (await faces.embed(jpeg(picture))).face
    large = (await faces.embed(jpeg(cv2.resize(picture, None, fx=4, fy=4, interpolation=cv2.INTER_CUBIC)))).face
    x, y, width, height = small.box
    assert 0 < x < x + width < picture.shape[1]
    assert all(x < a < x + width and y < b < y + height for a, b in small.landmarks)
    assert np.array(large.landmarks) / 4 == pytest.approx(np.array(small.landmarks), abs=0.03 * width)
    assert small.score > 0.9
    assert 60 < small.brightness < 200


async def test_blur_shows_in_the_faces_sharpness(faces, pictures):
    sharp = await faces.embed(jpeg(pictures["person_a_2"]))
    blurred = await faces.embed(jpeg(cv2.GaussianBlur(pictures["person_a_2"], (0, 0), 8)))
    assert blurred.face.sharpness < sharp.face.sharpness / 5


@pytest.mark.parametrize("name", ["person_a_1", "person_a_2", "person_b_1", "person_b_2", "impostor_1", "impostor_2"])
@pytest.mark.parametrize("quarters", [1, 2, 3])
async def test_a_face_that_lies_or_stands_on_its_head_is_refused(faces, pictures, name, quarters):
    turned = jpeg(np.ascontiguousarray(np.rot90(pictures[name], quarters)))
    assert await problem_of(faces.embed(turned)) == (422, "face_not_upright", "image")


@pytest.mark.parametrize("quarters", [1, 2])
async def test_a_document_that_lies_or_stands_on_its_head_is_refused(faces, photos, pictures, quarters):
    card = jpeg(np.ascontiguousarray(np.rot90(on_a_card(pictures["person_b_1"]), quarters)))
    assert await problem_of(faces.match(photos["person_b_2"], card)) == (422, "face_not_upright", "document")


@pytest.mark.parametrize("spoil", ["dark", "blurred", "noisy", "tilted"])
async def test_an_upright_face_in_a_poor_photo_is_not_taken_for_a_turned_one(faces, pictures, spoil):
    picture = pictures["person_b_1"]
    height, width = picture.shape[:2]
    noise = np.random.default_rng(0).normal(0, 25, picture.shape)
    poor = {
        "dark": picture // 4,
        "blurred": cv2.GaussianBlur(picture, (0, 0), 7),
        "noisy": np.clip(picture + noise, 0, 255).astype(np.uint8),
        "tilted": cv2.warpAffine(picture, cv2.getRotationMatrix2D((width / 2, height / 2), 20, 1), (width, height)),
    }[spoil]
    assert (await faces.compare(jpeg(poor), jpeg(picture))).match


async def test_a_picture_without_a_face_is_refused_by_the_name_of_its_argument(faces, photos):
    nobody = jpeg(np.random.default_rng(0).integers(0, 255, (300, 400, 3), np.uint8))
    someone = photos["person_a_1"]
    assert await problem_of(faces.embed(nobody)) == (422, "no_face", "image")
    assert await problem_of(faces.compare(someone, nobody)) == (422, "no_face", "b")
    assert await problem_of(faces.match(nobody, someone)) == (422, "no_face", "selfie")
    assert await problem_of(faces.match(someone, nobody)) == (422, "no_face", "document")


async def test_a_file_that_is_no_picture_is_refused_by_the_name_of_its_argument(faces, photos):
    assert await problem_of(faces.match(photos["person_a_1"], b"text")) == (415, "not_an_image", "document")
    assert await problem_of(faces.match(photos["person_a_1"][:9000], photos["person_a_2"])) == (
        422,
        "image_truncated",
        "selfie",
    )


async def test_a_selfie_of_two_is_refused(faces, photos, pictures):
    both = jpeg(side_by_side(pictures["person_a_2"], pictures["impostor_2"]))
    assert await problem_of(faces.match(both, photos["person_a_1"])) == (422, "several_faces", "selfie")


async def test_someone_small_in_the_background_of_a_selfie_does_not_matter(faces, photos, pictures):
    selfie = side_by_side(pictures["person_a_2"], np.zeros_like(pictures["person_a_2"]))
    selfie[40:290, 900:1100] = cv2.resize(pictures["impostor_2"], (200, 250), interpolation=cv2.INTER_AREA)
    assert (await faces.match(jpeg(selfie), photos["person_a_1"])).match


async def test_of_a_documents_portrait_and_its_ghost_the_portrait_is_taken(faces, photos, pictures):
    answer = await faces.match(photos["person_b_2"], jpeg(on_a_card(pictures["person_b_1"], ghost=True)))
    assert answer.match
    assert answer.document.box[0] < 500


async def test_a_small_portrait_is_found_at_the_finer_size(faces, face_detector, photos, pictures):
    card = jpeg(on_a_card(pictures["person_a_2"], height=200))
    assert (await faces.match(photos["person_a_1"], card)).match
    assert (1, 640, 640, 3) in face_detector.batches


async def test_a_clear_selfie_costs_one_small_detection(faces, face_detector, photos):
    await faces.embed(photos["person_a_2"])
    assert face_detector.batches == [(1, 320, 320, 3)]


class Down:
    """A model that is down."""

    labels = ()

    async def __call__(self, *inputs):
        raise Problem(503, "model_unavailable", "The model is down.")


async def test_a_problem_of_a_model_is_not_said_of_a_picture(face_detector, arcface, photos):
    for faces in (Faces(Down(), arcface, FacesSettings()), Faces(face_detector, Down(), FacesSettings())):
        call = faces.match(photos["person_a_1"], photos["person_a_2"])
        assert await problem_of(call) == (503, "model_unavailable", None)


class Meeting:
    """A detector whose calls wait until two have come."""

    labels = ()

    def __init__(self, detector):
        self.detector = detector
        self.waiting = 0
        self.both = asyncio.Event()

    async def __call__(self, *inputs):
        self.waiting += 1
        if self.waiting == 2:
            self.both.set()
        await self.both.wait()
        return await self.detector(*inputs)


async def test_the_two_pictures_are_looked_at_at_the_same_time(face_detector, arcface, photos):
    faces = Faces(Meeting(face_detector), arcface, FacesSettings())
    answer = await asyncio.wait_for(faces.compare(photos["person_a_1"], photos["person_a_2"]), 20)
    assert answer.match
