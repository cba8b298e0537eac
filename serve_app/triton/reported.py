"""What a running Triton says of a model's configuration, against what it was given."""

from __future__ import annotations

from tritonclient.grpc import model_config_pb2 as pb

from serve_app.triton.message_differences import Difference, differences

# Where the configuration has nothing here, Triton fills in what follows from the backend.
_FILLED_IN = ("platform", "runtime", "default_model_filename")
_SEQUENCE_IDLE_MICROSECONDS = 1_000_000


def config_differences(wanted: pb.ModelConfig, reported: pb.ModelConfig) -> list[Difference]:
    """Every field in which a model runs otherwise than it should. What Triton fills in by itself is none."""
    return differences(_completed(wanted, reported), _without_empty(reported))


def _completed(wanted: pb.ModelConfig, reported: pb.ModelConfig) -> pb.ModelConfig:
    """What Triton reports of a model that it was given as `wanted`.

    Measured on 2.51, and written in Triton's core, `src/model_config_utils.cc`: NormalizeModelConfig,
    NormalizeInstanceGroup. What depends on the machine is taken from what is reported.
    """
    whole = _without_empty(wanted)
    for field in _FILLED_IN:
        if not getattr(whole, field):
            setattr(whole, field, getattr(reported, field))
    if whole.HasField("ensemble_scheduling"):
        return whole
    for index, group in enumerate(whole.instance_group):
        group.name = group.name or f"{whole.name}_{index}"
        group.count = max(1, group.count)
        same = reported.instance_group[index] if index < len(reported.instance_group) else group
        if group.kind == pb.ModelInstanceGroup.KIND_AUTO:
            group.kind = same.kind
        if group.kind == pb.ModelInstanceGroup.KIND_GPU and not group.gpus:
            group.gpus.extend(same.gpus)
    if whole.max_batch_size > 0:
        if whole.HasField("dynamic_batching") and not whole.dynamic_batching.preferred_batch_size:
            whole.dynamic_batching.preferred_batch_size.append(whole.max_batch_size)
        oldest = whole.sequence_batching.oldest
        if whole.sequence_batching.HasField("oldest") and not oldest.preferred_batch_size:
            oldest.preferred_batch_size.append(whole.max_batch_size)
    if whole.HasField("sequence_batching") and not whole.sequence_batching.max_sequence_idle_microseconds:
        whole.sequence_batching.max_sequence_idle_microseconds = _SEQUENCE_IDLE_MICROSECONDS
    for memory in ("input_pinned_memory", "output_pinned_memory"):
        if not whole.optimization.HasField(memory):
            getattr(whole.optimization, memory).enable = True
    return whole


def _without_empty(config: pb.ModelConfig) -> pb.ModelConfig:
    """A copy without the parts that say nothing, some of which Triton adds to ensembles."""
    whole = pb.ModelConfig()
    whole.CopyFrom(config)
    for part in ("model_transaction_policy", "response_cache"):
        if not getattr(whole, part).ByteSize():
            whole.ClearField(part)
    return whole
