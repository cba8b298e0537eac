"""What Triton completes by itself, from a model's files, where its configuration leaves it out.

Source: `AutoCompleteBackendFields` in Triton's core, `src/model_config_utils.cc`, and `AutoCompleteConfig` in the ONNX
Runtime backend, `src/onnxruntime.cc`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnx
from tritonclient.grpc import model_config_pb2 as pb

from serve_app.importing.equivalence import TENSORFLOW, Device, normalised
from serve_app.importing.error import NotExpressible
from serve_app.importing.repository import Found, versions
from serve_app.spec.model import USUAL_FILES
from serve_app.weights.onnx_file import NotOnnx, read_graph

ONNXRUNTIME = "onnxruntime"
_DEFAULT_MAX_BATCH = 4
# Triton looks for them in this order.
_BY_FILE = {
    "model.savedmodel": TENSORFLOW,
    "model.graphdef": TENSORFLOW,
    **{USUAL_FILES[backend]: backend for backend in ("tensorrt", ONNXRUNTIME, "openvino", "pytorch", "python")},
}
_BY_GRAPH = "Tensors, and max_batch and batching where none were given, are what Triton completes from the ONNX file."
_ELEMENTS = {
    onnx.TensorProto.BOOL: pb.TYPE_BOOL,
    onnx.TensorProto.UINT8: pb.TYPE_UINT8,
    onnx.TensorProto.UINT16: pb.TYPE_UINT16,
    onnx.TensorProto.UINT32: pb.TYPE_UINT32,
    onnx.TensorProto.UINT64: pb.TYPE_UINT64,
    onnx.TensorProto.INT8: pb.TYPE_INT8,
    onnx.TensorProto.INT16: pb.TYPE_INT16,
    onnx.TensorProto.INT32: pb.TYPE_INT32,
    onnx.TensorProto.INT64: pb.TYPE_INT64,
    onnx.TensorProto.FLOAT16: pb.TYPE_FP16,
    onnx.TensorProto.FLOAT: pb.TYPE_FP32,
    onnx.TensorProto.DOUBLE: pb.TYPE_FP64,
    onnx.TensorProto.BFLOAT16: pb.TYPE_BF16,
    onnx.TensorProto.STRING: pb.TYPE_STRING,
}


@dataclass(frozen=True)
class Completed:
    """A model's configuration as Triton would have it, named as its folder.

    `gaps` says why it cannot be known in full, `notes` what a reader would not expect.
    """

    config: pb.ModelConfig
    gaps: tuple[str, ...]
    notes: tuple[str, ...] = ()


def completed(found: Found, device: Device) -> Completed:
    given = pb.ModelConfig()
    if found.config is not None:
        given.CopyFrom(found.config)
    given.name = found.name
    _backend_by_files(given, found.folder)
    config = normalised(given, device, _versions(given, found.folder))
    if config.HasField("ensemble_scheduling"):
        return Completed(config, tuple(_no_tensors(config, "an ensemble's are never completed; write them down")))
    if not config.backend:
        named = f"Triton knows no platform {config.platform!r}" if config.platform else "it names no backend"
        return Completed(config, (f"{named}, and no file tells which it is; name the backend",))
    if config.backend == ONNXRUNTIME and not (config.output and (config.input or config.batch_input)):
        try:
            _complete_by_graph(config, found.folder)
        except NotExpressible as gap:
            return Completed(config, (str(gap),))
        return Completed(config, (), (_BY_GRAPH, *_notes(given, config)))
    advice = f"the {config.backend} backend completes them when it loads the model; write down what it then reports"
    return Completed(config, tuple(_no_tensors(config, advice)), tuple(_notes(given, config)))


def _versions(config: pb.ModelConfig, folder: Path) -> list[str]:
    """The version folders; an ensemble's, which holds nothing, is rendered where it is missing."""
    return versions(folder) or (["1"] if config.HasField("ensemble_scheduling") else [])


def _notes(given: pb.ModelConfig, config: pb.ModelConfig) -> Iterator[str]:
    unsaid = [group.count < 1 for group in given.instance_group] or [True]
    if any(none and group.count > 1 for none, group in zip(unsaid, config.instance_group, strict=True)):
        yield f"Triton makes two instances on a CPU where none are counted, for {config.backend}."


def _no_tensors(config: pb.ModelConfig, advice: str) -> Iterator[str]:
    missing = [f"{kind}s" for kind in ("input", "output") if not getattr(config, kind)]
    if missing:
        yield f"it names no {' and no '.join(missing)}: {advice}"


def _backend_by_files(config: pb.ModelConfig, folder: Path) -> None:
    """Triton's guess where neither backend nor platform is given: from the model's file, or its name."""
    if config.platform or config.HasField("ensemble_scheduling") or config.backend not in ("", TENSORFLOW):
        return
    present = {entry.name for entry in (folder / versions(folder)[0]).iterdir()} if versions(folder) else set()
    named = config.default_model_filename
    for file, backend in _BY_FILE.items():
        if named == file or (not named and file in present):
            config.backend = config.backend or backend
            config.default_model_filename = file
            return
    if not config.backend and not named and "." in folder.name:
        config.backend = folder.name.partition(".")[2]
        config.default_model_filename = f"model.{config.backend}"


def _complete_by_graph(config: pb.ModelConfig, folder: Path) -> None:
    """Tensors from the ONNX graph; and a batch of 4 with dynamic batching where its tensors' batch varies."""
    numbers = versions(folder)
    path = folder / (numbers[0] if numbers else "1") / config.default_model_filename
    path = path / USUAL_FILES[ONNXRUNTIME] if os.path.isdir(path) else path
    shown = path.relative_to(folder.parent)
    try:
        graph = read_graph(path)
    except FileNotFoundError:
        raise NotExpressible(f"it names no tensors, and {shown}, which does, is not there") from None
    except (NotOnnx, OSError) as broken:
        reason = broken.strerror if isinstance(broken, OSError) else broken
        raise NotExpressible(
            f"it names no tensors, and {shown}, which does, is no ONNX model that can be read ({reason})"
        ) from None
    constants = {constant.name for constant in graph.initializer}
    inputs = [value for value in graph.input if value.name not in constants]
    batches = all(_dims(value)[:1] == [-1] for value in (*inputs, *graph.output))
    if batches:
        config.max_batch_size = config.max_batch_size or _DEFAULT_MAX_BATCH
        if config.max_batch_size > 1 and config.WhichOneof("scheduling_choice") is None:
            config.dynamic_batching.SetInParent()
    elif config.max_batch_size:
        raise NotExpressible(f"max_batch_size is {config.max_batch_size}, and the batch of {shown} is fixed")
    if not config.input:
        _add(config.input, inputs, config.max_batch_size > 0)
    if not config.output:
        _add(config.output, graph.output, config.max_batch_size > 0)


def _dims(value: Any) -> list[int]:
    return [dim.dim_value if dim.HasField("dim_value") else -1 for dim in value.type.tensor_type.shape.dim]


def _add(tensors: Any, values: Iterable[Any], batched: bool) -> None:
    for value in values:
        element = value.type.tensor_type.elem_type
        if element not in _ELEMENTS:
            raise NotExpressible(f"tensor {value.name} of the graph is of a type that Triton does not have")
        dims = _dims(value)[1:] if batched else _dims(value)
        tensor = tensors.add(name=value.name, data_type=_ELEMENTS[element], dims=dims or [1])
        if not dims and batched:
            tensor.reshape.SetInParent()
