"""Triton's own clients, as they come from NVIDIA, against the running service."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import httpx
import numpy as np
import pytest
from tritonclient import grpc, http
from tritonclient.grpc import aio as grpc_aio
from tritonclient.http import aio as http_aio
from tritonclient.utils import InferenceServerException

from serve_app.kyc.face_stage import Faces
from serve_app.spec.code import settings_of
from tests.service.conftest import Service

CLIENTS = {"http": (http, http_aio), "grpc": (grpc, grpc_aio)}
EXPOSED = ["arcface", "face_detector", "liveness", "paddleocr_det", "paddleocr_rec"]
CROP = np.zeros((1, 112, 112, 3), np.uint8)


def address(service: Service, protocol: str) -> str:
    spec = service.project.spec().service
    return f"127.0.0.1:{spec.port if protocol == 'http' else spec.grpc.port}"


def tensor(module: ModuleType, name: str, array: np.ndarray) -> Any:
    given = module.InferInput(name, list(array.shape), "UINT8")
    given.set_data_from_numpy(array)
    return given


@pytest.fixture(params=CLIENTS)
def protocol(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def client(service: Service, protocol: str) -> Any:
    return CLIENTS[protocol][0].InferenceServerClient(address(service, protocol))


async def test_the_face_stage_over_the_protocol_finds_what_the_service_finds(
    service: Service, photos: dict[str, bytes], protocol: str
) -> None:
    """The stage's own code, whose models are here those that any client can call."""
    module, asynchronous = CLIENTS[protocol]
    async with asynchronous.InferenceServerClient(address(service, protocol)) as client:

        async def face_detector(images: np.ndarray) -> np.ndarray:
            answer = await client.infer("face_detector", [tensor(module, "image", images)])
            return np.asarray(answer.as_numpy("candidates"))

        async def arcface(crops: np.ndarray) -> np.ndarray:
            answer = await client.infer("arcface", [tensor(module, "crop", crops)], priority=1, request_id="mine")
            assert (answer.get_response()["id"] if protocol == "http" else answer.get_response().id) == "mine"
            return np.asarray(answer.as_numpy("embedding"))

        settings: Any = settings_of(service.project.spec().stages["faces"])
        ours = await Faces(face_detector, arcface, settings).embed(photos["person_a_1"])
    theirs = service.post("/v1/faces/embed", image=photos["person_a_1"]).json()
    np.testing.assert_allclose(ours.embedding, theirs["embedding"], atol=1e-5)
    assert ours.face.box == pytest.approx(theirs["face"]["box"], abs=1e-3)


def test_a_model_that_is_not_exposed_does_not_exist_for_clients(client: Any, protocol: str) -> None:
    module = CLIENTS[protocol][0]
    with pytest.raises(InferenceServerException, match="Request for unknown model: 'antifraud' is not found"):
        client.infer("antifraud", [tensor(module, "factors", np.zeros((1, 17), np.uint8))])
    assert not client.is_model_ready("antifraud")
    with pytest.raises(InferenceServerException, match="antifraud"):
        client.get_model_metadata("antifraud")
    index = client.get_model_repository_index()
    names = [model["name"] for model in index] if protocol == "http" else [model.name for model in index.models]
    assert sorted(names) == EXPOSED


def test_the_server_and_its_models_are_alive_ready_and_described(client: Any, protocol: str) -> None:
    assert client.is_server_live()
    assert client.is_server_ready()
    assert all(client.is_model_ready(name) for name in EXPOSED)
    options = {} if protocol == "http" else {"as_json": True}
    metadata = client.get_model_metadata("arcface", **options)
    assert [(each["name"], each["datatype"]) for each in metadata["inputs"]] == [("crop", "UINT8")]
    assert [int(dim) for dim in metadata["outputs"][0]["shape"]] == [-1, 128]
    assert client.get_server_metadata(**options)["name"] == "kyc"
    config = client.get_model_config("arcface", **options)
    assert (config if protocol == "http" else config["config"])["max_batch_size"] == 2


def test_statistics_count_what_was_inferred(client: Any, protocol: str) -> None:
    def inferences() -> int:
        options = {} if protocol == "http" else {"as_json": True}
        (model,) = client.get_inference_statistics("arcface", **options)["model_stats"]
        return int(model.get("inference_count", 0))

    before = inferences()
    client.infer("arcface", [tensor(CLIENTS[protocol][0], "crop", np.repeat(CROP, 2, axis=0))])
    assert inferences() == before + 2


def test_what_manages_the_server_is_refused(client: Any) -> None:
    with pytest.raises(InferenceServerException, match="not managed here"):
        client.unload_model("arcface")
    assert client.is_model_ready("arcface")


def test_a_refusal_over_http_is_the_protocols_and_has_the_requests_id(service: Service) -> None:
    answer = httpx.post(
        f"{service.url}/v2/models/arcface/infer", json={"inputs": []}, headers={"x-request-id": "mine"}, timeout=10
    )
    assert (answer.status_code, answer.headers["x-request-id"]) == (400, "mine")
    assert "missing required input(s) ['crop']" in answer.json()["error"]
