from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
from tritonclient import http
from tritonclient.http._utils import _get_inference_request
from tritonclient.utils import triton_to_np_dtype

from serve_app.protocol.limits import Limits
from serve_app.protocol.refusals import Code, Refusal
from tests.protocol.codec import LIMITS, add_json, context, fp32, one_input, read
from tests.protocol.served import TYPES

VALUES: dict[str, list[Any]] = {
    "BOOL": [True, False],
    "FP16": [0.5, -1.0],
    "FP32": [0.1, -3e38],
    "FP64": [0.1, -1e300],
    "BF16": [0.5, -1.0],
    "BYTES": ["", "é\0x"],
}


def values(wire: str) -> np.ndarray:
    dtype = triton_to_np_dtype(wire)
    if wire not in VALUES:
        limits = np.iinfo(dtype)
        return np.array([[limits.min, limits.max]], dtype)
    return np.array([VALUES[wire]], dtype)


def client_body(array: np.ndarray, name: str, wire: str, *, binary: bool, **options: Any) -> tuple[bytes, int | None]:
    """What an unmodified tritonclient sends."""
    tensor = http.InferInput(name, list(array.shape), wire)
    tensor.set_data_from_numpy(array, binary_data=binary)
    given = {
        "request_id": "", "outputs": None, "sequence_id": 0, "sequence_start": False, "sequence_end": False,
        "priority": 0, "timeout": None, "custom_parameters": None, **options,
    }  # fmt: skip
    return _get_inference_request([tensor], **given)


SENT = [(wire, binary) for wire in [*TYPES.values(), "BYTES"] for binary in (True, False)]


@pytest.mark.parametrize(("wire", "binary"), [(w, b) for w, b in SENT if b or w not in ("FP16", "BF16")])
def test_what_tritonclient_sends_reaches_triton_to_the_byte(wire: str, binary: bool) -> None:
    model, name = ("text", "lines") if wire == "BYTES" else ("every", f"X_{wire}")
    array = values(wire)
    body, length = client_body(array, name, wire, binary=binary)
    expected = client_body(array, name, wire, binary=True)
    cut = len(body) if length is None else length
    request, wanted = read(body[:cut], model, binary=body[cut:] if binary else None)
    (sent,) = request.inputs
    assert (sent.name, sent.datatype, list(sent.shape)) == (name, wire, list(array.shape))
    assert list(request.raw_input_contents) == [expected[0][expected[1] :]]
    assert wanted.by_default


def test_tensors_in_json_and_in_bytes_may_stand_side_by_side() -> None:
    body = add_json()
    body["inputs"][1] = {
        "name": "INPUT_B", "datatype": "FP32", "shape": [1, 1], "parameters": {"binary_data_size": 4}
    }  # fmt: skip
    request, _ = read(body, binary=fp32(2.5))
    assert list(request.raw_input_contents) == [fp32(1), fp32(2.5)]
    assert request.id == "7"


@pytest.mark.parametrize("data", [[1, 2, 3, 4], [[1, 2], [3, 4]], [[1, 2, 3, 4]]], ids=["flat", "nested", "odd"])
def test_values_are_taken_flat_or_nested(data: list[Any]) -> None:
    request, _ = read(one_input(shape=[2, 2], data=data), "every")
    assert list(request.raw_input_contents) == [bytes([1, 2, 3, 4])]


def test_members_that_the_protocol_does_not_know_are_left_out() -> None:
    body = add_json(surprise={"a": 1})
    body["inputs"][0]["parameters"] = {"note": "x"}
    request, _ = read(body)
    assert not request.inputs[0].parameters
    assert set(request.parameters) == {"priority", "timeout"}


def test_the_whole_body_may_be_the_only_input() -> None:
    request, wanted = read(b"", "scores", binary=fp32(1, 2, 3))
    assert list(request.inputs[0].shape) == [1, 3]
    assert list(request.raw_input_contents) == [fp32(1, 2, 3)]
    assert wanted.by_default
    request, _ = read(b"", "text", binary=b"a line")
    assert list(request.inputs[0].shape) == [1, 1]
    assert list(request.raw_input_contents) == [b"\6\0\0\0a line"]
    with pytest.raises(Refusal, match="Expected 12, got 8"):
        read(b"", "scores", binary=fp32(1, 2))
    with pytest.raises(Refusal, match="only have 1 input"):
        read(b"", "add", binary=fp32(1, 2))


def test_outputs_are_written_as_each_was_asked_for() -> None:
    outputs = [{"name": "OUTPUT_SUM", "parameters": {"binary_data": True, "classification": 1}}]
    request, wanted = read(add_json(outputs=outputs))
    assert request.outputs[0].parameters["classification"].int64_param == 1
    assert (wanted.by_default, wanted.binary) == (False, {"OUTPUT_SUM": True})


REFUSED: dict[str, tuple[Any, str, str]] = {
    "no JSON": (b'{"inputs":', "add", "failed to parse"),
    "nothing": (b"", "add", "failed to parse"),
    "not UTF-8": (b'{"id": "\xff"}', "add", "failed to parse"),
    "deep nesting": (b"[" * 100_000, "add", "nested too deeply"),
    "a list": (b"[]", "add", "not a JSON object"),
    "a number of 5000 digits": (b'{"id": ' + b"1" * 5000 + b"}", "add", "failed to parse"),
    "no inputs": ({}, "add", "'inputs' is not a list"),
    "inputs that are numbers": ({"inputs": [1]}, "add", "'inputs' is not a list of JSON objects"),
    "too many inputs": ({"inputs": [{}] * 300}, "add", "300 inputs are too many"),
    "an id that is a number": (add_json(id=7), "add", "the id is text"),
    "an id that is long": (add_json(id="a" * 2000), "add", "at most 1024"),
    "an id with half a character": (b'{"id": "\\ud800", "inputs": []}', "add", "the id has a character"),
    "an id with a zero": (add_json(id="a\0b"), "add", "the id has a character"),
    "an input too few": ({"inputs": add_json()["inputs"][:1]}, "add", r"missing required input\(s\) \['INPUT_B'\]"),
    "an input twice": ({"inputs": add_json()["inputs"][:1] * 2}, "add", "'INPUT_A' already exists"),
    "an unknown input": (one_input(name="Z"), "every", "unexpected inference input 'Z'"),
    "an input without a name": (one_input(name=None), "every", "unexpected inference input"),
    "another type": (one_input(datatype="INT16"), "every", "data-type is 'INT16'"),
    "no shape": (one_input(shape=None), "every", "'shape'"),
    "a dimension too few": (one_input(shape=[2]), "every", r"Expected \[-1,-1\], got \[2\]"),
    "a negative dimension": (one_input(shape=[-1, -2]), "every", "unexpected shape"),
    "an empty tensor": (one_input(shape=[1, 0], data=[]), "every", "unexpected shape"),
    "a dimension that is true": (one_input(shape=[True, 2]), "every", "unexpected shape"),
    "a dimension that is no whole number": (one_input(shape=[1.0, 2]), "every", "unexpected shape"),
    "a product that overflows": (one_input(shape=[2**31 - 1, 2**31 - 1]), "every", "its shape holds"),
    "dimensions beyond any": (one_input(shape=[2**63, 2]), "every", "unexpected shape"),
    "a value too few": (one_input(data=[1]), "every", "1 values in 'data', but its shape holds 2"),
    "no data": (one_input(data=None), "every", "neither 'data'"),
    "lists beside values": (one_input(data=[[1], 2]), "every", "side by side"),
    "lists too deep": (one_input(data=[[[1, 2]]]), "every", "1 values"),
    "a fraction": (one_input(data=[1.5, 2]), "every", "whole numbers"),
    "true as a number": (one_input(data=[True, 2]), "every", "whole numbers"),
    "text as a number": (one_input(data=["1", 2]), "every", "whole numbers"),
    "null as a number": (one_input(data=[None, 2]), "every", "whole numbers"),
    "out of INT8's range": (one_input(data=[128, 2]), "every", "out of the range of INT8"),
    "below UINT8's range": (one_input(name="X_UINT8", datatype="UINT8", data=[-1, 2]), "every", "range of UINT8"),
    "beyond UINT64": (one_input(name="X_UINT64", datatype="UINT64", data=[2**64, 2]), "every", "range of UINT64"),
    "beyond FP32": (one_input(name="X_FP32", datatype="FP32", data=[1e39, 2]), "every", "range of FP32"),
    "a whole number beyond FP64": (one_input(name="X_FP64", datatype="FP64", data=[10**400, 2]), "every", "of FP64"),
    "a fraction beyond FP64": (
        json.dumps(one_input(name="X_FP64", datatype="FP64", data=[0.5, 2])).replace("0.5", "1e999").encode(),
        "every",
        "range of FP64",
    ),
    "not a number": (one_input(name="X_FP32", datatype="FP32", data=[math.nan, 2]), "every", "JSON has no NaN"),
    "a number as BOOL": (one_input(name="X_BOOL", datatype="BOOL", data=[1, True]), "every", "true or false"),
    "FP16 in JSON": (one_input(name="X_FP16", datatype="FP16"), "every", "send it as binary data"),
    "BF16 in JSON": (one_input(name="X_BF16", datatype="BF16"), "every", "send it as binary data"),
    "half a character in BYTES": (
        b'{"inputs": [{"name": "lines", "datatype": "BYTES", "shape": [1, 1], "data": ["\\ud800"]}]}',
        "text",
        "no Unicode",
    ),
    "more strings than are taken": (
        {"inputs": [{"name": "lines", "datatype": "BYTES", "shape": [1, 4], "data": ["", "", "", ""]}]},
        "text",
        "at most 3",
    ),
    "a batch too large": (
        {"inputs": [{"name": "x", "datatype": "FP32", "shape": [5, 3], "data": [0] * 15}]},
        "scores",
        "batch-size must be <= 4",
    ),
    "batches that differ": (
        add_json(inputs=[add_json()["inputs"][0], {**add_json()["inputs"][1], "shape": [2, 1], "data": [1, 2]}]),
        "add",
        "does not match other inputs",
    ),
    "shared memory for an input": (
        one_input(parameters={"shared_memory_region": "r", "shared_memory_byte_size": 2}),
        "every",
        "shared memory",
    ),
    "shared memory for an output": (
        add_json(outputs=[{"name": "OUTPUT_SUM", "parameters": {"shared_memory_region": "r"}}]),
        "add",
        "shared memory",
    ),
    "an unknown output": (add_json(outputs=[{"name": "Z"}]), "add", "unexpected inference output 'Z'"),
    "an output twice": (add_json(outputs=[{"name": "OUTPUT_SUM"}] * 2), "add", "requested twice"),
    "classes below zero": (
        add_json(outputs=[{"name": "OUTPUT_SUM", "parameters": {"classification": -1}}]),
        "add",
        "'classification'",
    ),
    "classes of a type without an order": (
        {**one_input(), "outputs": [{"name": "Y_BOOL", "parameters": {"classification": 1}}]},
        "every",
        "unsupported type 'BOOL'",
    ),
    "binary_data that is text": (
        add_json(outputs=[{"name": "OUTPUT_SUM", "parameters": {"binary_data": "yes"}}]),
        "add",
        "'binary_data'",
    ),
    "parameters that are a list": (add_json(parameters=[]), "add", "'parameters' is not a JSON object"),
    "a size without bytes": (one_input(data=None, parameters={"binary_data_size": 2}), "every", "both"),
    "a size beyond the body": (
        {"inputs": [{"name": "X_INT8", "datatype": "INT8", "shape": [1, 2], "parameters": {"binary_data_size": 2}}]},
        "every",
        "'binary_data_size' is not",
    ),
    "a size below zero": (
        {"inputs": [{"name": "X_INT8", "datatype": "INT8", "shape": [1, 2], "parameters": {"binary_data_size": -2}}]},
        "every",
        "'binary_data_size' is not",
    ),
}


@pytest.mark.parametrize(("body", "model", "says"), REFUSED.values(), ids=REFUSED)
def test_a_request_that_does_not_fit_is_refused_with_the_reason(body: Any, model: str, says: str) -> None:
    limits = Limits(body=2**20, listed=2**18, strings=3)
    with pytest.raises(Refusal, match=says) as refused:
        read(body, model, limits=limits)
    assert refused.value.code in (Code.INVALID_ARGUMENT, Code.RESOURCE_EXHAUSTED)


def test_bytes_that_no_tensor_claims_are_refused() -> None:
    with pytest.raises(Refusal, match="unexpected additional input data"):
        read(add_json(), binary=b"x")


@pytest.mark.parametrize(
    ("raw", "says"),
    [
        (b"\1\0\0\0a", "should have 2 strings; its 5 bytes end before"),
        (b"\xff\xff\xff\xff\0\0\0\0", "end before"),
        (b"\1\0\0\0a\2\0\0\0b", "their lengths make 11 bytes, not 10"),
        (b"\1\0\0\0a\0\0\0\0b", "their lengths make 9 bytes, not 10"),
    ],
)
def test_strings_whose_lengths_do_not_add_up_are_refused(raw: bytes, says: str) -> None:
    lines = {"name": "lines", "datatype": "BYTES", "shape": [1, 2], "parameters": {"binary_data_size": len(raw)}}
    with pytest.raises(Refusal, match=says):
        read({"inputs": [lines]}, "text", binary=raw)


def test_json_beyond_its_limit_is_refused_before_it_is_taken_apart() -> None:
    with pytest.raises(Refusal, match="larger than") as refused:
        read(b" " * (LIMITS.listed + 1))
    assert refused.value.status == 413


@pytest.mark.parametrize(
    ("version", "code"), [("2", Code.NOT_FOUND), ("-1", Code.INVALID_ARGUMENT), ("²", Code.INVALID_ARGUMENT)]
)
def test_only_versions_that_are_served_are_written_on(version: str, code: Code) -> None:
    assert read(add_json(), version="01")[0].model_version == "1"
    with pytest.raises(Refusal) as refused:
        read(add_json(), version=version)
    assert refused.value.code is code


PARAMETERS: dict[str, tuple[dict[str, Any], str]] = {
    "the wake-up requests' level": ({"priority": 3}, "not one of add's levels, 1 to 2"),
    "a priority below zero": ({"priority": -1}, "'priority'"),
    "a priority as text": ({"priority": "1"}, "'priority'"),
    "a timeout as a fraction": ({"timeout": 1.5}, "'timeout'"),
    "a timeout below zero": ({"timeout": -1}, "'timeout'"),
    "a sequence that is true": ({"sequence_id": True}, "'sequence_id'"),
    "a sequence with a long name": ({"sequence_id": "a" * 129}, "longer than 128"),
    "a start that is a number": ({"sequence_start": 1}, "'sequence_start'"),
    "an end that is text": ({"sequence_end": "yes"}, "'sequence_end'"),
    "binary_data_output as a number": ({"binary_data_output": 1}, "'binary_data_output'"),
    "Triton's own": ({"triton_enable": 1}, "reserved"),
    "headers": ({"headers": "a"}, "reserved"),
    "shared memory": ({"shared_memory_region": "a"}, "reserved"),
    "a list": ({"mine": [1]}, "no text, whole number"),
    "null": ({"mine": None}, "no text, whole number"),
    "a number beyond 64 bits": ({"mine": 2**63}, "no text, whole number"),
    "a long text": ({"mine": "a" * 2000}, "longer than 1024"),
    "a text with a zero": ({"mine": "a\0b"}, "cannot be sent on"),
    "a long name": ({"m" * 200: 1}, "1 to 128"),
    "no name": ({"": 1}, "1 to 128"),
    "too many": ({f"p{index}": 1 for index in range(40)}, "40 parameters are too many"),
}


@pytest.mark.parametrize(("parameters", "says"), PARAMETERS.values(), ids=PARAMETERS)
def test_a_parameter_that_means_nothing_is_refused(parameters: dict[str, Any], says: str) -> None:
    with pytest.raises(Refusal, match=says):
        read(add_json(parameters=parameters))


def test_parameters_of_the_clients_own_go_on_with_their_types() -> None:
    request, _ = read(add_json(parameters={"a": "text", "b": True, "c": -5, "d": 1.5}))
    assert request.parameters["a"].string_param == "text"
    assert request.parameters["b"].bool_param is True
    assert request.parameters["c"].int64_param == -5
    assert request.parameters["d"].double_param == 1.5


def test_a_request_waits_by_its_tier_unless_it_names_a_priority() -> None:
    request, _ = read(add_json(), context=context(priority=2))
    assert request.parameters["priority"].uint64_param == 2
    request, _ = read(add_json(parameters={"priority": 1}), context=context(priority=2))
    assert request.parameters["priority"].uint64_param == 1
    request, _ = read(one_input(), "every", context=context(priority=2))
    assert "priority" not in request.parameters


def test_a_timeout_may_only_shorten_the_deadline() -> None:
    request, _ = read(add_json(parameters={"timeout": 1000}))
    assert request.parameters["timeout"].int64_param == 1000
    request, _ = read(add_json(parameters={"timeout": 2**64 - 1}))
    assert 0 < request.parameters["timeout"].int64_param <= 8_000_000


@pytest.mark.parametrize(("given", "sent"), [(5, 5), (2**64 - 1, -1)])
def test_a_sequence_id_keeps_all_its_64_bits(given: int, sent: int) -> None:
    request, _ = read(add_json(parameters={"sequence_id": given, "sequence_start": True}))
    assert request.parameters["sequence_id"].int64_param == sent
    assert request.parameters["sequence_start"].bool_param is True
