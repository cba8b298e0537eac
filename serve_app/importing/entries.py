"""A model's or an ensemble's configuration in the spec's words: the way back of `render/triton.py`.

An entry holds only what differs from the spec's defaults, in the short forms that a person would write.
"""

from __future__ import annotations

from typing import Any

from google.protobuf import json_format
from tritonclient.grpc import model_config_pb2 as pb

from serve_app.importing.equivalence import Device
from serve_app.importing.error import NotExpressible
from serve_app.importing.scheduling import batching_entry, duration, sequence_entry
from serve_app.importing.tensors import dtype, tensor
from serve_app.importing.tiers import Tiers
from serve_app.spec.model import RARE_FIELDS, USUAL_FILES
from serve_app.spec.resolved import usual_kind


def ensemble_entry(config: pb.ModelConfig) -> dict[str, Any]:
    """The entry under `ensembles`. `config` is normalised (`equivalence.normalised`)."""
    entry = _tensors(config)
    entry["steps"] = [
        {
            "model": step.model_name,
            **({"version": step.model_version} if step.model_version != -1 else {}),
            **({"namespace": step.model_namespace} if step.model_namespace else {}),
            "takes": dict(sorted(step.input_map.items())),
            "gives": dict(sorted(step.output_map.items())),
        }
        for step in config.ensemble_scheduling.step
    ]
    if config.ensemble_scheduling.max_inflight_requests:
        entry["max_inflight_requests"] = config.ensemble_scheduling.max_inflight_requests
    return {**entry, **_common(config)}


def model_entry(config: pb.ModelConfig, device: Device, tiers: Tiers | None) -> dict[str, Any]:
    """The entry under `models`, in a profile of that device. `config` is normalised and has its tensors.

    `tiers`: those of the spec, where they are known.
    """
    entry: dict[str, Any] = {"backend": config.backend}
    if config.default_model_filename not in ("", USUAL_FILES.get(config.backend)):
        entry["file"] = config.default_model_filename
    entry.update(_tensors(config))
    if config.HasField("dynamic_batching"):
        entry["batching"] = batching_entry(config.dynamic_batching, tiers)
    elif config.HasField("sequence_batching"):
        entry["sequence"] = sequence_entry(config.sequence_batching)
    else:
        entry["unscheduled"] = True
    groups = [_instances(group, usual_kind(config.backend, device)) for group in config.instance_group]
    if groups != [1]:
        entry["instances"] = groups[0] if len(groups) == 1 else groups
    if config.batch_input:
        entry["batch_inputs"] = [
            {
                "kind": pb.BatchInput.Kind.Name(given.kind).removeprefix("BATCH_").lower(),
                "targets": list(given.target_name),
                "type": dtype(given.data_type, f"batch input {', '.join(given.target_name)}"),
                "sources": list(given.source_input),
            }
            for given in config.batch_input
        ]
    if config.batch_output:
        entry["batch_outputs"] = [
            {"targets": list(given.target_name), "sources": list(given.source_input)} for given in config.batch_output
        ]
    if config.model_warmup:
        entry["warmup"] = [_warmup(given, entry["inputs"]) for given in config.model_warmup]
    if config.HasField("optimization"):
        entry["optimization"] = _optimization(config.optimization)
    return {**entry, **_common(config)}


def _tensors(config: pb.ModelConfig) -> dict[str, Any]:
    return {
        "inputs": {given.name: _short(_input(given), "tensor") for given in config.input},
        "outputs": {given.name: _short(_output(given), "tensor") for given in config.output},
        "max_batch": config.max_batch_size,
    }


def _short(entry: dict[str, Any], key: str) -> Any:
    """The entry, or the value of `key` where there is nothing else in it."""
    return entry[key] if list(entry) == [key] else entry


def _input(given: pb.ModelInput) -> dict[str, Any]:
    entry: dict[str, Any] = {"tensor": tensor(given, f"input {given.name}")}
    if given.format:
        entry["format"] = pb.ModelInput.Format.Name(given.format).removeprefix("FORMAT_")
    return {
        **entry,
        **_reshape(given),
        **_true(given, ragged="allow_ragged_batch", optional="optional"),
        **_true(given, shape_tensor="is_shape_tensor", non_linear="is_non_linear_format_io"),
    }


def _output(given: pb.ModelOutput) -> dict[str, Any]:
    entry: dict[str, Any] = {"tensor": tensor(given, f"output {given.name}"), **_reshape(given)}
    if given.label_filename:
        entry["labels"] = given.label_filename
    return {**entry, **_true(given, shape_tensor="is_shape_tensor", non_linear="is_non_linear_format_io")}


def _reshape(given: Any) -> dict[str, Any]:
    return {"reshape": list(given.reshape.shape)} if given.HasField("reshape") else {}


def _true(message: Any, **fields: str) -> dict[str, bool]:
    """The flags that are on, by their name in the spec."""
    return {name: True for name, field in fields.items() if getattr(message, field)}


def _instances(group: pb.ModelInstanceGroup, usual: str) -> Any:
    kind = pb.ModelInstanceGroup.Kind.Name(group.kind).removeprefix("KIND_").lower()
    entry: dict[str, Any] = {"count": group.count} if group.count != 1 else {}
    if kind != usual:
        entry["kind"] = kind
    for name, field in {"gpus": "gpus", "profiles": "profile"}.items():
        if getattr(group, field):
            entry[name] = list(getattr(group, field))
    for field in ("name", "host_policy"):
        if getattr(group, field):
            entry[field] = getattr(group, field)
    if group.HasField("rate_limiter"):
        entry["rate_limiter"] = _rate_limiter(group.rate_limiter)
    if group.passive:
        entry["passive"] = True
    if group.secondary_devices:
        entry["nvdla"] = [device.device_id for device in group.secondary_devices]
    return _short(entry, "count") if entry else 1


def _rate_limiter(given: pb.ModelRateLimiter) -> dict[str, Any]:
    entry: dict[str, Any] = {}
    if given.resources:
        entry["resources"] = {
            resource.name: {"count": resource.count, "all_devices": True}
            if getattr(resource, "global")
            else resource.count
            for resource in given.resources
        }
    if given.priority:
        entry["priority"] = given.priority
    return entry


def _warmup(given: pb.ModelWarmup, inputs: dict[str, Any]) -> dict[str, Any]:
    entry: dict[str, Any] = {"name": given.name}
    if given.batch_size != 1:
        entry["batch"] = given.batch_size
    if given.count:
        entry["count"] = given.count
    entry["inputs"] = {name: _warmup_input(name, source, inputs) for name, source in sorted(given.inputs.items())}
    return entry


def _warmup_input(name: str, source: pb.ModelWarmup.Input, inputs: dict[str, Any]) -> dict[str, Any]:
    entry: dict[str, Any] = {"fill": "random" if source.random_data else "zeros"}
    if source.WhichOneof("input_data_type") == "input_data_file":
        entry = {"file": source.input_data_file}
    shape = tensor(source, f"warm-up input {name}")
    known = inputs.get(name)
    if shape != (known["tensor"] if isinstance(known, dict) else known):
        entry["tensor"] = shape
    return entry


def _optimization(given: pb.ModelOptimizationPolicy) -> dict[str, Any]:
    entry: dict[str, Any] = {}
    if given.HasField("graph"):
        entry["graph_level"] = given.graph.level
    if given.priority:
        entry["priority"] = (
            pb.ModelOptimizationPolicy.ModelPriority.Name(given.priority).removeprefix("PRIORITY_").lower()
        )
    if given.HasField("cuda"):
        flags = _true(
            given.cuda, graphs="graphs", busy_wait_events="busy_wait_events", output_copy_stream="output_copy_stream"
        )
        entry["cuda"] = dict(flags)
        if given.cuda.graph_spec:
            entry["cuda"]["graph_specs"] = [_cuda_graph(graph) for graph in given.cuda.graph_spec]
    for kind in ("gpu", "cpu"):
        if accelerators := getattr(given.execution_accelerators, f"{kind}_execution_accelerator"):
            entry[f"{kind}_accelerators"] = [_accelerator(each) for each in accelerators]
    for field in ("input_pinned_memory", "output_pinned_memory"):
        if given.HasField(field):
            entry[field] = getattr(given, field).enable
    if given.gather_kernel_buffer_threshold:
        entry["gather_kernel_buffer_threshold"] = given.gather_kernel_buffer_threshold
    if given.eager_batching:
        entry["eager_batching"] = True
    return entry


def _accelerator(given: Any) -> Any:
    entry: dict[str, Any] = {"name": given.name}
    if given.parameters:
        entry["parameters"] = dict(sorted(given.parameters.items()))
    return _short(entry, "name")


def _cuda_graph(given: Any) -> dict[str, Any]:
    entry = _cuda_shape(given)
    if given.HasField("graph_lower_bound"):
        entry["lower_bound"] = _cuda_shape(given.graph_lower_bound)
    return entry


def _cuda_shape(given: Any) -> dict[str, Any]:
    entry: dict[str, Any] = {"batch": given.batch_size}
    if given.input:
        entry["inputs"] = {name: list(shape.dim) for name, shape in sorted(given.input.items())}
    return entry


def _common(config: pb.ModelConfig) -> dict[str, Any]:
    """What models and ensembles have both, besides tensors."""
    # Triton answers any client for any model.
    entry: dict[str, Any] = {"exposed": True}
    if config.response_cache.enable:
        entry["cache"] = True
    if config.model_transaction_policy.decoupled:
        entry["decoupled"] = True
    if (versions := _versions(config.version_policy)) != {"only": [1]}:
        entry["versions"] = versions
    if config.parameters:
        entry["parameters"] = {name: value.string_value for name, value in sorted(config.parameters.items())}
    if config.metric_tags:
        entry["metric_tags"] = dict(sorted(config.metric_tags.items()))
    if config.model_metrics.metric_control:
        entry["metrics"] = {
            control.metric_identifier.family: {
                "buckets": [_bucket(bound) for bound in control.histogram_options.buckets]
            }
            for control in config.model_metrics.metric_control
        }
    if rare := _rare(config):
        entry["triton"] = rare
    return entry


def _bucket(milliseconds: float) -> str:
    """NotExpressible for what is no duration, or finer than one can be."""
    exact = round(milliseconds * 1000) if 0 <= milliseconds < 10**12 else -1
    if exact / 1000 != milliseconds:
        raise NotExpressible(
            f"a histogram has a bucket of {milliseconds:g} ms, which is no whole number of microseconds"
        )
    return duration(exact)


def _versions(policy: pb.ModelVersionPolicy) -> dict[str, Any]:
    if policy.HasField("specific"):
        return {"only": list(policy.specific.versions)}
    if policy.HasField("latest"):
        return {"latest": policy.latest.num_versions}
    return {"all": True}


def _rare(config: pb.ModelConfig) -> dict[str, Any]:
    """The fields that the spec has no words for, as Triton's own."""
    kept = pb.ModelConfig()
    kept.CopyFrom(config)
    for field in config.DESCRIPTOR.fields:
        if field.name not in RARE_FIELDS:
            kept.ClearField(field.name)
    if config.HasField("ensemble_scheduling"):
        kept.ClearField("platform")
    written: dict[str, Any] = json_format.MessageToDict(kept, preserving_proto_field_name=True)
    return written
