from __future__ import annotations

from itertools import combinations

import cv2
import numpy as np
import onnx
import pytest

from serve_app.weights import graph, sface


@pytest.fixture(scope="module")
def embed(network, runner):
    run = runner(sface.prepare(network("sface")).onnx)
    return lambda crops: run(crop=crops)[0]


@pytest.fixture(scope="module")
def opencv(network, tmp_path_factory):
    """OpenCV's own runner, on the published file with its block-quantised weights, rid of the inputs nothing reads."""
    path = tmp_path_factory.mktemp("sface") / "sface.onnx"
    path.write_bytes(graph.finish(graph.load(network("sface"))))
    return cv2.FaceRecognizerSF.create(str(path), "")


@pytest.fixture(scope="module")
def crops(network, photos, opencv, tmp_path_factory):
    """The portraits' faces, aligned by OpenCV, by name."""
    path = tmp_path_factory.mktemp("yunet") / "yunet.onnx"
    path.write_bytes(network("yunet"))

    def crop(image):
        _, faces = cv2.FaceDetectorYN.create(str(path), "", image.shape[1::-1]).detect(image)
        return opencv.alignCrop(image, faces[0])

    return {photo.stem: crop(cv2.imread(str(photo))) for photo in sorted(photos.glob("*.jpg"))}


def test_embeddings_are_opencvs_at_length_one(embed, opencv, crops):
    for crop in crops.values():
        feature = opencv.feature(crop)[0]
        np.testing.assert_allclose(embed(crop[None])[0], feature / np.linalg.norm(feature), atol=7e-6)


def test_embeddings_have_length_one(embed, random):
    lengths = np.linalg.norm(embed(random.integers(0, 256, (4, 112, 112, 3), np.uint8)), axis=1)
    np.testing.assert_allclose(lengths, 1, atol=1e-6)


def test_photos_of_one_person_are_closer_than_those_of_different_people(embed, crops):
    embeddings = [(name, embed(crop[None])[0]) for name, crop in crops.items()]
    # The threshold that OpenCV's documentation gives for SFace's cosine similarity.
    threshold = 0.363
    for (first, a), (second, b) in combinations(embeddings, 2):
        same_person = first.startswith("person") and first[:-2] == second[:-2]
        assert (a @ b > threshold) == same_person, (first, second)


def test_a_batch_of_crops_equals_its_singles(embed, random):
    crops = random.integers(0, 256, (3, 112, 112, 3), np.uint8)
    np.testing.assert_array_equal(embed(crops), np.concatenate([embed(crops[i : i + 1]) for i in range(3)]))


def test_the_tensors_are_the_ones_that_the_spec_gives_the_model(network):
    model = onnx.load_from_string(sface.prepare(network("sface")).onnx)
    (crop,), (embedding,) = model.graph.input, model.graph.output
    assert (crop.name, onnx.helper.printable_type(crop.type)) == ("crop", "UINT8, batchx112x112x3")
    assert (embedding.name, onnx.helper.printable_type(embedding.type)) == ("embedding", "FLOAT, batchx128")
    assert not {"PRelu", "Dropout", "DequantizeLinear"} & {node.op_type for node in model.graph.node}
