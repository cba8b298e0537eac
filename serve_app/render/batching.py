"""The scheduler's part of a config.pbtxt."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from tritonclient.grpc import model_config_pb2 as pb

from serve_app.render.data_types import data_type
from serve_app.spec.batching import Control, DirectSequences, OldestSequences, QueuePolicy, Sequence, State
from serve_app.spec.resolved import Resolved
from serve_app.spec.units import microseconds

# Of the level below all tiers: what goes there is accepted, expires at once, and is never executed.
WAKE_UP_POLICY = pb.ModelQueuePolicy(default_timeout_microseconds=1, allow_timeout_override=True)
_FLAG_VALUES = {"int32": "int32_false_true", "float32": "fp32_false_true", "bool": "bool_false_true"}


def dynamic_batching(found: Resolved) -> pb.ModelDynamicBatching:
    """Batching, priorities, and queues that refuse what they cannot serve in time.

    Under `priorities: tiers`, the level below all tiers is for wake-up requests. By it `importing/tiers.py` knows such
    a configuration.
    """
    batching = found.batching
    assert batching is not None
    message = pb.ModelDynamicBatching(
        preferred_batch_size=found.preferred_sizes,
        max_queue_delay_microseconds=microseconds(found.queue_delay),
        preserve_ordering=batching.preserve_ordering,
        default_queue_policy=_queue_policy(found.default_queue),
        priority_queue_policy={level: _queue_policy(policy) for level, policy in found.level_queues.items()},
    )
    if not message.default_queue_policy.ByteSize():
        message.ClearField("default_queue_policy")
    if batching.priorities.use == "levels":
        message.priority_levels = batching.priorities.levels or 0
        message.default_priority_level = batching.priorities.default or 0
    elif found.by_tiers:
        spec = found.spec
        message.priority_levels = spec.wake_up_level
        message.default_priority_level = spec.tiers[spec.default_tier].priority
        message.priority_queue_policy[spec.wake_up_level].CopyFrom(WAKE_UP_POLICY)
    return message


def _queue_policy(policy: QueuePolicy) -> pb.ModelQueuePolicy:
    return pb.ModelQueuePolicy(
        timeout_action=pb.ModelQueuePolicy.TimeoutAction.Value((policy.on_timeout or "reject").upper()),
        default_timeout_microseconds=microseconds(policy.timeout or timedelta()),
        allow_timeout_override=bool(policy.allow_override),
        max_queue_size=policy.size or 0,
    )


def sequence_batching(sequence: Sequence) -> pb.ModelSequenceBatching:
    message = pb.ModelSequenceBatching(
        max_sequence_idle_microseconds=microseconds(sequence.idle_timeout),
        state=[_state(state) for state in sequence.states],
        iterative_sequence=sequence.iterative,
    )
    for control in sequence.controls:
        if not message.control_input or message.control_input[-1].name != control.input:
            message.control_input.add(name=control.input)
        message.control_input[-1].control.append(_control(control))
    if sequence.direct is not None:
        message.direct.CopyFrom(_direct(sequence.direct))
    if sequence.oldest is not None:
        message.oldest.CopyFrom(_oldest(sequence.oldest))
    return message


def _direct(given: DirectSequences) -> pb.ModelSequenceBatching.StrategyDirect:
    return pb.ModelSequenceBatching.StrategyDirect(
        max_queue_delay_microseconds=microseconds(given.queue_delay or timedelta()),
        minimum_slot_utilization=given.minimum_slot_utilization,
    )


def _oldest(given: OldestSequences) -> pb.ModelSequenceBatching.StrategyOldest:
    return pb.ModelSequenceBatching.StrategyOldest(
        max_candidate_sequences=given.max_candidates,
        preferred_batch_size=given.preferred_sizes,
        max_queue_delay_microseconds=microseconds(given.queue_delay or timedelta()),
        preserve_ordering=given.preserve_ordering,
    )


def _control(given: Control) -> pb.ModelSequenceBatching.Control:
    message = pb.ModelSequenceBatching.Control(
        kind=pb.ModelSequenceBatching.Control.Kind.Value(f"CONTROL_SEQUENCE_{given.signals.upper()}")
    )
    if given.off is None and given.on is None:
        message.data_type = data_type(given.type)
    elif (values := _FLAG_VALUES.get(given.type)) is not None:
        whole: Any = {"int32": int, "float32": float, "bool": bool}[given.type]
        getattr(message, values).extend([whole(given.off or 0), whole(given.on or 0)])
    return message


def _state(given: State) -> pb.ModelSequenceBatching.State:
    return pb.ModelSequenceBatching.State(
        input_name=given.input,
        output_name=given.output,
        data_type=data_type(given.tensor.dtype),
        dims=given.tensor.dims,
        use_same_buffer_for_input_output=given.same_buffer,
        use_growable_memory=given.growable,
        initial_state=[
            pb.ModelSequenceBatching.InitialState(
                name=initial.name,
                data_type=data_type(initial.tensor.dtype),
                dims=initial.tensor.dims,
                **({"zero_data": True} if initial.file is None else {"data_file": initial.file}),
            )
            for initial in given.initial
        ],
    )
