"""Answers whose bytes are, or are not, those of the shape that they say they have."""

from __future__ import annotations

import pytest
from tritonclient.grpc import service_pb2

from serve_app.live.inference import miscounts


def answer(datatype: str, shape: list[int], *content: bytes) -> service_pb2.ModelInferResponse:
    made = service_pb2.ModelInferResponse(raw_output_contents=content)
    made.outputs.add(name="y", datatype=datatype, shape=shape)
    return made


@pytest.mark.parametrize(
    ("datatype", "shape", "content"),
    [
        ("FP32", [2, 3], bytes(24)),
        ("BF16", [3], bytes(6)),
        ("INT64", [0, 4], b""),
        ("BYTES", [2], b"\2\0\0\0ab\0\0\0\0"),
        ("BYTES", [0], b""),
    ],
)
def test_bytes_that_fit_their_shape(datatype: str, shape: list[int], content: bytes) -> None:
    assert list(miscounts(answer(datatype, shape, content))) == []


@pytest.mark.parametrize(
    ("datatype", "shape", "content", "says"),
    [
        ("FP32", [1, 4], b"", "FP32[1, 4], 16 bytes, and comes with 0"),
        ("UINT8", [2], bytes(3), "UINT8[2], 2 bytes, and comes with 3"),
        ("BYTES", [2], b"\1\0\0\0a", "BYTES[2], strings, 2 of them, and comes with 1"),
        (
            "BYTES",
            [1],
            b"\2\0\0\0a",
            "BYTES[1], and comes with 5 bytes that are no strings, each behind its length",
        ),
        ("BYTES", [1], b"\0\0", "2 bytes that are no strings"),
    ],
)
def test_bytes_that_do_not(datatype: str, shape: list[int], content: bytes, says: str) -> None:
    ((name, what),) = miscounts(answer(datatype, shape, content))
    assert name == "y"
    assert says in what


def test_an_answer_without_a_tensors_bytes_has_none_of_them() -> None:
    ((_, what),) = miscounts(answer("INT32", [1]))
    assert "4 bytes, and comes with 0" in what
