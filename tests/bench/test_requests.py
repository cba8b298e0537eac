"""What is sent: files as a body or a form, and tensors made for a model."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from google.protobuf import text_format
from tritonclient.grpc import model_config_pb2

from serve_app.bench.error import BenchError
from serve_app.bench.requests import contents_for, grpc_infer, http_infer, of_files


def config(text: str) -> model_config_pb2.ModelConfig:
    return text_format.Parse(f'name: "m" {text}', model_config_pb2.ModelConfig())


PICTURE = config(
    'max_batch_size: 8 input [{name: "image" data_type: TYPE_UINT8 dims: [-1, -1, 3]},'
    '{name: "hint" data_type: TYPE_FP32 dims: [1] optional: true}]'
)


def test_one_file_without_a_name_is_the_body(tmp_path: Path) -> None:
    (tmp_path / "a.jpg").write_bytes(b"picture")
    request = of_files("http://host/route", [("", tmp_path / "a.jpg")], {"X-Tier": "bulk"})
    assert (request.body, request.size) == (b"picture", 7)
    assert request.headers == {"X-Tier": "bulk", "Content-Type": "application/octet-stream"}


def test_named_files_are_a_form(tmp_path: Path) -> None:
    (tmp_path / "a.jpg").write_bytes(b"picture")
    request = of_files("http://host/route", [("selfie", tmp_path / "a.jpg"), ("frames", tmp_path / "a.jpg")], {})
    kind, _, boundary = request.headers["Content-Type"].partition("; boundary=")
    assert kind == "multipart/form-data"
    parts = request.body.split(f"--{boundary}".encode())[1:-1]
    assert [part.split(b"\r\n\r\n")[1] for part in parts] == [b"picture\r\n"] * 2
    assert b'name="selfie"' in parts[0]
    assert b'name="frames"' in parts[1]


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(BenchError, match=r"none.jpg cannot be read: No such file"):
        of_files("http://host", [("", tmp_path / "none.jpg")], {})


def test_a_varying_input_gets_the_given_size_and_what_is_optional_is_left_out() -> None:
    (image,) = contents_for(PICTURE, {"image": [4, 5, 3]})
    assert (image.name, image.datatype, image.shape, len(image.raw)) == ("image", "UINT8", [1, 4, 5, 3], 60)
    assert contents_for(PICTURE, {"image": [4, 5, 3]}) == [image]


@pytest.mark.parametrize("shape", [None, [4, 5], [4, 5, 4], [0, 5, 3], [4, 5, 3, 1]])
def test_a_size_that_is_missing_or_does_not_fit_is_asked_for(shape: list[int] | None) -> None:
    wanted = r"input image of m is \[-1, -1, 3\]: give it a size, such as --shape image=320,320,3"
    with pytest.raises(BenchError, match=wanted):
        contents_for(PICTURE, {} if shape is None else {"image": shape})


def test_a_shape_for_no_input_is_refused() -> None:
    with pytest.raises(BenchError, match="m has no input picture; it takes image"):
        contents_for(PICTURE, {"picture": [1]})


def test_a_model_of_sequences_is_refused_with_what_to_do() -> None:
    taken = config('sequence_batching {} input [{name: "x" data_type: TYPE_FP32 dims: [1]}]')
    with pytest.raises(BenchError, match=r"m takes sequences \(sequence_batching\), .* a correlation ID; .*route"):
        contents_for(taken, {})


@pytest.mark.parametrize(
    ("data_type", "wire", "size"),
    [("BOOL", "BOOL", 6), ("INT64", "INT64", 48), ("FP16", "FP16", 12), ("BF16", "BF16", 12), ("STRING", "BYTES", 48)],
)
def test_each_type_has_its_bytes(data_type: str, wire: str, size: int) -> None:
    given = config(f'input [{{name: "x" data_type: TYPE_{data_type} dims: [2, 3]}}]')
    (content,) = contents_for(given, {})
    assert (content.datatype, content.shape, len(content.raw)) == (wire, [2, 3], size)


def test_a_bool_is_0_or_1_and_bfloat16_are_numbers_from_0_to_1() -> None:
    def raw(data_type: str) -> bytes:
        given = config(f'input [{{name: "x" data_type: TYPE_{data_type} dims: [50]}}]')
        return contents_for(given, {})[0].raw

    assert set(raw("BOOL")) == {0, 1}
    upper = np.frombuffer(raw("BF16"), np.uint16).astype(np.uint32) << 16
    assert (upper.view(np.float32) >= 0).all()
    assert (upper.view(np.float32) <= 1).all()


def test_an_inference_request_carries_its_tensors_in_binary() -> None:
    inputs = contents_for(PICTURE, {"image": [1, 2, 3]})
    request = http_infer("http://host:8000", "m", inputs, {"X-Tier": "bulk"})
    length = int(request.headers["Inference-Header-Content-Length"])
    entry = {"name": "image", "datatype": "UINT8", "shape": [1, 1, 2, 3], "parameters": {"binary_data_size": 6}}
    assert json.loads(request.body[:length]) == {"inputs": [entry], "parameters": {"binary_data_output": True}}
    assert request.body[length:] == inputs[0].raw
    assert (str(request), request.headers["X-Tier"]) == ("POST http://host:8000/v2/models/m/infer", "bulk")
    same = grpc_infer("host:9000", "m", inputs, {"X-Tier": "bulk"})
    assert (same.message.model_name, list(same.message.inputs[0].shape)) == ("m", [1, 1, 2, 3])
    assert (list(same.message.raw_input_contents), same.metadata) == ([inputs[0].raw], {"x-tier": "bulk"})
