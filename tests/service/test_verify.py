from __future__ import annotations

import io
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import cv2
import httpx
import numpy as np
import pytest
from PIL import Image

from tests.service.conftest import Service, encode

Photos = dict[str, bytes]
Document = Callable[[str], bytes]


def picture(data: bytes) -> np.ndarray:
    return cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR)


def saved(image: Image.Image, kind: str, **options: Any) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


@pytest.mark.parametrize("person", ["a", "b"])
def test_the_same_person_years_apart_matches(service: Service, photos: Photos, document: Document, person: str) -> None:
    response = service.post("/v1/verify", selfie=photos[f"person_{person}_1"], document=document(f"person_{person}_2"))
    assert response.status_code == 200, response.text
    answer = response.json()
    assert answer["face"]["match"]
    assert answer["face"]["similarity"] >= 0.5
    assert answer["decision"] == "review"
    assert answer["reasons"] == ["LIVENESS_NOT_ASSESSED"]
    assert answer["document"]["mrz"]["valid"]
    assert answer["document"]["fields"]["document_number"] == "L898902C3"
    assert answer["document"]["fields"]["surname"] == "ERIKSSON"
    assert answer["antifraud"]["risk"] < 0.1


@pytest.mark.parametrize("other", ["impostor_1", "impostor_2", "person_b_2"])
def test_another_persons_document_is_rejected(service: Service, photos: Photos, document: Document, other: str) -> None:
    answer = service.post("/v1/verify", selfie=photos["person_a_1"], document=document(other)).json()
    assert not answer["face"]["match"]
    assert answer["face"]["similarity"] < 0.3
    assert answer["decision"] == "reject"
    assert answer["reasons"][0] == "FACE_MISMATCH"


def test_frames_of_a_moving_head_complete_the_verification(
    service: Service, photos: Photos, document: Document, moving_head: Callable[[bytes], list[bytes]]
) -> None:
    answer = service.post(
        "/v1/verify",
        selfie=photos["person_b_1"],
        document=document("person_b_2"),
        frames=moving_head(photos["person_b_1"]),
    ).json()
    assert answer["liveness"]["assessed"]
    assert answer["liveness"]["live"]
    assert answer["decision"] == "approve"
    assert answer["reasons"] == []


def test_a_picture_held_to_the_camera_is_rejected(
    service: Service, photos: Photos, document: Document, moving_picture: Callable[[bytes], list[bytes]]
) -> None:
    answer = service.post(
        "/v1/verify",
        selfie=photos["person_b_1"],
        document=document("person_b_2"),
        frames=moving_picture(photos["person_b_1"]),
    ).json()
    assert answer["liveness"]["live"] is False
    assert answer["decision"] == "reject"
    assert "LIVENESS_FAILED" in answer["reasons"]


def test_the_answer_has_every_part_of_the_contract(service: Service, photos: Photos, document: Document) -> None:
    response = service.post(
        "/v1/verify", {"x-request-id": "kyc-1"}, selfie=photos["person_a_1"], document=document("person_a_2")
    )
    answer = response.json()
    assert response.headers["x-request-id"] == answer["request_id"] == "kyc-1"
    assert {"request_id", "decision", "reasons", "face", "liveness", "document", "antifraud", "timings_ms"} <= set(
        answer
    )
    assert {"similarity", "threshold", "match"} <= set(answer["face"])
    assert {"score", "assessed"} <= set(answer["liveness"])
    assert {"fields", "mrz", "lines"} <= set(answer["document"])
    assert {"risk", "factors"} <= set(answer["antifraud"])
    assert {"total", "faces", "faces.arcface", "documents.paddleocr_rec", "antifraud.antifraud"} <= set(
        answer["timings_ms"]
    )
    assert answer["thresholds"]
    ours = {"mrz": answer["document"]["mrz"]["lines"][1][:10]}
    assert ours == {"mrz": "L898902C36"}


def bombs() -> bytes:
    """A valid PNG of 100 megapixels in a few kilobytes."""
    return saved(Image.new("1", (10_000, 10_000)), "PNG")


def bad_pictures(photo: bytes) -> dict[str, tuple[bytes, int, str]]:
    upright = picture(photo)
    nobody = encode(np.full((600, 600, 3), 180, np.uint8), ".png")
    animated = saved(
        Image.new("RGB", (300, 300)), "GIF", save_all=True, append_images=[Image.new("RGB", (300, 300), "white")]
    )
    return {
        "no face": (nobody, 422, "no_face"),
        "two people": (encode(np.hstack([upright, upright]), ".jpg"), 422, "several_faces"),
        "upside down": (encode(cv2.rotate(upright, cv2.ROTATE_180), ".jpg"), 422, "face_not_upright"),
        "one pixel": (encode(np.zeros((1, 1, 3), np.uint8), ".png"), 422, "image_too_small"),
        "truncated": (photo[: len(photo) // 2], 422, "image_truncated"),
        "a text file": (b"hello, this is no picture", 415, "not_an_image"),
        "empty": (b"", 415, "not_an_image"),
        "100 megapixels": (bombs(), 413, "image_too_many_pixels"),
        "animated": (animated, 415, "animated_image"),
    }


@pytest.mark.parametrize(
    "case",
    [
        "no face",
        "two people",
        "upside down",
        "one pixel",
        "truncated",
        "a text file",
        "empty",
        "100 megapixels",
        "animated",
    ],
)
def test_a_picture_that_cannot_be_used_has_its_code_and_disturbs_nobody(
    service: Service, photos: Photos, document: Document, case: str
) -> None:
    bad, status, code = bad_pictures(photos["person_a_1"])[case]
    papers = document("person_a_2")

    def good(_: int) -> httpx.Response:
        return service.post("/v1/faces/compare", a=photos["person_a_1"], b=photos["person_a_2"])

    with ThreadPoolExecutor(3) as pool:
        beside = pool.map(good, range(2))
        refused = service.post("/v1/verify", selfie=bad, document=papers)
        answers = list(beside)
    assert refused.status_code == status, refused.text
    assert refused.headers["content-type"] == "application/problem+json"
    problem = refused.json()
    assert (problem["code"], problem["field"]) == (code, "selfie")
    assert [(answer.status_code, answer.json()["match"]) for answer in answers] == [(200, True)] * 2


@pytest.mark.parametrize(
    ("kind", "mode"),
    [
        ("JPEG", "CMYK"),
        ("PNG", "RGBA"),
        ("PNG", "I;16"),
        ("PNG", "P"),
        ("JPEG", "L"),
        ("WEBP", "RGB"),
    ],
)
def test_every_common_kind_of_picture_is_read(service: Service, photos: Photos, kind: str, mode: str) -> None:
    original = Image.open(io.BytesIO(photos["person_b_1"])).convert("RGB")
    if mode == "I;16":
        grey = np.asarray(original.convert("L")).astype(np.uint16) * 257
        converted = Image.fromarray(grey)
    else:
        converted = original.convert(mode)
    response = service.post("/v1/faces/compare", a=saved(converted, kind), b=photos["person_b_1"])
    assert response.status_code == 200, response.text
    assert response.json()["similarity"] > 0.8


def test_exif_orientation_is_followed(service: Service, photos: Photos) -> None:
    original = Image.open(io.BytesIO(photos["person_b_1"])).convert("RGB")
    exif = Image.Exif()
    exif[0x0112] = 6  # the camera was held so that the picture has to be turned by 90 degrees clockwise
    turned = saved(original.transpose(Image.Transpose.ROTATE_90), "JPEG", exif=exif, quality=95)
    response = service.post("/v1/faces/compare", a=turned, b=photos["person_b_1"])
    assert response.status_code == 200, response.text
    assert response.json()["similarity"] > 0.95


def test_a_document_without_a_face_or_text_is_told_so(service: Service, photos: Photos, document: Document) -> None:
    page = picture(document("person_a_2"))
    blank = np.full_like(page, 235)
    text_only = page.copy()
    text_only[:, : page.shape[1] // 3] = 235
    refused = service.post("/v1/verify", selfie=photos["person_a_1"], document=encode(text_only, ".jpg"))
    assert (refused.status_code, refused.json()["code"], refused.json()["field"]) == (422, "no_face", "document")
    refused = service.post("/v1/documents/read", image=encode(blank, ".jpg"))
    assert (refused.status_code, refused.json()["code"], refused.json()["field"]) == (422, "no_text", "image")


def test_a_lone_face_is_embedded_from_the_body(service: Service, photos: Photos) -> None:
    response = httpx.post(
        f"{service.url}/v1/faces/embed",
        content=photos["person_a_1"],
        headers={"content-type": "image/jpeg"},
        timeout=60,
    )
    answer = response.json()
    assert len(answer["embedding"]) == 128
    assert np.linalg.norm(answer["embedding"]) == pytest.approx(1, abs=1e-5)
    assert len(answer["face"]["landmarks"]) == 5


def test_a_document_is_read_in_reading_order(service: Service, document: Document) -> None:
    answer = service.post("/v1/documents/read", image=document("person_b_1")).json()
    assert answer["mrz"]["format"] == "TD3"
    assert answer["mrz"]["lines"][0].startswith("P<UTOERIKSSON<<ANNA<MARIA<<<")
    assert answer["fields"]["date_of_birth"] == "1974-08-12"
    texts = [line["text"] for line in answer["lines"]]
    assert texts.index("ERIKSSON") < next(i for i, text in enumerate(texts) if text.startswith("P<UTO"))


def test_a_deadline_too_short_for_the_work_is_answered_504(
    service: Service, photos: Photos, document: Document
) -> None:
    response = service.post(
        "/v1/verify",
        {"x-request-timeout-seconds": "0.25"},
        selfie=photos["person_a_1"],
        document=document("person_a_2"),
    )
    assert (response.status_code, response.json()["code"]) == (504, "deadline_exceeded")


def test_the_command_line_verifies(service: Service, photos: Photos, document: Document, tmp_path: Any) -> None:
    (tmp_path / "selfie.jpg").write_bytes(photos["person_a_1"])
    (tmp_path / "document.jpg").write_bytes(document("person_a_2"))
    files = ("--selfie", str(tmp_path / "selfie.jpg"), "--document", str(tmp_path / "document.jpg"))
    shown = service.tandem("verify", *files)
    assert shown.returncode == 0, shown.stderr
    assert "decision   review  (LIVENESS_NOT_ASSESSED)" in shown.stdout
    assert "match: similarity" in shown.stdout
    (tmp_path / "selfie.jpg").write_bytes(b"no picture")
    refused = service.tandem("verify", *files)
    assert refused.returncode == 1
    assert "not_an_image (selfie)" in refused.stderr
