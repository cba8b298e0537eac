from __future__ import annotations

import cv2
import numpy as np
import onnx
import pytest

from serve_app.weights import yunet

PORTRAITS = ("person_a_1", "person_a_2", "person_b_1", "person_b_2", "impostor_1", "impostor_2")


@pytest.fixture(scope="module")
def detect(network, runner):
    run = runner(yunet.prepare(network("yunet")).onnx)
    return lambda images: run(image=images)[0]


def portrait(photos, name: str) -> np.ndarray:
    """At most 640 pixels long, cut to multiples of 32."""
    image = cv2.imread(str(photos / f"{name}.jpg"))
    scale = min(1.0, 640 / max(image.shape[:2]))
    image = cv2.resize(image, None, fx=scale, fy=scale)
    return np.ascontiguousarray(image[: image.shape[0] // 32 * 32, : image.shape[1] // 32 * 32])


def opencv_detections(model: str, image: np.ndarray) -> np.ndarray:
    """What OpenCV's detector decodes above a score of 0.02, without suppression, score first and descending."""
    detector = cv2.FaceDetectorYN.create(model, "", image.shape[1::-1], 0.02, 1.0, 5000)
    _, faces = detector.detect(image)
    faces = faces[np.argsort(-faces[:, 14], kind="stable")]
    return np.concatenate([faces[:, 14:], faces[:, :14]], axis=1)


@pytest.mark.parametrize("name", PORTRAITS)
def test_candidates_are_what_opencv_decodes_from_the_published_file(detect, network, photos, tmp_path, name):
    (tmp_path / "yunet.onnx").write_bytes(network("yunet"))
    image = portrait(photos, name)
    expected = opencv_detections(str(tmp_path / "yunet.onnx"), image)
    candidates = detect(image[None])[0]
    assert (candidates[:, 0] > 0.02).sum() == len(expected)
    np.testing.assert_allclose(candidates[: len(expected), 0], expected[:, 0], atol=5e-6)
    np.testing.assert_allclose(candidates[: len(expected), 1:], expected[:, 1:], atol=1e-3)


@pytest.mark.parametrize("name", PORTRAITS)
def test_the_best_candidate_of_a_portrait_is_a_face_with_its_landmarks_in_order(detect, photos, name):
    score, x, y, w, h, *points = detect(portrait(photos, name)[None])[0, 0]
    right_eye, left_eye, nose, right_mouth, left_mouth = np.array(points).reshape(5, 2)
    assert score > 0.9
    for px, py in (right_eye, left_eye, nose, right_mouth, left_mouth):
        assert x < px < x + w
        assert y < py < y + h
    assert right_eye[0] < nose[0] < left_eye[0]
    assert right_mouth[0] < left_mouth[0]
    assert max(right_eye[1], left_eye[1]) < nose[1] < min(right_mouth[1], left_mouth[1])


def test_candidates_come_best_first(detect, random):
    scores = detect(random.integers(0, 256, (1, 256, 320, 3), np.uint8))[0, :, 0]
    assert (np.diff(scores) <= 0).all()
    assert 0 <= scores[-1] <= scores[0] <= 1


def test_where_an_image_has_fewer_anchors_the_rest_is_zeros(detect, random):
    candidates = detect(random.integers(0, 256, (1, 64, 32, 3), np.uint8))[0]
    anchors = 8 * 4 + 4 * 2 + 2 * 1
    assert (candidates[:anchors, 0] > 0).all()
    assert (candidates[:anchors, 3:5] > 0).all()
    assert not candidates[anchors:].any()


def test_a_batch_of_images_equals_its_singles(detect, random):
    images = random.integers(0, 256, (3, 96, 128, 3), np.uint8)
    np.testing.assert_array_equal(detect(images), np.concatenate([detect(images[i : i + 1]) for i in range(3)]))


def test_the_tensors_are_the_ones_that_the_spec_gives_the_model(network):
    model = onnx.load_from_string(yunet.prepare(network("yunet")).onnx)
    (image,), (candidates,) = model.graph.input, model.graph.output
    assert (image.name, onnx.helper.printable_type(image.type)) == ("image", "UINT8, batchxheightxwidthx3")
    assert (candidates.name, onnx.helper.printable_type(candidates.type)) == ("candidates", "FLOAT, batchx256x15")


def test_a_network_of_another_shape_is_refused(network):
    with pytest.raises(ValueError, match=r"^no node of the graph computes 'cls_8'$"):
        yunet.prepare(network("det"))
