"""Tensors that a configuration leaves out, from the ONNX graph, as Triton completes them."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper
from tritonclient.grpc import model_config_pb2 as pb

from tests.importing.conftest import Repository, lost


def save(path: Path, dims: list[int | str], element: int = TensorProto.FLOAT) -> None:
    graph = helper.make_graph(
        [helper.make_node("Add", ["x", "bias"], ["y"])],
        "add",
        [helper.make_tensor_value_info("x", element, dims), helper.make_tensor_value_info("bias", element, [])],
        [helper.make_tensor_value_info("y", element, dims)],
        [helper.make_tensor("bias", TensorProto.FLOAT, [], [1.0])],
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(helper.make_model(graph), path)


def add(repository: Repository, config: str | None, dims: list[int | str], element: int = TensorProto.FLOAT) -> None:
    repository.add("m", config)
    save(repository.folder / "m/1/model.onnx", dims, element)


def test_a_model_without_a_configuration_gets_a_batch_of_four(repository: Repository) -> None:
    add(repository, None, ["N", 3, "W"])
    rendered = repository.rendered("m")
    assert rendered.backend == "onnxruntime"
    assert [(i.name, i.data_type, list(i.dims)) for i in rendered.input] == [("x", pb.TYPE_FP32, [3, -1])]
    assert [(o.name, o.data_type, list(o.dims)) for o in rendered.output] == [("y", pb.TYPE_FP32, [3, -1])]
    assert rendered.max_batch_size == 4
    assert rendered.HasField("dynamic_batching")
    assert "# Tensors, and max_batch and batching where none were given, are what Triton completes" in (
        repository.imported().text
    )


def test_what_the_configuration_says_is_kept(repository: Repository) -> None:
    add(repository, 'platform: "onnxruntime_onnx" max_batch_size: 16 sequence_batching {}', ["N", 3])
    rendered = repository.rendered("m")
    assert rendered.max_batch_size == 16
    assert rendered.HasField("sequence_batching")
    assert list(rendered.input[0].dims) == [3]


def test_a_fixed_batch_is_a_dimension_like_others(repository: Repository) -> None:
    add(repository, 'backend: "onnxruntime"', [1, 3])
    rendered = repository.rendered("m")
    assert (rendered.max_batch_size, list(rendered.input[0].dims)) == (0, [1, 3])
    assert rendered.WhichOneof("scheduling_choice") is None


def test_a_tensor_of_the_batch_alone_is_reshaped(repository: Repository) -> None:
    add(repository, None, ["N"])
    rendered = repository.rendered("m")
    assert list(rendered.input[0].dims) == [1]
    assert rendered.input[0].HasField("reshape")
    assert list(rendered.input[0].reshape.shape) == []


def test_only_what_is_missing_is_completed(repository: Repository) -> None:
    add(repository, 'backend: "onnxruntime" input [{ name: "x" data_type: TYPE_FP32 dims: [7] }]', ["N", -1])
    rendered = repository.rendered("m")
    assert (list(rendered.input[0].dims), list(rendered.output[0].dims)) == ([7], [-1])


@pytest.mark.parametrize(
    ("config", "dims", "element", "says"),
    [
        (
            'backend: "onnxruntime" max_batch_size: 8',
            [1, 3],
            TensorProto.FLOAT,
            "max_batch_size is 8, and the batch of",
        ),
        (None, ["N", 3], TensorProto.COMPLEX64, "tensor x of the graph is of a type that Triton does not have"),
    ],
)
def test_what_triton_cannot_complete_is_listed(
    config: str | None, dims: list[int | str], element: int, says: str, repository: Repository
) -> None:
    add(repository, config, dims, element)
    (loss,) = lost(repository.imported())
    assert loss.startswith(f"m: {says}")


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "it names no tensors, and m/1/model.onnx, which does, is not there"),
        (b"version https://git-lfs", "it names no tensors, and m/1/model.onnx, which does, is no ONNX model"),
    ],
)
def test_an_onnx_file_that_is_missing_or_a_pointer_is_listed(
    content: bytes | None, says: str, repository: Repository
) -> None:
    repository.add("m", 'backend: "onnxruntime"', "1/README")
    if content is not None:
        (repository.folder / "m/1/model.onnx").write_bytes(content)
    (loss,) = lost(repository.imported())
    assert loss.startswith(f"m: {says}")
