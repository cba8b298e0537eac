"""What a running Triton says of a model's configuration, against what it was given."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from google.protobuf import text_format
from tritonclient.grpc import model_config_pb2 as pb

# Where the configuration has nothing here, Triton fills in what follows from the backend.
_FILLED_IN = ("platform", "runtime", "default_model_filename")
_SEQUENCE_IDLE_MICROSECONDS = 1_000_000
_SHOWN = 200


@dataclass(frozen=True)
class Difference:
    """A field of ModelConfig, as `dynamic_batching.max_queue_delay_microseconds`, with both values as text."""

    field: str
    wanted: str
    reported: str


def differences(wanted: pb.ModelConfig, reported: pb.ModelConfig) -> list[Difference]:
    """Every field in which a model runs otherwise than it should. What Triton fills in by itself is none."""
    return list(_differing(_completed(wanted, reported), _without_empty(reported), ""))


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


def _differing(wanted: Any, reported: Any, path: str) -> Iterator[Difference]:
    for field in wanted.DESCRIPTOR.fields:
        name = f"{path}{field.name}"
        want, have = getattr(wanted, field.name), getattr(reported, field.name)
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            for key in sorted({*want, *have}):
                yield from _values(want.get(key), have.get(key), f"{name}[{key!r}]")
        elif field.message_type is not None and field.is_repeated:
            for index in range(max(len(want), len(have))):
                yield from _values(_item(want, index), _item(have, index), f"{name}[{index}]")
        elif field.message_type is not None:
            given = want if wanted.HasField(field.name) else None
            yield from _values(given, have if reported.HasField(field.name) else None, name)
        elif field.is_repeated:
            if list(want) != list(have):
                yield Difference(name, str(list(want)), str(list(have)))
        elif want != have:
            yield Difference(name, _scalar(field, want), _scalar(field, have))


def _item(values: Any, index: int) -> Any:
    return values[index] if index < len(values) else None


def _values(want: Any, have: Any, name: str) -> Iterator[Difference]:
    """Two values of a message's field; None where there is none."""
    if want is not None and have is not None and hasattr(want, "DESCRIPTOR"):
        yield from _differing(want, have, f"{name}.")
    elif want != have:
        yield Difference(name, _shown(want), _shown(have))


def _scalar(field: Any, value: Any) -> str:
    if field.enum_type is not None:
        return str(field.enum_type.values_by_number[value].name)
    return repr(value) if isinstance(value, str) else str(value).lower() if isinstance(value, bool) else str(value)


def _shown(value: Any) -> str:
    if value is None:
        return "nothing"
    if not hasattr(value, "DESCRIPTOR"):
        return repr(value)
    text = text_format.MessageToString(value, as_one_line=True)
    return f"{{{text[:_SHOWN]}{'…' if len(text) > _SHOWN else ''}}}"
