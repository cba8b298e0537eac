from __future__ import annotations

import struct
from dataclasses import replace
from typing import Any

import pytest
from tritonclient.grpc import service_pb2 as pb

from serve_app.protocol.grpc_request import parsed, rewritten
from serve_app.protocol.limits import Limits
from serve_app.protocol.parameters import hurry
from serve_app.protocol.refusals import Code, Refusal
from tests.protocol.codec import LIMITS, SIGNATURES, add_message, context, fp32

Input = pb.ModelInferRequest.InferInputTensor
Output = pb.ModelInferRequest.InferRequestedOutputTensor
Contents = pb.InferTensorContents
Parameter = pb.InferParameter


def sent(message: pb.ModelInferRequest, limits: Limits = LIMITS) -> pb.ModelInferRequest:
    """What goes on to Triton."""
    given = parsed(message.SerializeToString(), limits)
    return rewritten(given, SIGNATURES.find(given.model_name), context(), limits)


def typed(wire: str, **contents: Any) -> pb.ModelInferRequest:
    tensor = Input(name=f"X_{wire}", datatype=wire, shape=[1, 2], contents=Contents(**contents))
    return pb.ModelInferRequest(model_name="every", inputs=[tensor])


def test_a_good_request_goes_on_with_what_is_known_of_it_only() -> None:
    message = add_message()
    message.inputs[0].parameters["note"].string_param = "x"
    message.outputs.add(name="OUTPUT_SUM").parameters["binary_data"].bool_param = True
    request = sent(message)
    assert not request.inputs[0].parameters
    assert not request.outputs[0].parameters
    assert list(request.raw_input_contents) == [fp32(1), fp32(0.5)]
    assert (request.id, request.model_name) == ("7", "add")


@pytest.mark.parametrize(
    ("wire", "contents", "raw"),
    [
        ("BOOL", {"bool_contents": [True, False]}, b"\1\0"),
        ("INT8", {"int_contents": [-128, 127]}, b"\x80\x7f"),
        ("INT16", {"int_contents": [-1, 2]}, struct.pack("<2h", -1, 2)),
        ("INT32", {"int_contents": [-1, 2]}, struct.pack("<2i", -1, 2)),
        ("INT64", {"int64_contents": [-1, 2]}, struct.pack("<2q", -1, 2)),
        ("UINT8", {"uint_contents": [0, 255]}, b"\0\xff"),
        ("UINT16", {"uint_contents": [1, 2]}, struct.pack("<2H", 1, 2)),
        ("UINT32", {"uint_contents": [1, 2]}, struct.pack("<2I", 1, 2)),
        ("UINT64", {"uint64_contents": [1, 2**64 - 1]}, struct.pack("<2Q", 1, 2**64 - 1)),
        ("FP32", {"fp32_contents": [0.5, float("inf")]}, fp32(0.5, float("inf"))),
        ("FP64", {"fp64_contents": [0.1, 2]}, struct.pack("<2d", 0.1, 2)),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_typed_contents_become_the_bytes_of_the_type(wire: str, contents: dict[str, Any], raw: bytes) -> None:
    assert list(sent(typed(wire, **contents)).raw_input_contents) == [raw]


def test_typed_strings_get_their_lengths() -> None:
    lines = Input(name="lines", datatype="BYTES", shape=[1, 2], contents=Contents(bytes_contents=[b"ab", b""]))
    request = sent(pb.ModelInferRequest(model_name="text", inputs=[lines]))
    assert list(request.raw_input_contents) == [b"\2\0\0\0ab\0\0\0\0"]


def with_parameter(name: str, **choice: Any) -> pb.ModelInferRequest:
    return add_message(parameters={name: Parameter(**choice)})


REFUSED: dict[str, tuple[pb.ModelInferRequest, str]] = {
    "a range exceeded": (typed("INT8", int_contents=[128, 0]), "range of INT8"),
    "contents of another type": (typed("INT8", uint_contents=[1, 2]), "in uint_contents, expected int_contents"),
    "contents of two types": (typed("FP32", fp32_contents=[1, 2], fp64_contents=[1]), "expected fp32_contents"),
    "contents too short": (typed("INT8", int_contents=[1]), "Expected 2, got 1"),
    "empty contents": (typed("INT8"), "Expected 2, got 0"),
    "FP16 typed": (typed("FP16", fp32_contents=[1, 2]), "no typed contents"),
    "no contents": (add_message(raw_input_contents=[]), "unable to find data"),
    "a raw content too few": (add_message(raw_input_contents=[fp32(1)]), "do not match 2 inputs"),
    "a raw content too many": (add_message(raw_input_contents=[fp32(1)] * 3), "do not match 2 inputs"),
    "raw and typed": (
        add_message(
            inputs=[
                Input(name="INPUT_A", datatype="FP32", shape=[1, 1], contents=Contents(fp32_contents=[1])),
                Input(name="INPUT_B", datatype="FP32", shape=[1, 1]),
            ]
        ),
        "contents field must not be specified",
    ),
    "bytes too few": (add_message(raw_input_contents=[b"abc", fp32(1)]), "Expected 4, got 3"),
    "shared memory": (
        add_message(
            inputs=[
                Input(name="INPUT_A", parameters={"shared_memory_region": Parameter(string_param="r")},
                      datatype="FP32", shape=[1, 1]),
                Input(name="INPUT_B", datatype="FP32", shape=[1, 1]),
            ]
        ),
        "shared memory",
    ),
    "shared memory for an output": (
        add_message(
            outputs=[Output(name="OUTPUT_SUM", parameters={"shared_memory_region": Parameter(string_param="r")})]
        ),
        "shared memory",
    ),
    "classes as text": (
        add_message(outputs=[Output(name="OUTPUT_SUM", parameters={"classification": Parameter(string_param="1")})]),
        "'classification'",
    ),
    "a parameter without a value": (with_parameter("mine"), "no text, whole number"),
    "the wake-up requests' level": (with_parameter("priority", uint64_param=3), "levels, 1 to 2"),
    "a negative timeout": (with_parameter("timeout", int64_param=-5), "'timeout'"),
    "a negative sequence": (with_parameter("sequence_id", int64_param=-5), "'sequence_id'"),
    "Triton's own": (with_parameter("triton_x", int64_param=1), "reserved"),
}  # fmt: skip


@pytest.mark.parametrize(("message", "says"), REFUSED.values(), ids=REFUSED)
def test_a_request_that_does_not_fit_is_refused_with_the_reason(message: pb.ModelInferRequest, says: str) -> None:
    with pytest.raises(Refusal, match=says) as refused:
        sent(message)
    assert refused.value.code is Code.INVALID_ARGUMENT


@pytest.mark.parametrize("model", ["hidden", "nowhere", ""])
def test_a_model_that_is_not_exposed_is_as_one_that_is_not_there(model: str) -> None:
    with pytest.raises(Refusal, match=f"unknown model: '{model}' is not found") as refused:
        sent(add_message(model_name=model))
    assert refused.value.code is Code.NOT_FOUND


@pytest.mark.parametrize(
    "data",
    [b"\xff", b"\x0a\x05a", b"\x0b", b"\x80" * 11, add_message().SerializeToString()[:-2], b"\x0a\x02\xff\xfe"],
    ids=["cut tag", "cut text", "group", "endless number", "cut bytes", "not UTF-8"],
)
def test_bytes_that_are_no_message_are_refused(data: bytes) -> None:
    with pytest.raises(Refusal, match="cannot be read"):
        parsed(data, LIMITS)


def test_a_message_of_many_small_parts_is_refused_before_it_is_taken_apart() -> None:
    with pytest.raises(Refusal, match="more tensors or parameters"):
        parsed(b"\x2a\x00" * 100_000, LIMITS)
    shape = b"\x1a" + b"\x80\x80\x14" + b"\1" * (20 << 14)  # 327,680 dimensions in one input
    with pytest.raises(Refusal, match="outside raw_input_contents"):
        parsed(b"\x2a" + b"\x84\x80\x14" + shape, LIMITS)


def test_a_request_is_as_urgent_as_it_was_granted_and_never_less_than_it_asked_for() -> None:
    asked = replace(context(), priority=3)
    message = with_parameter("priority", uint64_param=2)
    hurry(message, asked, asked)
    assert message.parameters["priority"].uint64_param == 2
    hurry(message, asked, replace(asked, priority=1))
    assert message.parameters["priority"].uint64_param == 1
    without = add_message()
    hurry(without, asked, replace(asked, priority=1))
    assert "priority" not in without.parameters
