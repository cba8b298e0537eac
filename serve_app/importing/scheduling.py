"""Triton's schedulers in the spec's words: the way back of `render/batching.py`."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import numpy as np
from tritonclient.grpc import model_config_pb2 as pb

from serve_app.importing.tensors import dtype, tensor
from serve_app.importing.tiers import Tiers, rendered_tiers
from serve_app.spec.resolved import QUEUE_SIZE
from serve_app.spec.units import show_duration

_FLAGS = {"int32_false_true": "int32", "fp32_false_true": "float32", "bool_false_true": "bool"}
_NO_LIMITS = pb.ModelQueuePolicy()
# What a spec assumes under `priorities: tiers`, beside a timeout that follows from the SLA.
_BY_TIERS = pb.ModelQueuePolicy(allow_timeout_override=True, max_queue_size=QUEUE_SIZE)


def duration(microseconds: int) -> str:
    return show_duration(timedelta(microseconds=microseconds))


def single(number: float) -> float:
    """The shortest decimal number that is this 32-bit float."""
    return float(np.format_float_positional(np.float32(number)))


def batching_entry(config: pb.ModelDynamicBatching, tiers: Tiers | None = None) -> dict[str, Any]:
    """`batching` of a model. Every value that would follow from tiers or budgets otherwise is written out.

    `tiers` are those of the spec: a model that was rendered with them is by tiers again.
    """
    entry: dict[str, Any] = {"queue_delay": duration(config.max_queue_delay_microseconds)}
    if config.preferred_batch_size:
        entry["preferred_sizes"] = list(config.preferred_batch_size)
    if config.preserve_ordering:
        entry["preserve_ordering"] = True
    if tiers is not None and rendered_tiers(config) == tiers:
        return {**entry, **_by_tiers(config, tiers.names)}
    if config.priority_levels:
        entry["priorities"] = {"levels": config.priority_levels}
        if config.default_priority_level:
            entry["priorities"]["default"] = config.default_priority_level
    else:
        entry["priorities"] = "none"
    default = config.default_queue_policy
    if queue := _policy(default, _NO_LIMITS):
        entry["queue"] = queue
    if config.priority_queue_policy:
        policies = sorted(config.priority_queue_policy.items())
        entry["queues"] = {str(level): _policy(policy, default) for level, policy in policies}
    return entry


def _by_tiers(config: pb.ModelDynamicBatching, names: dict[int, str]) -> dict[str, Any]:
    """The queues of a model by tiers, which are called by the tiers' names; the wake-up level is rendered anew."""
    default = config.default_queue_policy
    timeout = duration(default.default_timeout_microseconds)
    entry: dict[str, Any] = {"queue": {"timeout": timeout, **_policy(default, _BY_TIERS)}}
    policies = sorted(config.priority_queue_policy.items())
    if queues := {names[level]: _policy(policy, default) for level, policy in policies if level in names}:
        entry["queues"] = queues
    return entry


def _policy(policy: pb.ModelQueuePolicy, default: pb.ModelQueuePolicy) -> dict[str, Any]:
    """What a policy has other than the default."""
    entry: dict[str, Any] = {}
    if policy.default_timeout_microseconds != default.default_timeout_microseconds:
        entry["timeout"] = duration(policy.default_timeout_microseconds)
    if policy.timeout_action != default.timeout_action:
        entry["on_timeout"] = pb.ModelQueuePolicy.TimeoutAction.Name(policy.timeout_action).lower()
    if policy.allow_timeout_override != default.allow_timeout_override:
        entry["allow_override"] = policy.allow_timeout_override
    if policy.max_queue_size != default.max_queue_size:
        entry["size"] = policy.max_queue_size
    return entry


def sequence_entry(config: pb.ModelSequenceBatching) -> dict[str, Any]:
    """`sequence` of a model."""
    entry: dict[str, Any] = {}
    if config.HasField("oldest"):
        entry["oldest"] = _oldest(config.oldest)
    else:
        entry["direct"] = _direct(config.direct)
    entry["idle_timeout"] = duration(config.max_sequence_idle_microseconds)
    if controls := [_control(given.name, control) for given in config.control_input for control in given.control]:
        entry["controls"] = controls
    if config.state:
        entry["states"] = [_state(state) for state in config.state]
    if config.iterative_sequence:
        entry["iterative"] = True
    return entry


def _direct(config: pb.ModelSequenceBatching.StrategyDirect) -> dict[str, Any]:
    entry: dict[str, Any] = {}
    if config.max_queue_delay_microseconds:
        entry["queue_delay"] = duration(config.max_queue_delay_microseconds)
    if config.minimum_slot_utilization:
        entry["minimum_slot_utilization"] = single(config.minimum_slot_utilization)
    return entry


def _oldest(config: pb.ModelSequenceBatching.StrategyOldest) -> dict[str, Any]:
    entry: dict[str, Any] = {"max_candidates": config.max_candidate_sequences}
    if config.preferred_batch_size:
        entry["preferred_sizes"] = list(config.preferred_batch_size)
    if config.max_queue_delay_microseconds:
        entry["queue_delay"] = duration(config.max_queue_delay_microseconds)
    if config.preserve_ordering:
        entry["preserve_ordering"] = True
    return entry


def _control(name: str, config: pb.ModelSequenceBatching.Control) -> dict[str, Any]:
    kind = pb.ModelSequenceBatching.Control.Kind.Name(config.kind).removeprefix("CONTROL_SEQUENCE_").lower()
    entry: dict[str, Any] = {"input": name, "signals": kind}
    flag = next((field for field in _FLAGS if len(getattr(config, field)) == 2), None)
    if flag is None:
        return {**entry, "type": dtype(config.data_type, f"control {name}")}
    values = getattr(config, flag)
    off, on = (single(value) for value in values) if flag == "fp32_false_true" else (int(value) for value in values)
    return {**entry, "type": _FLAGS[flag], "off": off, "on": on}


def _state(config: pb.ModelSequenceBatching.State) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "input": config.input_name,
        "output": config.output_name,
        "tensor": tensor(config, f"state {config.input_name}"),
    }
    if config.initial_state:
        entry["initial"] = [
            {"name": initial.name, "tensor": tensor(initial, f"initial state {initial.name}"), **_file(initial)}
            for initial in config.initial_state
        ]
    if config.use_same_buffer_for_input_output:
        entry["same_buffer"] = True
    if config.use_growable_memory:
        entry["growable"] = True
    return entry


def _file(initial: pb.ModelSequenceBatching.InitialState) -> dict[str, str]:
    return {"file": initial.data_file} if initial.WhichOneof("state_data") == "data_file" else {}
