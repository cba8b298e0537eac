"""Triton's model over ONNX Runtime: serves the `model.onnx` beside the `model.py` that imports it.

    from serve_app.triton.backend.onnx_model import TritonPythonModel

Triton itself brings an ONNX Runtime backend in its container only. The parameter `intra_op_threads` of the model's
configuration sets the threads of one inference (default 1).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import onnxruntime
import triton_python_backend_utils as pb_utils
from onnxruntime.capi import onnxruntime_pybind11_state as ort

from serve_app.triton.backend.batching import Array, Feed, run_requests
from serve_app.triton.backend.tensors import read, write

# What ONNX Runtime raises where an input does not suit the graph; its exceptions share no base class.
_FAILURES = (
    ort.EPFail,
    ort.Fail,
    ort.InvalidArgument,
    ort.NotImplemented,
    ort.RuntimeException,
    MemoryError,
    RuntimeError,
    ValueError,
)
_TYPES = {
    "tensor(bool)": "TYPE_BOOL",
    "tensor(uint8)": "TYPE_UINT8",
    "tensor(uint16)": "TYPE_UINT16",
    "tensor(uint32)": "TYPE_UINT32",
    "tensor(uint64)": "TYPE_UINT64",
    "tensor(int8)": "TYPE_INT8",
    "tensor(int16)": "TYPE_INT16",
    "tensor(int32)": "TYPE_INT32",
    "tensor(int64)": "TYPE_INT64",
    "tensor(float16)": "TYPE_FP16",
    "tensor(float)": "TYPE_FP32",
    "tensor(double)": "TYPE_FP64",
}
_PATH = re.compile(r"\S*(?:/[\w.+-]+){2,}(?::\d+)?")
_ERROR_LENGTH = 400


class TritonPythonModel:
    """One instance of a model, in a process of its own."""

    def initialize(self, args: dict[str, str]) -> None:
        """Load the graph. Raises ValueError where it does not have the tensors that the configuration promises."""
        config = json.loads(args["model_config"])
        self._batches = int(config["max_batch_size"]) > 0
        self._inputs = [tensor["name"] for tensor in config["input"]]
        self._outputs = [tensor["name"] for tensor in config["output"]]
        self._session = _load(Path(args["model_repository"]) / args["model_version"] / "model.onnx", config)
        faults = mismatches(config, self._session.get_inputs(), self._session.get_outputs())
        if faults:
            raise ValueError(f"model.onnx does not fit the configuration of {config['name']}: " + "; ".join(faults))

    def execute(self, requests: Sequence[Any]) -> list[Any]:
        """Answer each request by itself, whatever happens to the others of its batch. Cancelled ones are not run."""
        live = [request for request in requests if not request.is_cancelled()]
        feeds = [{name: read(request, name) for name in self._inputs} for request in live]
        if self._batches:
            results = run_requests(self._run, feeds, _FAILURES)
        else:
            results = [self._run_alone(feed) for feed in feeds]
        answers = iter(results)
        return [
            self._response(next(answers)) if request in live else _error("the request was cancelled", "CANCELLED")
            for request in requests
        ]

    def finalize(self) -> None:
        del self._session

    def _run(self, feed: Feed) -> list[Array]:
        outputs: list[Array] = self._session.run(self._outputs, feed)
        return outputs

    def _run_alone(self, feed: Feed) -> list[Array] | Exception:
        try:
            return self._run(feed)
        except _FAILURES as error:
            return error

    def _response(self, result: list[Array] | Exception) -> Any:
        if isinstance(result, Exception):
            kind = "INVALID_ARG" if isinstance(result, ort.InvalidArgument) else "INTERNAL"
            return _error(f"the model cannot be run on this input: {_without_paths(str(result))}", kind)
        return pb_utils.InferenceResponse(
            [write(name, output) for name, output in zip(self._outputs, result, strict=True)]
        )


def mismatches(config: Mapping[str, Any], inputs: Sequence[Any], outputs: Sequence[Any]) -> list[str]:
    """How the inputs and outputs of a graph differ from those of a model configuration (Triton's JSON)."""
    batches = int(config["max_batch_size"])
    faults = []
    for kind, wanted, nodes in (("input", config["input"], inputs), ("output", config["output"], outputs)):
        graph = {node.name: node for node in nodes}
        for tensor in wanted:
            node = graph.get(tensor["name"])
            if node is None:
                faults.append(f"it has no {kind} {tensor['name']!r}, only {', '.join(map(repr, graph))}")
                continue
            if _TYPES.get(node.type) != tensor["data_type"]:
                faults.append(f"{kind} {node.name!r} is a {node.type}, not {tensor['data_type']}")
            dims = [-1] * (batches > 0) + [int(size) for size in tensor["dims"]]
            if not _fits(node.shape, dims):
                faults.append(f"{kind} {node.name!r} has the shape {node.shape}, not {dims}")
            elif batches > 1 and isinstance(node.shape[0], int):
                faults.append(f"{kind} {node.name!r} has a batch dimension of {node.shape[0]}: export it as dynamic")
        if kind == "input":
            names = {tensor["name"] for tensor in wanted}
            faults += [f"the configuration lacks its input {name!r}" for name in graph if name not in names]
    return faults


def _fits(shape: Sequence[Any], dims: Sequence[int]) -> bool:
    """Whether ONNX's shape (an int where fixed) allows these dims; what either leaves open is met at run time."""
    return len(shape) == len(dims) and all(
        not isinstance(have, int) or want in (-1, have) for have, want in zip(shape, dims, strict=True)
    )


def _load(path: Path, config: Mapping[str, Any]) -> onnxruntime.InferenceSession:
    parameters = config.get("parameters", {})
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = int(parameters.get("intra_op_threads", {}).get("string_value", "1"))
    options.inter_op_num_threads = 1
    # Idle threads that spin take the cores from the other models and from the stages.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.log_severity_level = 4  # what a request does wrong is said in its answer
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def _error(text: str, kind: str) -> Any:
    return pb_utils.InferenceResponse(error=pb_utils.TritonError(text, getattr(pb_utils.TritonError, kind)))


def _without_paths(text: str) -> str:
    return " ".join(_PATH.sub("…", text).split())[:_ERROR_LENGTH]
