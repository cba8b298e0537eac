"""When two configurations mean the same to Triton: the defaults that it fills in.

Source of the defaults: `NormalizeModelConfig`, `NormalizeInstanceGroup` and `AutoCompleteBackendFields` in Triton's
core, `src/model_config_utils.cc`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from tritonclient.grpc import model_config_pb2 as pb

from serve_app.spec.model import USUAL_FILES

Device = Literal["cpu", "gpu"]

ENSEMBLE = "ensemble"
TENSORFLOW = "tensorflow"
# What the backend's name says already.
_IMPLIED_PLATFORMS = {"tensorrt": "tensorrt_plan", "onnxruntime": "onnxruntime_onnx", "pytorch": "pytorch_libtorch"}
_TENSORFLOW_FILES = {"tensorflow_savedmodel": "model.savedmodel", "tensorflow_graphdef": "model.graphdef"}
_BACKENDS = {
    **{platform: backend for backend, platform in _IMPLIED_PLATFORMS.items()},
    **dict.fromkeys(_TENSORFLOW_FILES, TENSORFLOW),
}
_SEQUENCE_IDLE_MICROSECONDS = 1_000_000
# Without an instance group, these run on the GPUs that there are. The python backend does too, which is not what a
# spec's default says; others choose for themselves.
_ON_GPU = (*_IMPLIED_PLATFORMS, TENSORFLOW)
_CPU_INSTANCES = {"onnxruntime": 2, TENSORFLOW: 2}
# Empty, these say what their absence says. (`input_pinned_memory {}`, say, does not: it turns the memory off.)
_MEANINGLESS_WHEN_EMPTY = ("model_transaction_policy", "response_cache", "model_metrics", "optimization")


def normalised(config: pb.ModelConfig, device: Device, versions: Sequence[str] = ()) -> pb.ModelConfig:
    """The configuration with what Triton assumes where it says nothing, and without what Triton ignores.

    `versions` are the names of the model's version folders, where they are known.

    - an ensemble is known by its steps, a backend by the platform; a platform that its backend implies is dropped;
      the model's file has the backend's usual name;
    - the latest version is served. Where nobody wrote that and version 1 is the only one, version 1 is: the spec's own
      default, which serves the same until there is another folder. A policy that somebody wrote stays as it is;
    - there is one instance group: on the CPU in a profile without GPUs, on the GPU where Triton puts the backend's
      models there, else of kind auto. The kind of a group that somebody wrote stays as it is;
    - as many instances are in a group as the backend's default, which for ONNX Runtime and TensorFlow is 2 on a CPU;
    - a sequence's slots are assigned directly, and it may idle for a second;
    - levels and policies of levels are dropped where there are no priority levels, and an empty default queue policy;
    - accelerators, cache, transaction policy, metrics and optimization are dropped where they are empty.
    """
    whole = pb.ModelConfig()
    whole.CopyFrom(config)
    _fill_in_backend(whole)
    if not whole.HasField("version_policy"):
        if list(versions) == ["1"]:
            whole.version_policy.specific.versions.append(1)
        else:
            whole.version_policy.latest.num_versions = 1
    if not whole.HasField("ensemble_scheduling"):
        _fill_in_instances(whole, device)
    if whole.HasField("dynamic_batching"):
        _drop_idle_levels(whole.dynamic_batching)
    if whole.HasField("sequence_batching"):
        sequence = whole.sequence_batching
        sequence.max_sequence_idle_microseconds = sequence.max_sequence_idle_microseconds or _SEQUENCE_IDLE_MICROSECONDS
        if sequence.WhichOneof("strategy_choice") is None:
            sequence.direct.SetInParent()
    if not whole.optimization.execution_accelerators.ByteSize() and whole.HasField("optimization"):
        whole.optimization.ClearField("execution_accelerators")
    for field in _MEANINGLESS_WHEN_EMPTY:
        if not getattr(whole, field).ByteSize():
            whole.ClearField(field)
    return whole


def _fill_in_backend(config: pb.ModelConfig) -> None:
    if config.HasField("ensemble_scheduling"):
        config.platform = config.platform or ENSEMBLE
        return
    config.backend = config.backend or _BACKENDS.get(config.platform, "")
    if config.platform == _IMPLIED_PLATFORMS.get(config.backend):
        config.platform = ""
    if config.backend == TENSORFLOW:
        usual = _TENSORFLOW_FILES.get(config.platform, "")
        config.default_model_filename = config.default_model_filename or usual
        if config.default_model_filename == usual:
            config.platform = ""
    elif not config.platform:
        config.default_model_filename = config.default_model_filename or USUAL_FILES.get(config.backend, "")


def _fill_in_instances(config: pb.ModelConfig, device: Device) -> None:
    group_kinds = pb.ModelInstanceGroup
    if not config.instance_group:
        config.instance_group.add(kind=_usual_kind(config.backend, device))
    for group in config.instance_group:
        if group.count < 1:
            on_cpu = group.kind == group_kinds.KIND_CPU or (group.kind == group_kinds.KIND_AUTO and device == "cpu")
            group.count = _CPU_INSTANCES.get(config.backend, 1) if on_cpu else 1


def _usual_kind(backend: str, device: Device) -> pb.ModelInstanceGroup.Kind:
    """Where Triton puts the instances of a model without an instance group."""
    kinds = pb.ModelInstanceGroup
    if device == "cpu":
        return kinds.KIND_CPU
    return kinds.KIND_GPU if backend in _ON_GPU else kinds.KIND_AUTO


def _drop_idle_levels(batching: pb.ModelDynamicBatching) -> None:
    if not batching.priority_levels:
        batching.default_priority_level = 0
        batching.priority_queue_policy.clear()
    if not batching.default_queue_policy.ByteSize():
        batching.ClearField("default_queue_policy")
