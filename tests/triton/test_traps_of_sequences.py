"""What a real Triton does, without a word, with sequences that the validator warns of or refuses."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tritonclient.grpc as triton
from tritonclient.utils import InferenceServerException

from tests.rules.sequence_cases import KEPT, READY, START, direct, model, oldest

# Writes down each batch: for each of its requests the values of its tensors, by name. Answers y, and the state `after`.
TELL_CODE = """
import json
from pathlib import Path

import numpy as np
import triton_python_backend_utils as pb_utils
from serve_app.triton.backend.tensors import read, write

class TritonPythonModel:
    def initialize(self, args):
        self.seen = Path(args["model_repository"]) / "seen.jsonl"

    def execute(self, requests):
        names = [[tensor.name() for tensor in request.inputs()] for request in requests]
        batch = [
            {name: read(request, name).ravel().tolist() for name in own} for request, own in zip(requests, names)
        ]
        with self.seen.open("a") as file:
            file.write(json.dumps(batch) + "\\n")
        sevens = np.full((1, 4), 7, np.float32)
        return [pb_utils.InferenceResponse([write("y", sevens), write("after", sevens)]) for _ in requests]
"""
# Asks to be run again with the same request until it has run three times, and answers y then.
AGAIN_CODE = """
import numpy as np
import triton_python_backend_utils as pb_utils
from serve_app.triton.backend.tensors import write

class TritonPythonModel:
    def initialize(self, args):
        self.runs = {}

    def execute(self, requests):
        return [self.run(request) for request in requests]

    def run(self, request):
        key = request.correlation_id()
        self.runs[key] = self.runs.get(key, 0) + 1
        if self.runs[key] < 3:
            request.set_release_flags(pb_utils.TRITONSERVER_REQUEST_RELEASE_RESCHEDULE)
            return None
        return pb_utils.InferenceResponse([write("y", np.full((1, 4), self.runs.pop(key), np.float32))])
"""
ONE = [1.0] * 4
MUST_START = "must specify the START flag on the first request of the sequence"


@pytest.fixture
def seen(shared_folder: Path) -> Callable[[], list[list[dict[str, list[float]]]]]:
    """The batches that TELL_CODE has run."""
    return lambda: [
        json.loads(line) for line in (shared_folder / "models" / "m" / "seen.jsonl").read_text().splitlines()
    ]


def send(client: triton.InferenceServerClient, rows: int = 1, **sequence: Any) -> np.ndarray:
    x = triton.InferInput("x", [rows, 4], "FP32").set_data_from_numpy(np.ones((rows, 4), np.float32))
    answer = client.infer("m", [x], client_timeout=20, **sequence).as_numpy("y")
    assert answer is not None
    return answer


def test_of_two_signals_on_one_tensor_only_the_last_arrives(load, seen) -> None:
    client = load(direct(controls=[START, {**READY, "input": "start", "on": 2}]), TELL_CODE)
    send(client, sequence_id=5, sequence_start=True)
    send(client, sequence_id=5)
    assert seen() == [[{"x": ONE, "start": [2]}], [{"x": ONE, "start": [2]}]]


def test_a_signal_replaces_what_requests_bring_under_its_name(load, seen) -> None:
    client = load(direct(controls=[{**START, "input": "x", "type": "float32"}]), TELL_CODE)
    send(client, sequence_id=5, sequence_start=True)
    send(client, sequence_id=5)
    assert seen() == [[{"x": [1.0]}], [{"x": [0.0]}]]


def test_a_state_hides_a_signal_under_its_name(load, seen) -> None:
    client = load(direct(controls=[START], states=[{**KEPT, "input": "start"}]), TELL_CODE)
    send(client, sequence_id=5, sequence_start=True)
    assert seen() == [[{"x": ONE, "start": [0.0] * 4}]]


def test_the_row_of_a_sequence_that_pauses_runs_too_and_only_ready_tells(load, seen) -> None:
    client = load(direct(controls=[READY]), TELL_CODE)
    for sequence in (1, 2):
        send(client, sequence_id=sequence, sequence_start=True)
    send(client, sequence_id=2)
    assert [[request["ready"] for request in batch] for batch in seen()] == [[[1]], [[0], [1]], [[0], [1]]]


def test_a_state_in_the_python_backend_stays_as_it_was_at_the_start(load, seen) -> None:
    client = load(direct(controls=[], states=[KEPT]), TELL_CODE)
    send(client, sequence_id=5, sequence_start=True)
    send(client, sequence_id=5)
    assert [batch[0]["before"] for batch in seen()] == [[0.0] * 4, [0.0] * 4]


@pytest.mark.parametrize("same_buffer", [True, False])
def test_a_growing_state_on_the_cpu_is_left_out(load, seen, same_buffer: bool) -> None:
    client = load(direct(controls=[], states=[{**KEPT, "growable": True, "same_buffer": same_buffer}]), TELL_CODE)
    send(client, sequence_id=5, sequence_start=True)
    assert seen() == [[{"x": ONE}]]


def test_an_idle_timeout_of_nothing_is_a_second(load) -> None:
    client = load(direct(idle_timeout="0s"), TELL_CODE)
    assert client.get_model_config("m").config.sequence_batching.max_sequence_idle_microseconds == 1_000_000


@pytest.mark.parametrize(
    "patch",
    [
        direct({"queue_delay": "400ms", "minimum_slot_utilization": 1}, idle_timeout="100ms"),
        oldest({"queue_delay": "400ms"}, idle_timeout="100ms"),
    ],
    ids=["direct", "oldest"],
)
def test_a_sequence_that_waits_for_others_longer_than_it_may_idle_is_ended(load, patch) -> None:
    client = load(patch, TELL_CODE)
    send(client, sequence_id=5, sequence_start=True)
    with pytest.raises(InferenceServerException, match=MUST_START):
        send(client, sequence_id=5)


def test_a_batch_holds_no_more_requests_than_there_are_candidates(load, seen) -> None:
    client = load(oldest({"max_candidates": 2, "queue_delay": "300ms"}), TELL_CODE)
    with ThreadPoolExecutor(6) as together:
        requests = [
            together.submit(send, client, sequence_id=sequence, sequence_start=True, sequence_end=True)
            for sequence in range(1, 7)
        ]
        for request in requests:
            request.result()
    assert max(len(batch) for batch in seen()) == 2


@pytest.mark.parametrize("sequence", [5, "five"])
def test_ids_as_text_fail_in_the_python_backend(load, sequence: int | str) -> None:
    client = load(direct(controls=[{"input": "id", "signals": "corrid", "type": "string"}]), TELL_CODE)
    with pytest.raises(InferenceServerException, match="unexpected number of string elements"):
        send(client, sequence_id=sequence, sequence_start=True)


def test_an_id_in_32_bits_looks_like_another(load, seen) -> None:
    client = load(direct(controls=[{"input": "id", "signals": "corrid", "type": "uint32"}]), TELL_CODE)
    for sequence in (7, 2**32 + 7):
        send(client, sequence_id=sequence, sequence_start=True, sequence_end=True)
    assert [batch[0]["id"] for batch in seen()] == [[7], [7]]


def test_a_request_as_stages_send_it_belongs_to_no_sequence(load) -> None:
    client = load(direct(), TELL_CODE)
    with pytest.raises(InferenceServerException, match="must specify a non-zero or non-empty correlation ID"):
        send(client)


def test_a_request_of_a_sequence_brings_one_item(load) -> None:
    client = load(direct(), TELL_CODE)
    with pytest.raises(InferenceServerException, match="must specify batch-size 1"):
        send(client, rows=2, sequence_id=5, sequence_start=True)


def test_an_iterative_sequence_begins_and_ends_within_a_request_as_stages_send_it(load) -> None:
    client = load(model({"direct": {}, "idle_timeout": "10s", "iterative": True}), AGAIN_CODE)
    assert send(client).tolist() == [[3.0] * 4]
    with pytest.raises(InferenceServerException, match=MUST_START):
        send(client, sequence_id=5)
