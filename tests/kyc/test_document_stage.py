"""Documents are read by the real networks: rendered specimens, photographed well and badly."""

from __future__ import annotations

from datetime import date

import cv2
import numpy as np
import pytest
from pydantic import ValidationError

from serve_app.kyc.document_fields import printed_agreement
from serve_app.kyc.document_stage import Documents, DocumentsSettings
from serve_app.kyc.specimen import Identity, render, zone_lines
from serve_app.problem import Problem

PERSON = Identity(
    surname="KIRCHHOFF",
    given_names="ISABEL MARTA",
    document_number="C01X00T47",
    nationality="D",
    date_of_birth=date(1964, 8, 12),
    date_of_expiry=date(2033, 10, 31),
    personal_number="",
)


@pytest.fixture(scope="module")
def documents(text_detector, text_recogniser) -> Documents:
    return Documents(text_detector, text_recogniser, DocumentsSettings())


def jpeg(image: np.ndarray, quality: int = 80) -> bytes:
    return cv2.imencode(".jpg", image, [cv2.IMWRITE_JPEG_QUALITY, quality])[1].tobytes()


def as_it_is(image):
    return image


def on_a_table_at_an_angle(image):
    height, width = image.shape[:2]
    table = np.random.default_rng(1).integers(60, 140, (height // 8 + 1, width // 8 + 1, 3), dtype=np.uint8)
    table = cv2.resize(table, (width, height))
    matrix = cv2.getRotationMatrix2D((width / 2, height / 2), 2.5, 0.93)
    return cv2.warpAffine(image, matrix, (width, height), dst=table, borderMode=cv2.BORDER_TRANSPARENT)


def out_of_focus(image):
    return cv2.GaussianBlur(image, (0, 0), 1.3)


def from_the_side(image):
    height, width = image.shape[:2]
    corners = np.array([[0, 0], [width, 0], [width, height], [0, height]], np.float32)
    seen = corners + np.array([[60, 40], [-20, 10], [-70, -30], [20, -50]], np.float32)
    matrix = cv2.getPerspectiveTransform(corners, seen)
    return cv2.warpPerspective(image, matrix, (width, height), flags=cv2.INTER_CUBIC, borderValue=(120, 100, 80))


@pytest.mark.parametrize("taken", [as_it_is, on_a_table_at_an_angle, out_of_focus, from_the_side])
@pytest.mark.parametrize(
    ("format", "photo"), [("TD3", "person_a_2.jpg"), ("TD1", "person_b_1.jpg")], ids=["passport", "card"]
)
async def test_a_specimens_zone_and_fields_are_read_right(documents, portrait_photos, format, photo, taken):
    image = render(cv2.imread(str(portrait_photos / photo)), PERSON, format)
    document = await documents.read(jpeg(taken(image)))
    assert document.mrz is not None
    assert document.mrz.format == format
    assert document.mrz.lines == zone_lines(PERSON, format)
    assert document.mrz.valid
    assert document.fields == {
        "document_type": "P" if format == "TD3" else "I",
        "document_number": "C01X00T47",
        "surname": "KIRCHHOFF",
        "given_names": "ISABEL MARTA",
        "nationality": "D",
        "issuing_state": "UTO",
        "date_of_birth": "1964-08-12",
        "date_of_expiry": "2033-10-31",
        "sex": "F",
        "personal_number": None,
    }
    assert printed_agreement(document) == 1.0


@pytest.fixture(scope="module")
def passport(portrait_photos) -> np.ndarray:
    return render(cv2.imread(str(portrait_photos / "impostor_1.jpg")), PERSON)


async def test_lines_come_in_reading_order_with_their_place_in_the_uploaded_picture(documents, passport):
    document = await documents.read(jpeg(passport))
    texts = ["".join(line.text.split()) for line in document.lines]
    wanted = ["SPECIMEN", "Surname", "KIRCHHOFF", "ISABELMARTA", "Nationality", "Sex", "12AUG1964", "31OCT2033"]
    assert [text for text in texts if text in wanted] == wanted
    large = await documents.read(jpeg(cv2.resize(passport, None, fx=2, fy=2, interpolation=cv2.INTER_CUBIC)))
    for name in ("KIRCHHOFF", "SPECIMEN"):
        (small_box,) = [line.box for line in document.lines if line.text == name]
        (large_box,) = [line.box for line in large.lines if line.text == name]
        np.testing.assert_allclose(np.array(large_box), 2 * np.array(small_box), atol=25)


async def test_without_its_zone_a_passport_is_read_from_its_print(documents, passport):
    document = await documents.read(jpeg(passport[: int(passport.shape[0] * 0.75)]))
    assert document.mrz is None
    assert document.fields["document_number"] == "C01X00T47"
    assert document.fields["surname"] == "KIRCHHOFF"
    assert document.fields["given_names"] is not None
    assert "".join(document.fields["given_names"].split()) == "ISABELMARTA"
    assert document.fields["date_of_birth"] == "1964-08-12"
    assert document.fields["date_of_expiry"] == "2033-10-31"
    assert document.fields["sex"] == "F"


async def test_a_forged_digit_in_the_zone_shows(documents, portrait_photos, monkeypatch):
    forged = [line.replace("640812", "840812") for line in zone_lines(PERSON, "TD3")]
    monkeypatch.setattr("serve_app.kyc.specimen.zone_lines", lambda identity, format: forged)
    image = render(cv2.imread(str(portrait_photos / "person_a_2.jpg")), PERSON)
    document = await documents.read(jpeg(image))
    assert document.mrz is not None
    assert not document.mrz.valid
    assert not document.mrz.checks["date_of_birth"]
    assert document.mrz.checks["document_number"]
    assert printed_agreement(document) < 1.0


async def test_a_picture_without_text_is_named_as_such(documents):
    with pytest.raises(Problem) as problem:
        await documents.read(jpeg(np.full((480, 640, 3), 200, np.uint8)))
    assert (problem.value.status, problem.value.code) == (422, "no_text")


@pytest.mark.parametrize(
    ("data", "status", "code"),
    [
        (b"just text", 415, "not_an_image"),
        (jpeg(np.zeros((100, 640, 3), np.uint8)), 422, "image_too_small"),
    ],
)
async def test_what_is_no_picture_is_refused_before_any_model_is_asked(documents, data, status, code):
    asked = len(documents.paddleocr_det.shapes)
    with pytest.raises(Problem) as problem:
        await documents.read(data)
    assert (problem.value.status, problem.value.code) == (status, code)
    assert len(documents.paddleocr_det.shapes) == asked


async def test_lines_below_the_confidence_setting_are_dropped(text_detector, text_recogniser, passport):
    picky = Documents(text_detector, text_recogniser, DocumentsSettings(min_confidence=0.97))
    document = await picky.read(jpeg(passport))
    assert document.lines
    assert all(line.confidence >= 0.97 for line in document.lines)
    everything = Documents(text_detector, text_recogniser, DocumentsSettings(min_confidence=0))
    assert len((await everything.read(jpeg(passport))).lines) > len(document.lines)


async def test_models_are_asked_for_shapes_that_the_settings_allow(text_detector, text_recogniser, passport):
    text_detector.shapes.clear()
    text_recogniser.shapes.clear()
    await Documents(text_detector, text_recogniser, DocumentsSettings(widths=(160, 640))).read(jpeg(passport))
    assert text_detector.shapes == [(1, 512, 736, 3)]
    assert sorted(shape[1:] for shape in text_recogniser.shapes) == [(48, 160, 3), (48, 640, 3)]


@pytest.mark.parametrize("widths", [(320, 160), (160, 160), (0, 160), ()])
def test_widths_that_do_not_ascend_are_refused(widths):
    with pytest.raises(ValidationError, match="widths"):
        DocumentsSettings(widths=widths)
