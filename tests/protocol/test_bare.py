"""The door's answers beside those of the very Triton behind it."""

from __future__ import annotations

import json
import struct
from typing import Any

import grpc
import httpx
import pytest
from google.protobuf.message import Message
from tritonclient.grpc import service_pb2 as pb
from tritonclient.grpc import service_pb2_grpc

from tests.protocol.codec import add_json, add_message, fp32, one_input
from tests.protocol.conftest import Bare, Door
from tests.protocol.served import SPEC

EXPOSED = [name for name, entry in {**SPEC.models, **SPEC.ensembles}.items() if entry.exposed and name != "text"]
Parameter = pb.InferParameter


def both(bare: Bare, door: Door, method: str, path: str, **options: Any) -> tuple[httpx.Response, httpx.Response]:
    """Triton's answer, and the door's."""
    with httpx.Client() as client:
        theirs, ours = [client.request(method, f"http://{at}{path}", **options) for at in (bare.http, door.http)]
    return theirs, ours


@pytest.mark.parametrize("name", EXPOSED)
@pytest.mark.parametrize("question", ["", "/versions/1", "/config", "/versions/1/config", "/ready", "/stats"])
def test_questions_over_http_have_the_same_answers(bare: Bare, door: Door, name: str, question: str) -> None:
    theirs, ours = both(bare, door, "GET", f"/v2/models/{name}{question}")
    assert ours.status_code == theirs.status_code == 200
    assert ours.headers["content-type"] == theirs.headers["content-type"]
    told = ours.json() if ours.content else {}
    # The protocol's messages here are newer than this Triton.
    told.get("ensemble_scheduling", {}).pop("max_inflight_requests", None)
    assert told == (theirs.json() if theirs.content else {})


@pytest.mark.parametrize(
    "path",
    ["/v2/health/live", "/v2/health/ready", "/v2/models/nowhere", "/v2/models/nowhere/ready",
     "/v2/models/add/versions/7",
     "/v2/models/add/versions/7/ready", "/v2/models/nowhere/config", "/v2/models/nowhere/stats", "/v2/nothing",
     "/v2/models/add/versions/x", "/v2/models/add/infer", "/v2/repository/index"],
)  # fmt: skip
def test_other_questions_over_http_have_the_same_status(bare: Bare, door: Door, path: str) -> None:
    theirs, ours = both(bare, door, "GET", path)
    assert ours.status_code == theirs.status_code
    if theirs.status_code == 404 and "nothing" not in path and "/x" not in path:
        assert ours.json() == theirs.json()


@pytest.mark.parametrize("body", [None, {"ready": True}], ids=["all", "ready"])
def test_the_index_is_tritons_less_what_is_not_exposed(bare: Bare, door: Door, body: Any) -> None:
    theirs, ours = both(bare, door, "POST", "/v2/repository/index", json=body)
    assert ours.json() == [model for model in theirs.json() if model["name"] != "hidden"]
    assert len(ours.json()) == len(EXPOSED)


def test_all_statistics_are_tritons_less_what_is_not_exposed(bare: Bare, door: Door) -> None:
    theirs, ours = both(bare, door, "GET", "/v2/models/stats")
    kept = [model for model in theirs.json()["model_stats"] if model["name"] != "hidden"]
    assert ours.json() == {"model_stats": kept}


INFERENCES: dict[str, tuple[str, dict[str, Any]]] = {
    "json": ("add", add_json()),
    "bytes by default": ("add", add_json(parameters={"binary_data_output": True})),
    "bytes of one output": (
        "add",
        add_json(outputs=[{"name": "OUTPUT_SUM", "parameters": {"binary_data": True}}]),
    ),
    "a named output, bytes by default": (
        "add",
        add_json(outputs=[{"name": "OUTPUT_SUM"}], parameters={"binary_data_output": True}),
    ),
    "classes without labels": (
        "add",
        add_json(outputs=[{"name": "OUTPUT_SUM", "parameters": {"classification": 1}}]),
    ),
    "more classes than there are": (
        "scores",
        {
            "inputs": [{"name": "x", "datatype": "FP32", "shape": [2, 3], "data": [1, 5, 3, 9, 8, 7]}],
            "outputs": [{"name": "y", "parameters": {"classification": 9}}],
        },
    ),
    "an ensemble": (
        "double",
        {"inputs": [{"name": n, "datatype": "FP32", "shape": [1, 1], "data": [0.1]} for n in ("A", "B")]},
    ),
    "parameters of one's own": ("add", add_json(parameters={"a": "b", "c": 1.5, "d": True, "e": 7})),
    "whole numbers": ("every", one_input()),
    "the largest whole number": (
        "every",
        one_input(name="X_UINT64", datatype="UINT64", data=[2**64 - 1, 0]),
    ),
    "no input where all are optional": ("every", {"inputs": []}),
    "an output that is not made": ("every", {**one_input(), "outputs": [{"name": "Y_FP32"}]}),
    "an input too few": ("add", {"inputs": add_json()["inputs"][:1]}),
    "another type": ("every", one_input(datatype="INT16")),
    "an unknown output": ("add", add_json(outputs=[{"name": "Z"}])),
    "classes of BOOL": (
        "every",
        {
            "inputs": [{"name": "X_BOOL", "datatype": "BOOL", "shape": [1, 2], "data": [True, False]}],
            "outputs": [{"name": "Y_BOOL", "parameters": {"classification": 1}}],
        },
    ),
    "FP16 in JSON": ("every", one_input(name="X_FP16", datatype="FP16")),
    "a decoupled model": ("repeat", {"inputs": [{"name": "times", "datatype": "INT32", "shape": [1], "data": [1]}]}),
    "a model that is not there": ("nowhere", add_json()),
    "a reserved parameter": ("add", add_json(parameters={"triton_x": 1})),
    "a sequence without an id": (
        "tally",
        {"inputs": [{"name": "x", "datatype": "INT32", "shape": [1, 1], "data": [1]}]},
    ),
    "a failing model": ("breaks", {"inputs": [{"name": "x", "datatype": "FP32", "shape": [1], "data": [1]}]}),
}


@pytest.mark.parametrize(("model", "body"), INFERENCES.values(), ids=INFERENCES)
def test_an_inference_over_http_has_tritons_answer_or_status(
    bare: Bare, door: Door, model: str, body: dict[str, Any]
) -> None:
    theirs, ours = both(bare, door, "POST", f"/v2/models/{model}/infer", json=body)
    assert ours.status_code == theirs.status_code, (ours.text, theirs.text)
    if theirs.status_code != 200:
        assert list(ours.json()) == ["error"]
        return
    length = theirs.headers.get("inference-header-content-length")
    assert ours.headers["content-type"] == theirs.headers["content-type"]
    assert ours.headers.get("inference-header-content-length") == length
    cut = None if length is None else int(length)
    assert json.loads(ours.content[:cut]) == json.loads(theirs.content[:cut])
    assert cut is None or ours.content[cut:] == theirs.content[cut:]


def over_grpc(address: str, method: str, request: Message) -> tuple[str, Any]:
    """The code, and the answer where there is one."""
    with grpc.insecure_channel(address) as channel:
        stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
        try:
            return "OK", getattr(stub, method)(request, timeout=10)
        except grpc.RpcError as error:
            return error.code().name, None


def every(**choice: Any) -> pb.ModelInferRequest:
    return add_message(parameters={"x": Parameter(**choice)})


QUESTIONS: dict[str, tuple[str, Message]] = {
    "live": ("ServerLive", pb.ServerLiveRequest()),
    "ready": ("ServerReady", pb.ServerReadyRequest()),
    "a model's readiness": ("ModelReady", pb.ModelReadyRequest(name="add", version="1")),
    "an unknown model's readiness": ("ModelReady", pb.ModelReadyRequest(name="nowhere")),
    "an unknown version's readiness": ("ModelReady", pb.ModelReadyRequest(name="add", version="7")),
    "the readiness of what is no version": ("ModelReady", pb.ModelReadyRequest(name="add", version="x")),
    "metadata": ("ModelMetadata", pb.ModelMetadataRequest(name="every")),
    "an unknown model's metadata": ("ModelMetadata", pb.ModelMetadataRequest(name="nowhere")),
    "metadata of no model": ("ModelMetadata", pb.ModelMetadataRequest()),
    "a config": ("ModelConfig", pb.ModelConfigRequest(name="double", version="1")),
    "an unknown model's config": ("ModelConfig", pb.ModelConfigRequest(name="nowhere")),
    "statistics": ("ModelStatistics", pb.ModelStatisticsRequest(name="add")),
    "an unknown model's statistics": ("ModelStatistics", pb.ModelStatisticsRequest(name="nowhere")),
    "an inference": ("ModelInfer", add_message()),
    "a number as a parameter": ("ModelInfer", every(double_param=1.5)),
    "no value as a parameter": ("ModelInfer", every()),
    "an unknown version": ("ModelInfer", add_message(model_version="7")),
    "what is no version": ("ModelInfer", add_message(model_version="x")),
    "an unknown model": ("ModelInfer", add_message(model_name="nowhere")),
    "a decoupled model": ("ModelInfer", add_message(model_name="repeat")),
    "bytes too few": ("ModelInfer", add_message(raw_input_contents=[b"abc", fp32(1)])),
    "a content too few": ("ModelInfer", add_message(raw_input_contents=[fp32(1)])),
    "no contents": ("ModelInfer", add_message(raw_input_contents=[])),
    "an unknown output": ("ModelInfer", add_message(outputs=[{"name": "Z"}])),
    "a negative priority": ("ModelInfer", add_message(parameters={"priority": Parameter(int64_param=-1)})),
    "a reserved parameter": ("ModelInfer", add_message(parameters={"triton_x": Parameter(int64_param=1)})),
    "the failure of a model": (
        "ModelInfer",
        pb.ModelInferRequest(
            model_name="breaks",
            inputs=[{"name": "x", "datatype": "FP32", "shape": [1]}],
            raw_input_contents=[struct.pack("<f", 1)],
        ),
    ),
}


@pytest.mark.parametrize(("method", "request_"), QUESTIONS.values(), ids=QUESTIONS)
def test_a_call_over_grpc_has_tritons_answer_or_code(bare: Bare, door: Door, method: str, request_: Message) -> None:
    theirs, ours = [over_grpc(address, method, request_) for address in (bare.grpc, door.grpc)]
    assert ours == theirs
