from __future__ import annotations

import json
import struct

import numpy as np
import pytest
from tritonclient.grpc import service_pb2 as pb
from tritonclient.http import InferResult

from serve_app.protocol.http_response import Wanted, write_answer
from serve_app.protocol.refusals import Refusal


def answer(wire: str, raw: bytes, shape: list[int]) -> pb.ModelInferResponse:
    message = pb.ModelInferResponse(model_name="m", model_version="1", id="7")
    message.outputs.add(name="y", datatype=wire, shape=shape)
    message.raw_output_contents.append(raw)
    return message


def as_client_reads(message: pb.ModelInferResponse, wanted: Wanted) -> InferResult:
    parts, length = write_answer(message, wanted)
    return InferResult.from_response_body(b"".join(parts), header_length=length)


@pytest.mark.parametrize("binary", [True, False], ids=["binary", "json"])
@pytest.mark.parametrize(
    ("wire", "array"),
    [
        ("BOOL", np.array([True, False])),
        ("UINT64", np.array([0, 2**64 - 1], np.uint64)),
        ("INT8", np.array([-128, 127], np.int8)),
        ("FP32", np.array([0.1, np.inf], np.float32)),
        ("FP64", np.array([1e-300, 3.0])),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_tritonclient_reads_the_values_that_triton_gave(wire: str, array: np.ndarray, binary: bool) -> None:
    result = as_client_reads(answer(wire, array.tobytes(), [2, 1]), Wanted(binary))
    np.testing.assert_array_equal(result.as_numpy("y"), array.reshape(2, 1))
    assert result.get_response()["id"] == "7"


def test_a_named_output_is_written_as_it_was_asked_for_and_the_others_by_default() -> None:
    message = answer("FP32", struct.pack("<f", 1.5), [1])
    message.outputs.add(name="z", datatype="INT32", shape=[1])
    message.raw_output_contents.append(struct.pack("<i", 3))
    parts, length = write_answer(message, Wanted(False, {"z": True}))
    assert length == len(parts[0])
    assert json.loads(parts[0])["outputs"] == [
        {"name": "y", "datatype": "FP32", "shape": [1], "data": [1.5]},
        {"name": "z", "datatype": "INT32", "shape": [1], "parameters": {"binary_data_size": 4}},
    ]
    assert parts[1:] == [struct.pack("<i", 3)]


def test_parameters_of_the_answer_come_with_their_types() -> None:
    message = answer("BOOL", b"\1", [1])
    message.parameters["sequence_id"].int64_param = 5
    message.parameters["sequence_end"].bool_param = True
    parts, _ = write_answer(message, Wanted())
    assert json.loads(parts[0])["parameters"] == {"sequence_id": 5, "sequence_end": True}


@pytest.mark.parametrize(
    ("wire", "raw"), [("FP16", b"\0\0"), ("BF16", b"\0\0"), ("BYTES", b"\1\0\0\0\xff")], ids=["FP16", "BF16", "BYTES"]
)
def test_values_that_json_cannot_hold_are_to_be_asked_for_as_bytes(wire: str, raw: bytes) -> None:
    with pytest.raises(Refusal, match="ask for it with binary_data"):
        write_answer(answer(wire, raw, [1]), Wanted())
