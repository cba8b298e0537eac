from __future__ import annotations

import asyncio

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
    with pytest.raises(TritonError) as failure:
        await start()
    assert str(failure.value).splitlines() == [
        "Triton did not start: it could not load its models.",
        "failed to load 'misfit' version 1: Internal: ValueError: model.onnx does not fit the configuration of misfit: "
        "input 'index' is a tensor(int64), not TYPE_INT32",
    ]
