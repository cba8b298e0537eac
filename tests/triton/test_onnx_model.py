from __future__ import annotations

import asyncio
import importlib
import json
import sys
from types import SimpleNamespace
from unittest.mock import Mock

import numpy as np
import pytest
import tritonclient.grpc.aio as triton
from tritonclient.utils import InferenceServerException

from serve_app.triton.error import TritonError


async def look_up_together(address, encode, *rows: list[int]) -> list[object]:
    """One request per row, sent at once; the result or error of each."""
    async with triton.InferenceServerClient(address) as client:
        return await asyncio.gather(
            *(client.infer("lookup", encode({"index": np.array([row])}), client_timeout=20) for row in rows),
            return_exceptions=True,
        )


async def test_requests_that_arrive_together_run_as_one_and_each_gets_its_own_answer(server, encode):
    answers = await look_up_together(server.address, encode, [0, 1], [2, 3], [4, 5], [6, 7])
    assert [answer.as_numpy("value").tolist() for answer in answers] == [[[0, 2]], [[4, 6]], [[8, 10]], [[12, 14]]]
    assert {answer.as_numpy("merged").item() for answer in answers} == {4}


async def test_requests_of_different_lengths_are_answered_side_by_side(server, encode):
    answers = await look_up_together(server.address, encode, [1], [2, 3], [4, 5, 6])
    assert [answer.as_numpy("value").tolist() for answer in answers] == [[[2]], [[4, 6]], [[8, 10, 12]]]


async def test_a_bad_request_fails_alone_and_its_error_names_no_path(server, encode):
    good, bad, other = await look_up_together(server.address, encode, [1], [99], [2])
    assert good.as_numpy("value").tolist() == [[2]]
    assert other.as_numpy("value").tolist() == [[4]]
    assert isinstance(bad, InferenceServerException)
    assert "cannot be run on this input" in bad.message()
    assert "idx=99 must be within the inclusive range [-10,9]" in bad.message()
    assert "/" not in bad.message()


async def test_a_request_with_several_rows_is_answered_row_by_row(server, infer):
    value = await asyncio.to_thread(infer, server.address, "lookup", {"index": np.array([[1], [2], [3]])}, "value")
    assert value.tolist() == [[2], [4], [6]]


async def test_a_graph_that_does_not_fit_its_configuration_is_refused_with_the_difference(start, repository):
    repository.add_lookup("misfit", dtype="INT32")
    repository.add_lookup("single", batch=1)
    with pytest.raises(TritonError) as failure:
        await start()
    said = "failed to load '{0}' version 1: Internal: ValueError: model.onnx does not fit the configuration of {0}: "
    first, *others = str(failure.value).splitlines()
    assert first == "Triton did not start: it could not load its models."
    assert sorted(others) == [
        said.format("misfit") + "input 'index' is a tensor(int64), not TYPE_INT32",
        said.format("single")
        + "; ".join(
            f"{tensor} has a batch dimension of 1: export it as dynamic"
            for tensor in ("input 'index'", "output 'value'", "output 'merged'")
        ),
    ]


class Request:
    """As Triton's python backend gives it to a model."""

    def __init__(self, index: list[int], cancelled: bool = False):
        self.index = np.array([index])
        self.cancelled = cancelled

    def is_cancelled(self) -> bool:
        return self.cancelled


@pytest.fixture
def backend(monkeypatch):
    """onnx_model as a model's process imports it, with Triton's own module replaced by one that answers plainly."""
    tensor = SimpleNamespace(from_dlpack=lambda name, capsule: name)
    error = Mock(side_effect=lambda text, code: (text, code), CANCELLED="cancelled", INTERNAL="internal")
    module = SimpleNamespace(
        Tensor=tensor,
        TritonError=error,
        InferenceResponse=lambda output_tensors=None, error=None: output_tensors or error,
        get_input_tensor_by_name=lambda request, name: request.index,
    )
    monkeypatch.setitem(sys.modules, "triton_python_backend_utils", module)
    for name in ("onnx_model", "tensors"):
        monkeypatch.delitem(sys.modules, f"serve_app.triton.backend.{name}", raising=False)
    return importlib.import_module("serve_app.triton.backend.onnx_model")


def test_a_cancelled_request_is_not_run(backend, repository):
    repository.add_lookup()
    model = backend.TritonPythonModel()
    tensors = {
        "input": [{"name": "index", "data_type": "TYPE_INT64", "dims": [-1]}],
        "output": [{"name": "value", "data_type": "TYPE_FP32", "dims": [-1]}],
    }
    folder = str(repository.folder / "lookup")
    config = json.dumps({"name": "lookup", "max_batch_size": 8, **tensors})
    model.initialize({"model_config": config, "model_repository": folder, "model_version": "1"})
    # Run, this one would fail with INTERNAL.
    answers = model.execute([Request([1]), Request([99], cancelled=True), Request([2])])
    assert answers == [["value"], ("the request was cancelled", "cancelled"), ["value"]]
