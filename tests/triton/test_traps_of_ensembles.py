"""What a real Triton does, without a word, with ensembles and calls that the validator warns of or refuses."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import tritonclient.grpc as triton
from tritonclient.utils import InferenceServerException

from tests.rules.case import report
from tests.rules.ensemble_cases import CALLED_ALONE, CASES, MODEL, calls, ensemble, step

# Answers y: as many requests as ran together.
COUNT_CODE = """
import numpy as np
import triton_python_backend_utils as pb_utils
from serve_app.triton.backend.tensors import read, write

class TritonPythonModel:
    def execute(self, requests):
        return [
            pb_utils.InferenceResponse([write("y", np.full(read(request, "x").shape, len(requests), np.float32))])
            for request in requests
        ]
"""
# Calls the model that its parameter `calls` names, and answers what that answers; where it has no such parameter,
# answers y as COUNT_CODE does.
CALL_CODE = """
import json

import numpy as np
import triton_python_backend_utils as pb_utils
from serve_app.triton.backend.tensors import read, write

class TritonPythonModel:
    def initialize(self, args):
        self.called = json.loads(args["model_config"])["parameters"].get("calls", {}).get("string_value")

    def execute(self, requests):
        return [self.answer(request, len(requests)) for request in requests]

    def answer(self, request, together):
        x = read(request, "x").copy()
        if self.called is None:
            return pb_utils.InferenceResponse([write("y", np.full(x.shape, together, np.float32))])
        call = pb_utils.InferenceRequest(
            model_name=self.called, requested_output_names=["y"], inputs=[write("x", x)]
        )
        answer = call.exec()
        if answer.has_error():
            return pb_utils.InferenceResponse(error=answer.error())
        return pb_utils.InferenceResponse([write("y", np.from_dlpack(pb_utils.get_output_tensor_by_name(answer, "y")))])
"""
URGENT_CODE = """
import triton_python_backend_utils as pb_utils
from serve_app.triton.backend.tensors import read, write

class TritonPythonModel:
    def execute(self, requests):
        try:
            pb_utils.InferenceRequest(
                model_name="m",
                requested_output_names=["y"],
                inputs=[write("x", read(requests[0], "x").copy())],
                priority=1,
            )
        except TypeError as unknown:
            error = pb_utils.TritonError(str(unknown))
        return [pb_utils.InferenceResponse(error=error) for _ in requests]
"""


def send(client: triton.InferenceServerClient, name: str, *shape: int, timeout: float = 20) -> np.ndarray:
    x = triton.InferInput("x", shape, "FP32").set_data_from_numpy(np.ones(shape, np.float32))
    answer = client.infer(name, [x], client_timeout=timeout).as_numpy("y")
    assert answer is not None
    return answer


def test_an_ensemble_that_does_not_batch_takes_no_batch_dimension(load) -> None:
    client = load(ensemble(max_batch=0), COUNT_CODE, "e")
    assert send(client, "e", 4).shape == (4,)
    with pytest.raises(InferenceServerException, match=r"Expected \[4\], got \[1,4\]"):
        send(client, "e", 1, 4)


def test_an_ensemble_that_batches_over_a_model_that_does_not_takes_one_item(load) -> None:
    client = load(CASES["an ensemble that batches, of a model that does not"].patch, COUNT_CODE, "e")
    assert send(client, "e", 1, 4).shape == (1, 4)
    with pytest.raises(InferenceServerException, match=r"Expected \[4\], got \[2,4\]"):
        send(client, "e", 2, 4)


def test_an_ensemble_takes_no_more_items_than_its_smallest_step(load) -> None:
    client = load(CASES["a step that caps the ensemble"].patch, COUNT_CODE, "e")
    assert len(send(client, "e", 4, 4)) == 4
    with pytest.raises(InferenceServerException, match="batch-size must be <= 4 for 'e'"):
        send(client, "e", 8, 4)


def test_a_request_without_an_optional_input_that_a_step_needs_fails(load) -> None:
    models = {"n": {**MODEL, "inputs": {"x": "float32[4]", "z": "float32[4]"}}}
    optional = {"x": "float32[4]", "z": {"tensor": "float32[4]", "optional": True}}
    client = load(ensemble(step("n", {"x": "x", "z": "z"}), models=models, inputs=optional), COUNT_CODE, "e")
    with pytest.raises(InferenceServerException, match="expected 2 inputs but got 1"):
        send(client, "e", 1, 4)


def test_a_request_fails_where_a_varying_dimension_hid_two_shapes(load) -> None:
    client = load(CASES["a tensor of two shapes that a varying one hides from triton"].patch, COUNT_CODE, "e")
    with pytest.raises(InferenceServerException, match=r"Expected \[-1,3\], got \[1,4\]"):
        send(client, "e", 1, 4)


def test_a_request_fails_where_a_step_writes_an_input(load) -> None:
    client = load(CASES["a step that writes an input of the ensemble"].patch, COUNT_CODE, "e")
    inputs = [
        triton.InferInput(name, [1, 4], "FP32").set_data_from_numpy(np.ones((1, 4), np.float32)) for name in ("x", "w")
    ]
    with pytest.raises(InferenceServerException, match="expected a single response, got 2"):
        client.infer("e", inputs, client_timeout=20)


def test_an_ensemble_of_a_decoupled_step_is_decoupled_whatever_it_says(load) -> None:
    client = load(CASES["an ensemble of a decoupled step that does not say so"].patch, COUNT_CODE, "e")
    with pytest.raises(InferenceServerException, match="doesn't support models with decoupled transaction policy"):
        send(client, "e", 1, 4)


def test_an_ensemble_without_a_decoupled_step_is_not_decoupled_whatever_it_says(load) -> None:
    client = load(ensemble(decoupled=True), COUNT_CODE, "e")
    assert send(client, "e", 1, 4).shape == (1, 4)


def test_a_batch_for_a_step_with_sequences_is_refused(load) -> None:
    client = load(CASES["a batch for a step with sequences"].patch, COUNT_CODE, "e")
    x = triton.InferInput("x", [2, 4], "FP32").set_data_from_numpy(np.ones((2, 4), np.float32))
    with pytest.raises(InferenceServerException, match="must specify batch-size 1"):
        client.infer("e", [x], sequence_id=5, sequence_start=True, client_timeout=20)


def test_loading_an_ensemble_loads_its_steps(load) -> None:
    client = load(ensemble(), COUNT_CODE, "e")
    assert client.is_model_ready("m")


# -- calls (T330, T331, T333, T335)


def test_a_call_of_a_model_that_does_not_exist_fails_the_request(load) -> None:
    client = load({"models": {"m": {"parameters": {"calls": "nobody"}}}}, CALL_CODE)
    with pytest.raises(InferenceServerException, match="Model 'nobody' is not ready"):
        send(client, "m", 1, 4)


def test_a_call_has_no_priority(load) -> None:
    client = load({}, URGENT_CODE)
    with pytest.raises(InferenceServerException, match="incompatible constructor arguments"):
        send(client, "m", 1, 4)


@pytest.mark.parametrize(("name", "together"), [("m", 1), ("n", 6)])
def test_the_calls_of_one_instance_come_one_at_a_time(load, name: str, together: int) -> None:
    called = {**CALLED_ALONE, "max_batch": 6, "batching": {"queue_delay": "300ms", "priorities": "none"}}
    client = load(calls("n", models={"n": called}, parameters={"calls": "n"}), CALL_CODE)
    client.load_model("n", client_timeout=20)
    with ThreadPoolExecutor(6) as pool:
        answers = [future.result() for future in [pool.submit(send, client, name, 1, 4) for _ in range(6)]]
    assert {answer[0, 0] for answer in answers} == {together}
    client.unload_model("n")


async def test_a_model_that_calls_itself_waits_for_ever(repository, start) -> None:
    tensors = 'input {name: "x" data_type: TYPE_FP32 dims: 4} output {name: "y" data_type: TYPE_FP32 dims: 4}'
    repository.add(
        "m", CALL_CODE, f'max_batch_size: 8 {tensors} parameters {{key: "calls" value {{string_value: "m"}}}}'
    )
    server = await start()
    try:
        with (
            triton.InferenceServerClient(server.address) as client,
            pytest.raises(InferenceServerException, match="Deadline Exceeded"),
        ):
            send(client, "m", 1, 4, timeout=2)
    finally:
        await server.stop(0)


def test_a_step_of_a_version_that_no_folder_has_is_refused_only_when_it_is_loaded(load):
    patch = ensemble(step("m", version=999999), models={"m": {"versions": {"all": True}}})
    assert "T302" not in [finding.code for finding in report(patch).findings]  # the files say it
    with pytest.raises(InferenceServerException, match="whose required version 999999 is not loaded"):
        load(patch, COUNT_CODE, "e")
