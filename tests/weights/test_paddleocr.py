from __future__ import annotations

import cv2
import numpy as np
import onnx
import pytest

from serve_app.weights import paddleocr

WORDS = "SPECIMEN 1234"


@pytest.fixture(scope="module")
def rec(network):
    return paddleocr.prepare_rec(network("rec"))


def printed(height: int, width: int) -> np.ndarray:
    """Black words on white."""
    image = np.full((height, width, 3), 255, np.uint8)
    cv2.putText(image, WORDS, (12, height - 14), cv2.FONT_HERSHEY_SIMPLEX, 1.0, (0, 0, 0), 2, cv2.LINE_AA)
    return image


def as_rapidocr_feeds_it(images: np.ndarray) -> np.ndarray:
    return ((images.astype(np.float32) / 255 - 0.5) / 0.5).transpose(0, 3, 1, 2)


def test_the_probability_map_is_the_published_networks_in_steps_of_a_255th(network, runner, random):
    images = np.stack([printed(64, 320), random.integers(0, 256, (64, 320, 3), np.uint8)])
    (expected,) = runner(network("det"))(x=as_rapidocr_feeds_it(images))
    (probability,) = runner(paddleocr.prepare_det(network("det")).onnx)(image=images)
    assert probability.dtype == np.uint8
    assert probability.shape == (2, 64, 320)
    np.testing.assert_allclose(probability / 255, expected[:, 0], atol=0.5 / 255 + 1e-4)


def test_printed_words_are_text_and_the_paper_beside_them_is_not(network, runner):
    (probability,) = runner(paddleocr.prepare_det(network("det")).onnx)(image=printed(64, 640)[None])
    assert probability[0, 20:50, 20:220].max() > 200
    assert probability[0, :, 400:].max() < 50


def test_indices_and_confidences_are_the_published_networks_likeliest_classes(network, rec, runner, random):
    crops = np.stack([printed(48, 320), random.integers(0, 256, (48, 320, 3), np.uint8)])
    (likelihoods,) = runner(network("rec"))(x=as_rapidocr_feeds_it(crops))
    indices, confidences = runner(rec.onnx)(crop=crops)
    np.testing.assert_array_equal(indices, likelihoods.argmax(axis=2))
    np.testing.assert_allclose(confidences, likelihoods.max(axis=2), atol=1e-4)


def test_a_printed_line_is_read_through_the_labels(rec, runner):
    crop = np.concatenate([printed(48, 272), np.full((48, 48, 3), 127, np.uint8)], axis=1)
    (indices,), (confidences,) = runner(rec.onnx)(crop=crop[None])
    steps = zip(indices, [0, *indices], strict=False)
    text = "".join(rec.labels[index - 1] for index, before in steps if index not in (0, before))
    assert text == WORDS
    assert confidences[indices > 0].mean() > 0.8


def test_the_labels_are_the_files_6623_characters_and_a_space(rec):
    assert len(rec.labels) == 6624
    assert rec.labels[-1] == " "
    assert all(len(label) == 1 for label in rec.labels)
    assert set("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789<") <= set(rec.labels)


@pytest.mark.parametrize(("recipe", "name", "shape"), [
    (paddleocr.prepare_det, "det", (3, 64, 96, 3)),
    (paddleocr.prepare_rec, "rec", (3, 48, 96, 3)),
])  # fmt: skip
def test_a_batch_equals_its_singles(network, runner, random, recipe, name, shape):
    model = recipe(network(name)).onnx
    run, (entry,) = runner(model), onnx.load_from_string(model).graph.input
    images = random.integers(0, 256, shape, np.uint8)
    singles = [run(**{entry.name: images[i : i + 1]}) for i in range(len(images))]
    for together, apart in zip(run(**{entry.name: images}), zip(*singles, strict=True), strict=True):
        np.testing.assert_allclose(together, np.concatenate(apart), atol=1e-6)


def test_the_tensors_are_the_ones_that_the_spec_gives_the_models(network, rec):
    def tensors(entries) -> dict[str, str]:
        return {entry.name: onnx.helper.printable_type(entry.type) for entry in entries}

    det = onnx.load_from_string(paddleocr.prepare_det(network("det")).onnx).graph
    assert tensors(det.input) == {"image": "UINT8, batchxheightxwidthx3"}
    assert tensors(det.output) == {"probability": "UINT8, batchxheightxwidth"}
    read = onnx.load_from_string(rec.onnx).graph
    assert tensors(read.input) == {"crop": "UINT8, batchx48xwidthx3"}
    assert tensors(read.output) == {"indices": "INT32, batchxsteps", "confidences": "FLOAT, batchxsteps"}


def test_a_recognition_network_whose_characters_do_not_fit_its_classes_is_refused(network):
    model = onnx.load_from_string(network("rec"))
    model.metadata_props[0].value += "\n£"
    with pytest.raises(
        ValueError, match=r"^the network has 6625 classes, which are not the blank and 6625 characters$"
    ):
        paddleocr.prepare_rec(model.SerializeToString())
