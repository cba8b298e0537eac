"""A model's config.pbtxt: what Triton needs to know, complete, so that it completes nothing by itself."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from google.protobuf import json_format, text_format
from tritonclient.grpc import model_config_pb2 as pb

from serve_app.render.batching import dynamic_batching, sequence_batching
from serve_app.render.data_types import data_type
from serve_app.spec.model import (
    THREADS_PARAMETER,
    USUAL_FILES,
    CudaShape,
    Ensemble,
    Input,
    Instances,
    Model,
    Optimization,
    Output,
    Versions,
    Warmup,
)
from serve_app.spec.part import Unknown
from serve_app.spec.resolved import Resolved
from serve_app.spec.schema import ProfileName, Spec

_MILLISECOND = timedelta(milliseconds=1)


def model_config(spec: Spec, name: str, profile: ProfileName) -> pb.ModelConfig:
    """The configuration of one model or ensemble in one profile, as Triton's own message.

    Unknown where the entry's `triton` is no part of one.
    """
    served = spec.served(name)
    config = _ensemble(name, served) if isinstance(served, Ensemble) else _model(Resolved(spec, name, profile))
    _common(config, served)
    try:
        json_format.ParseDict(served.triton, config)
    except json_format.ParseError:
        raise Unknown from None
    return config


def _common(config: pb.ModelConfig, served: Model | Ensemble) -> None:
    """What models and ensembles have both."""
    config.version_policy.CopyFrom(_version_policy(served.versions))
    config.input.extend(_input(key, entry) for key, entry in served.inputs.items())
    config.output.extend(_output(key, entry) for key, entry in served.outputs.items())
    for key, value in served.parameters.items():
        config.parameters[key].string_value = value
    config.metric_tags.update(served.metric_tags)
    if served.cache:
        config.response_cache.enable = True
    if served.decoupled:
        config.model_transaction_policy.decoupled = True
    for family, histogram in served.metrics.items():
        control = config.model_metrics.metric_control.add()
        control.metric_identifier.family = family
        control.histogram_options.buckets.extend(bound / _MILLISECOND for bound in histogram.buckets)


def _model(found: Resolved) -> pb.ModelConfig:
    model = found.model
    config = pb.ModelConfig(
        name=found.name,
        backend=found.backend,
        default_model_filename=_filename(found),
        max_batch_size=found.max_batch,
        instance_group=[_instance_group(group) for group in found.instances],
        model_warmup=[_warmup(entry, model) for entry in model.warmup],
        batch_input=[
            pb.BatchInput(
                kind=pb.BatchInput.Kind.Value(f"BATCH_{entry.kind.upper()}"),
                target_name=entry.targets,
                data_type=data_type(entry.type),
                source_input=entry.sources,
            )
            for entry in model.batch_inputs
        ],
        batch_output=[
            pb.BatchOutput(
                kind=pb.BatchOutput.Kind.Value(f"BATCH_{entry.kind.upper()}"),
                target_name=entry.targets,
                source_input=entry.sources,
            )
            for entry in model.batch_outputs
        ],
    )
    if found.batching is not None:
        config.dynamic_batching.CopyFrom(dynamic_batching(found))
    elif found.sequence is not None:
        config.sequence_batching.CopyFrom(sequence_batching(found.sequence))
    if model.optimization is not None and not found.has_tandems_code:
        config.optimization.CopyFrom(_optimization(model.optimization))
        if not config.optimization.ByteSize():
            config.ClearField("optimization")
    if found.threads is not None:
        config.parameters[THREADS_PARAMETER].string_value = str(found.threads)
    return config


def _filename(found: Resolved) -> str:
    """The file in the version folder; empty where only the backend knows what it is usually called."""
    given = found.model.file if found.override.file is None else found.override.file
    if given is None and "platform" not in found.model.triton:
        return USUAL_FILES.get(found.backend, "")
    return given or ""


def _ensemble(name: str, ensemble: Ensemble) -> pb.ModelConfig:
    return pb.ModelConfig(
        name=name,
        platform="ensemble",
        max_batch_size=ensemble.max_batch,
        ensemble_scheduling=pb.ModelEnsembling(
            max_inflight_requests=ensemble.max_inflight_requests,
            step=[
                pb.ModelEnsembling.Step(
                    model_name=step.model,
                    model_version=step.version,
                    model_namespace=step.namespace or "",
                    input_map=step.takes,
                    output_map=step.gives,
                )
                for step in ensemble.steps
            ],
        ),
    )


def _version_policy(versions: Versions) -> pb.ModelVersionPolicy:
    if versions.only is not None:
        return pb.ModelVersionPolicy(specific=pb.ModelVersionPolicy.Specific(versions=versions.only))
    if versions.latest is not None:
        return pb.ModelVersionPolicy(latest=pb.ModelVersionPolicy.Latest(num_versions=versions.latest))
    return pb.ModelVersionPolicy(all=pb.ModelVersionPolicy.All())


def _reshape(shape: list[int] | None) -> pb.ModelTensorReshape | None:
    return None if shape is None else pb.ModelTensorReshape(shape=shape)


def _input(name: str, entry: Input) -> pb.ModelInput:
    return pb.ModelInput(
        name=name,
        data_type=data_type(entry.tensor.dtype),
        dims=entry.tensor.dims,
        format=pb.ModelInput.Format.Value(f"FORMAT_{entry.format or 'NONE'}"),
        reshape=_reshape(entry.reshape),
        allow_ragged_batch=entry.ragged,
        optional=entry.optional,
        is_shape_tensor=entry.shape_tensor,
        is_non_linear_format_io=entry.non_linear,
    )


def _output(name: str, entry: Output) -> pb.ModelOutput:
    return pb.ModelOutput(
        name=name,
        data_type=data_type(entry.tensor.dtype),
        dims=entry.tensor.dims,
        label_filename=entry.labels or "",
        reshape=_reshape(entry.reshape),
        is_shape_tensor=entry.shape_tensor,
        is_non_linear_format_io=entry.non_linear,
    )


def _instance_group(group: Instances) -> pb.ModelInstanceGroup:
    message = pb.ModelInstanceGroup(
        name=group.name or "",
        kind=pb.ModelInstanceGroup.Kind.Value(f"KIND_{(group.kind or 'auto').upper()}"),
        count=group.count,
        gpus=group.gpus,
        profile=group.profiles,
        passive=group.passive,
        host_policy=group.host_policy or "",
        secondary_devices=[
            pb.ModelInstanceGroup.SecondaryDevice(kind=pb.ModelInstanceGroup.SecondaryDevice.KIND_NVDLA, device_id=core)
            for core in group.nvdla
        ],
    )
    if group.rate_limiter is not None:
        message.rate_limiter.priority = group.rate_limiter.priority
        for name, resource in group.rate_limiter.resources.items():
            message.rate_limiter.resources.add(
                **{"name": name, "global": resource.all_devices, "count": resource.count}
            )
    return message


def _warmup(entry: Warmup, model: Model) -> pb.ModelWarmup:
    message = pb.ModelWarmup(name=entry.name, batch_size=entry.batch, count=entry.count)
    for name, given in entry.inputs.items():
        if given.tensor is None and name not in model.inputs:
            raise Unknown
        tensor = given.tensor or model.inputs[name].tensor
        source: dict[str, Any] = {f"{given.fill or 'zeros'}".replace("zeros", "zero") + "_data": True}
        if given.file is not None:
            source = {"input_data_file": given.file}
        message.inputs[name].CopyFrom(
            pb.ModelWarmup.Input(data_type=data_type(tensor.dtype), dims=tensor.dims, **source)
        )
    return message


def _optimization(given: Optimization) -> pb.ModelOptimizationPolicy:
    message = pb.ModelOptimizationPolicy(
        priority=pb.ModelOptimizationPolicy.ModelPriority.Value(f"PRIORITY_{given.priority.upper()}"),
        gather_kernel_buffer_threshold=given.gather_kernel_buffer_threshold,
        eager_batching=given.eager_batching,
    )
    if given.graph_level is not None:
        message.graph.level = given.graph_level
    if given.cuda is not None:
        message.cuda.graphs = given.cuda.graphs
        message.cuda.busy_wait_events = given.cuda.busy_wait_events
        message.cuda.output_copy_stream = given.cuda.output_copy_stream
        for graph in given.cuda.graph_specs:
            spec = message.cuda.graph_spec.add()
            _shape(spec, graph)
            if graph.lower_bound is not None:
                _shape(spec.graph_lower_bound, graph.lower_bound)
    for kind in ("gpu", "cpu"):
        for accelerator in getattr(given, f"{kind}_accelerators"):
            getattr(message.execution_accelerators, f"{kind}_execution_accelerator").add(
                name=accelerator.name, parameters=accelerator.parameters
            )
    if given.input_pinned_memory is not None:
        message.input_pinned_memory.enable = given.input_pinned_memory
    if given.output_pinned_memory is not None:
        message.output_pinned_memory.enable = given.output_pinned_memory
    return message


def _shape(message: Any, given: CudaShape) -> None:
    message.batch_size = given.batch
    for name, dims in given.inputs.items():
        message.input[name].dim.extend(dims)


def fields(message: Any) -> Iterator[str]:
    """The full names of the fields that are set in a message, as `ModelEnsembling.max_inflight_requests`."""
    for field, value in message.ListFields():
        yield field.full_name.removeprefix("inference.")
        if field.message_type is None:
            continue
        entry = field.message_type.GetOptions().map_entry
        for each in value.values() if entry else value if field.is_repeated else [value]:
            if hasattr(each, "ListFields"):
                yield from fields(each)


def render_model_config(spec: Spec, name: str, profile: ProfileName, header: str) -> str:
    """The text of config.pbtxt, the same for the same spec."""
    return header + str(text_format.MessageToString(model_config(spec, name, profile)))


def render_onnx_code(header: str) -> str:
    """The model.py of an ONNX model in the python backend: the shared module does all the work."""
    return (
        header
        + 'from serve_app.triton.backend.onnx_model import TritonPythonModel\n\n__all__ = ["TritonPythonModel"]\n'
    )
