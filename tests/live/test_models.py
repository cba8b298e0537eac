"""Models that each fail in a way of their own, in one real Triton after the other: none hides another."""

from __future__ import annotations

from pathlib import Path

import pytest

from serve_app.live.check import live_faults
from serve_app.project import write_files
from serve_app.spec import load_spec
from tests.live.conftest import ECHO, Checked, make_project, traces

NO_MODULE = "import no_such_module\n" + ECHO
HANGS = (
    ECHO
    + """
    def initialize(self, args):
        import time
        time.sleep(600)
"""
)
BLOCKS = """
import time

class TritonPythonModel:
    def execute(self, requests):
        time.sleep(600)
"""
FAILS = """
class TritonPythonModel:
    def execute(self, requests):
        raise ValueError("no such thing")
"""
# Answers x under the name y, as another type and in another shape.
OTHER = ECHO.replace('read(request, "x")', 'read(request, "x").astype("int32")[:, :2]')
NO_BATCH = ECHO.replace('read(request, "x")', 'read(request, "x")[:1]')
OTHER_NAME = ECHO.replace('write("y"', 'write("z"')
REFUSES = ECHO.replace(
    "return [pb_utils",
    'return [pb_utils.InferenceResponse(error=pb_utils.TritonError("all zeros", pb_utils.TritonError.INVALID_ARG)) '
    "for _ in requests]\n        return [pb_utils",
)
KILLS_TRITON = """
import os
import signal

class TritonPythonModel:
    def execute(self, requests):
        os.kill(os.getppid(), signal.SIGKILL)
"""
STOPS_TRITON = (
    ECHO
    + """
    def initialize(self, args):
        import os
        import signal
        os.kill(os.getppid(), signal.SIGSTOP)
"""
)
# Shrinks the picture by eight, as networks do.
SHRINKS = ECHO.replace(
    'write("y", read(request, "x"))', 'write("y", read(request, "x").reshape(-1, 8, read(request, "x").shape[1] // 8))'
)
# Calls another model and gives its answer.
CALLS = """
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        answers = []
        for request in requests:
            inner = pb_utils.InferenceRequest(
                model_name="good", requested_output_names=["y"], inputs=request.inputs()
            ).exec()
            if inner.has_error():
                raise pb_utils.TritonModelException(inner.error().message())
            answers.append(pb_utils.InferenceResponse(inner.output_tensors()))
        return answers
"""
# Calls a model that the spec does not say it calls, and that is not loaded yet.
ASKS = CALLS.replace('"good"', '"late"')
# As people write models for a Triton that was compiled against the NumPy that they use.
OF_NUMPY = """
import numpy as np
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        return [
            pb_utils.InferenceResponse([pb_utils.Tensor("y", np.zeros(({batch}, 4), np.float32))]) for _ in requests
        ]
""".replace("{batch}", "1")
DECOUPLED = """
import triton_python_backend_utils as pb_utils
from serve_app.triton.backend.tensors import read, write

class TritonPythonModel:
    def execute(self, requests):
        for request in requests:
            sender = request.get_response_sender()
            for size in (4, {last}):
                sender.send(pb_utils.InferenceResponse([write("y", read(request, "x")[:, :size])]))
            sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
"""
CODES = {
    "good": ECHO,
    "no_module": NO_MODULE,
    "hangs": HANGS,
    "blocks": BLOCKS,
    "fails": FAILS,
    "other": OTHER,
    "no_batch": NO_BATCH,
    "other_name": OTHER_NAME,
    "refuses": REFUSES,
    "kills_triton": KILLS_TRITON,
    "stops_triton": STOPS_TRITON,
    "shrinks": SHRINKS,
    "asks": ASKS,
    "of_numpy": OF_NUMPY,
    "calls": CALLS,
    "decoupled": DECOUPLED.format(last=4),
    "other_later": DECOUPLED.format(last=3),
    "of_sequences": ECHO,
    "without_batch": ECHO,
    "large": ECHO,
    "late": ECHO,
}
TENSORS = {"inputs": {"x": "float32[4]"}, "outputs": {"y": "float32[4]"}, "max_batch": 4}


def steps(*models: str) -> list[dict[str, object]]:
    names = ["x", *(f"t{index}" for index in range(1, len(models))), "y"]
    return [
        {"model": model, "takes": {"x": names[index]}, "gives": {"y": names[index + 1]}}
        for index, model in enumerate(models)
    ]


PATCH = {
    # Enough for a model of a few lines, and soon over.
    "service": {"sla": "4s"},
    "profiles": {"embedded": {"triton": {"startup_timeout": "5s", "exit_timeout": "5s"}}},
    "models": {
        "shrinks": {"inputs": {"x": "float32[-1]"}, "outputs": {"y": "float32[8, -1]"}},
        "calls": {"calls": ["good"]},
        "decoupled": {"decoupled": True},
        "other_later": {"decoupled": True},
        "of_sequences": {
            "batching": None,
            "sequence": {"oldest": {"max_candidates": 2}, "idle_timeout": "5s"},
        },
        "without_batch": {"max_batch": 0, "unscheduled": True, "batching": None},
        "large": {"inputs": {"x": f"float32[{2**28 + 1}]"}},
    },
    "ensembles": {
        "twice": {**TENSORS, "steps": steps("good", "good")},
        "with_a_bad_one": {**TENSORS, "steps": steps("good", "no_module")},
        "over_sequences": {**TENSORS, "max_batch": 1, "steps": steps("of_sequences", "good")},
        "around_it": {**TENSORS, "max_batch": 1, "steps": steps("over_sequences")},
        "wide": {**TENSORS, "inputs": {"x": "float32[-1]"}, "steps": steps("good")},
    },
}


@pytest.fixture(scope="module")
def checked(tmp_path_factory: pytest.TempPathFactory) -> Checked:
    before = traces()
    project = make_project(tmp_path_factory.mktemp("live") / "project", CODES, PATCH)
    spec = load_spec(project.spec_file)
    write_files(project, spec)
    faults = live_faults(project, spec, lambda text: None)
    assert traces() <= before
    return Checked(project, faults)


@pytest.mark.parametrize(
    "name",
    [
        "good", "shrinks", "calls", "decoupled", "of_sequences", "without_batch", "late", "twice", "over_sequences",
        "around_it", "wide",
    ],
)  # fmt: skip
def test_a_sound_model_or_ensemble_has_no_finding(checked: Checked, name: str) -> None:
    assert checked.of(name) == []


@pytest.mark.parametrize(
    ("name", "code", "place", "says"),
    [
        ("no_module", "L003", "models.no_module", "ModuleNotFoundError: No module named 'no_such_module'"),
        ("hangs", "L004", "models.hangs", "it was not loaded within 5s"),
        ("stops_triton", "L004", "models.stops_triton", "it was not loaded within 5s"),
        ("blocks", "L008", "models.blocks", "a request with a batch of 1 had no answer within 5s"),
        ("fails", "L006", "models.fails", "no such thing"),
        ("no_batch", "L009", "models.no_batch.outputs.y", "FP32[1, 4], and the spec's FP32[8, 4]"),
        ("other_name", "L009", "models.other_name.outputs.y", "the answer has no y"),
        ("other", "L009", "models.other.outputs.y", "INT32[1, 2], and the spec's FP32[1, 4]"),
        ("other_later", "L009", "models.other_later.outputs.y", "FP32[1, 3], and the spec's FP32[1, 4]"),
        ("asks", "L006", "models.asks.calls", "Model 'late' is not ready"),
        ("of_numpy", "L016", "models.of_numpy.outputs.y", "y is FP32[1, 4], 16 bytes, and comes with 0"),
        ("refuses", "L007", "models.refuses", "all zeros"),
        ("kills_triton", "L010", "models.kills_triton", "Triton was killed by SIGKILL"),
        ("large", "L011", "models.large", "a request has more than 1GiB, which is not sent"),
        ("with_a_bad_one", "L011", "ensembles.with_a_bad_one", "it needs no_module"),
    ],
)
def test_each_failing_model_has_its_own_finding(checked: Checked, name: str, code: str, place: str, says: str) -> None:
    fault = checked.only(name)
    assert (fault.rule.code, ".".join(map(str, fault.place))) == (code, place), fault.what
    assert says in fault.what


def test_who_calls_what_is_not_loaded_is_told_to_name_it(checked: Checked) -> None:
    assert checked.only("asks").remedy == "add late to calls, as what this model's code calls"


def test_a_python_model_whose_bytes_are_not_its_shapes_is_told_what_reads_and_writes_them(checked: Checked) -> None:
    assert "write(name, array) of serve_app.triton.backend.tensors" in checked.only("of_numpy").remedy


def test_no_finding_shows_a_folder_of_the_check(checked: Checked) -> None:
    assert [text for text in checked.show() if "/tmp" in text] == []


def test_the_check_compiles_nothing_into_the_project(checked: Checked) -> None:
    assert list(Path(checked.project.repository).rglob("__pycache__")) == []
