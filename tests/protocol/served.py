"""The models that the protocol's tests serve, as a spec, and the folder that a real Triton runs them from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from serve_app.render.triton import render_model_config
from serve_app.spec import Spec
from tests.rules.case import patched

TYPES = {
    "bool": "BOOL",
    "uint8": "UINT8",
    "uint16": "UINT16",
    "uint32": "UINT32",
    "uint64": "UINT64",
    "int8": "INT8",
    "int16": "INT16",
    "int32": "INT32",
    "int64": "INT64",
    "float16": "FP16",
    "float32": "FP32",
    "float64": "FP64",
    "bfloat16": "BF16",
}
LABELS = ["cat", "dog", "a bird"]

_MODELS: dict[str, Any] = {
    "add": {
        "inputs": {"INPUT_A": "float32[1]", "INPUT_B": "float32[1]"},
        "outputs": {"OUTPUT_SUM": "float32[1]"},
        "max_batch": 4,
        "latency_budget": "100ms",
        "batching": {"queue_delay": "0s"},
        "exposed": True,
    },
    "hidden": {
        "inputs": {"INPUT_A": "float32[1]", "INPUT_B": "float32[1]"},
        "outputs": {"OUTPUT_SUM": "float32[1]"},
        "max_batch": 4,
        "latency_budget": "100ms",
        "batching": {"queue_delay": "0s"},
    },
    "every": {
        "inputs": {f"X_{wire}": {"tensor": f"{name}[-1, -1]", "optional": True} for name, wire in TYPES.items()},
        "outputs": {f"Y_{wire}": f"{name}[-1, -1]" for name, wire in TYPES.items()},
        "max_batch": 0,
        "unscheduled": True,
        "exposed": True,
    },
    "text": {
        "inputs": {"lines": "string[-1]"},
        "outputs": {"lines": "string[-1]"},
        "max_batch": 4,
        "unscheduled": True,
        "exposed": True,
    },
    "scores": {
        "inputs": {"x": "float32[3]"},
        "outputs": {"y": {"tensor": "float32[3]", "labels": "labels.txt"}},
        "max_batch": 4,
        "unscheduled": True,
        "exposed": True,
    },
    "repeat": {
        "inputs": {"times": "int32[1]"},
        "outputs": {"turn": "int32[1]"},
        "max_batch": 0,
        "unscheduled": True,
        "decoupled": True,
        "exposed": True,
    },
    "tally": {
        "inputs": {"x": "int32[1]"},
        "outputs": {"sum": "int32[1]"},
        "max_batch": 1,
        "sequence": {
            "oldest": {"max_candidates": 4},
            "idle_timeout": "5s",
            "controls": [
                {"input": "START", "signals": "start", "type": "int32", "off": 0, "on": 1},
                {"input": "SEQUENCE", "signals": "corrid", "type": "uint64"},
            ],
        },
        "exposed": True,
    },
    "gate": {
        "inputs": {"x": "float32[1]"},
        "outputs": {"y": "float32[1]"},
        "max_batch": 1,
        "latency_budget": "100ms",
        "batching": {"queue_delay": "0s", "queue": {"size": 2}},
        "exposed": True,
    },
    "breaks": {
        "inputs": {"x": "float32[1]"},
        "outputs": {"y": "float32[1]"},
        "max_batch": 0,
        "unscheduled": True,
        "exposed": True,
    },
}
_ENSEMBLES: dict[str, Any] = {
    "double": {
        "inputs": {"A": "float32[1]", "B": "float32[1]"},
        "outputs": {"TWICE": "float32[1]"},
        "max_batch": 4,
        "steps": [
            {"model": "add", "takes": {"INPUT_A": "A", "INPUT_B": "B"}, "gives": {"OUTPUT_SUM": "sum"}},
            {"model": "add", "takes": {"INPUT_A": "sum", "INPUT_B": "sum"}, "gives": {"OUTPUT_SUM": "TWICE"}},
        ],
        "exposed": True,
    }
}

_HEAD = """
import pathlib
import time
import numpy as np
import triton_python_backend_utils as pb_utils
from serve_app.triton.backend.tensors import read, write

GATE = pathlib.Path("{gate}")


class TritonPythonModel:
    def execute(self, requests):
"""
_EACH = "        return [pb_utils.InferenceResponse({outputs}) for request in requests]\n"
_ADD = _EACH.format(outputs="[write('OUTPUT_SUM', read(request, 'INPUT_A') + read(request, 'INPUT_B'))]")
# Hands every tensor back as it is, without a look at its elements: NumPy has no BF16.
_ECHO = _EACH.format(
    outputs="[pb_utils.Tensor.from_dlpack('Y' + tensor.name()[1:], tensor) for tensor in request.inputs()]"
)
_CODES = {
    "add": _ADD,
    "hidden": _ADD,
    "every": _ECHO,
    "scores": _EACH.format(outputs="[write('y', read(request, 'x') * 1)]"),
    "repeat": """
        for request in requests:
            sender = request.get_response_sender()
            for turn in range(int(read(request, 'times')[0])):
                sender.send(pb_utils.InferenceResponse([write('turn', np.array([turn], np.int32))]))
            sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
""",
    "tally": """
        answers = []
        for request in requests:
            sequence = int(read(request, 'SEQUENCE')[0, 0])
            before = 0 if read(request, 'START')[0, 0] else self.sums[sequence]
            self.sums[sequence] = before + int(read(request, 'x')[0, 0])
            answers.append(pb_utils.InferenceResponse([write('sum', np.array([[self.sums[sequence]]], np.int32))]))
        return answers

    def initialize(self, arguments):
        self.sums = {}
""",
    "gate": """
        (GATE / "entered").touch()
        while (GATE / "shut").exists():
            time.sleep(0.005)
        return [pb_utils.InferenceResponse([write('y', read(request, 'x') * 1)]) for request in requests]
""",
    "breaks": """
        raise ValueError("cannot open /srv/tandem/secret.bin, tandem-12-34-region, nor connect to 127.0.0.1:8123")
""",
}

SPEC = Spec.model_validate(
    patched({"ensembles": _ENSEMBLES})
    | {"models": {name: {"backend": "python", **entry} for name, entry in _MODELS.items()}}
)
# A python backend on NumPy 2 dies of strings, so that the model of text is for the codec alone.
NAMES = [name for name in [*_MODELS, *_ENSEMBLES] if name != "text"]


def write_repository(folder: Path, gate: Path) -> None:
    """The model repository in `folder`; `gate` holds up the model of that name while it has a file `shut`."""
    for name in NAMES:
        version = folder / name / "1"
        version.mkdir(parents=True)
        (folder / name / "config.pbtxt").write_text(render_model_config(SPEC, name, "embedded", ""))
        if name in _CODES:
            (version / "model.py").write_text(_HEAD.format(gate=gate) + _CODES[name])
        else:
            (version / ".gitkeep").touch()
    (folder / "scores" / "labels.txt").write_text("\n".join(LABELS), encoding="utf-8")
