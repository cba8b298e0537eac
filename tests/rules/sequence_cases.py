"""Sequence batching: its strategy, its times, its tensors, and who can call a model that has it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.rules.case import GONE, MINIMAL, Case

CONTROL = "models.m.sequence.controls.0"
STATE = "models.m.sequence.states.0"
START = {"input": "start", "signals": "start", "type": "int32", "off": 0, "on": 1}
READY = {"input": "ready", "signals": "ready", "type": "int32", "off": 0, "on": 1}
ZERO = {"name": "zero", "tensor": "float32[4]"}
KEPT = {"input": "before", "output": "after", "tensor": "float32[4]", "initial": [ZERO]}
STAGE = {
    "code": "tests.rules.stages:Echo",
    "models": ["m"],
    "replicas": {
        "cpus": 0.1,
        "memory": "128MiB",
        "max_ongoing_requests": 8,
        "max_queued_requests": 8,
        "autoscaling": {"min_replicas": 1, "max_replicas": 2, "target_ongoing_requests": 4},
    },
}


def model(sequence: Mapping[str, Any] | None, **changes: Any) -> dict[str, Any]:
    """A patch of the model m, which has sequences instead of batching."""
    whole = {"direct": {}, "idle_timeout": "10s", "controls": [READY]} if sequence is None else dict(sequence)
    return {"models": {"m": {"batching": GONE, "sequence": whole, **changes}}}


def direct(strategy: Mapping[str, Any] | None = None, **changes: Any) -> dict[str, Any]:
    return model({"direct": strategy or {}, "idle_timeout": "10s", "controls": [READY], **changes})


def oldest(strategy: Mapping[str, Any], **changes: Any) -> dict[str, Any]:
    return model({"oldest": {"max_candidates": 8, **strategy}, "idle_timeout": "10s", **changes})


def control(**changes: Any) -> dict[str, Any]:
    return direct(controls=[{**START, **changes}])


def identity(**changes: Any) -> dict[str, Any]:
    return direct(controls=[{"input": "id", "signals": "corrid", "type": "uint64", **changes}])


def state(**changes: Any) -> dict[str, Any]:
    return direct(controls=[], states=[{**KEPT, **changes}])


def of_states(code: str, name: str, states: list[Any], place: str, says: str = "", *, refused: str) -> Case:
    """A case of the states of a model of its own.

    Triton 2.51 may crash when it loads a model whose states it has refused before, so the others must not share it.
    """
    sequences = direct(controls=[], states=states)["models"]["m"]
    entry = {**MINIMAL["models"]["m"], **sequences}
    del entry["batching"]
    return Case(
        code, {"models": {name: entry}}, f"models.{name}.sequence.states.{place}", says, refused=refused, model=name
    )


BOTH = """
name: "m" backend: "python" max_batch_size: 8
input {name: "x" data_type: TYPE_FP32 dims: 4} output {name: "y" data_type: TYPE_FP32 dims: 4}
sequence_batching {direct {} oldest {max_candidate_sequences: 8}}
"""
MANY = "sequence batching specifies multiple CONTROL_SEQUENCE_START tensors for m"

CASES = {
    "sequences by no strategy": Case(
        "T201", model({"idle_timeout": "10s"}), "models.m.sequence", "neither", loads=True
    ),
    "sequences by both strategies": Case(
        "T201",
        direct(oldest={"max_candidates": 8}),
        "models.m.sequence",
        "both",
        refused="failed to read text proto",
        config=BOTH,
    ),
    "a preferred size of sequences above max batch": Case(
        "T202",
        oldest({"preferred_sizes": [4, 16]}),
        "models.m.sequence.oldest.preferred_sizes",
        "preferred size 16 is larger than max_batch, 8",
        refused="sequence batching preferred batch size must be <= max batch size for m",
    ),
    "a preferred size of sequences above the max batch of one profile": Case(
        "T202",
        {
            "models": {
                "m": {
                    **oldest({})["models"]["m"],
                    "profiles": {"embedded": {"max_batch": 4, "preferred_sizes": [8]}},
                }
            }
        },
        "models.m.profiles.embedded.preferred_sizes",
        "larger than max_batch, 4",
        refused="sequence batching preferred batch size must be <= max batch size for m",
    ),
    "a preferred size of sequences of nothing": Case(
        "T202",
        oldest({"preferred_sizes": [0]}),
        "models.m.sequence.oldest.preferred_sizes",
        refused="sequence batching preferred batch size must be positive for m",
    ),
    "a slot utilization above all slots": Case(
        "T203",
        direct({"queue_delay": "1ms", "minimum_slot_utilization": 1.5}),
        "models.m.sequence.direct.minimum_slot_utilization",
        refused="sequence batching minimum slot utilization must be in range (0.0, 1.0] for m",
    ),
    "a slot utilization without a delay": Case(
        "T204",
        direct({"minimum_slot_utilization": 0.5}),
        "models.m.sequence.direct.minimum_slot_utilization",
        loads=True,
    ),
    "a delay without a slot utilization": Case(
        "T205", direct({"queue_delay": "1ms"}), "models.m.sequence.direct.queue_delay", loads=True
    ),
    "fewer candidate sequences than a batch has places": Case(
        "T207",
        oldest({"max_candidates": 4}),
        "models.m.sequence.oldest.max_candidates",
        "works on 4 sequences at a time, and a batch has 8 places",
        loads=True,
    ),
    "direct sequences without a signal of which are ready": Case(
        "T208", direct(controls=[]), "models.m.sequence.controls", loads=True
    ),
    "no idle timeout": Case(
        "T209", direct(idle_timeout="0s"), "models.m.sequence.idle_timeout", "Triton takes it for 1s", loads=True
    ),
    "an idle timeout shorter than the sla": Case(
        "T210",
        direct(idle_timeout="7s"),
        "models.m.sequence.idle_timeout",
        "idle_timeout is 7s and the SLA 8s",
        loads=True,
    ),
    "a queue delay of the oldest not shorter than the idle timeout": Case(
        "T211", oldest({"queue_delay": "10s"}), "models.m.sequence.oldest.queue_delay", loads=True
    ),
    "a queue delay of direct sequences not shorter than the idle timeout": Case(
        "T211",
        direct({"queue_delay": "10s", "minimum_slot_utilization": 1}),
        "models.m.sequence.direct.queue_delay",
        loads=True,
    ),
    "a queue delay of sequences longer than the latency budget": Case(
        "T212",
        oldest({"queue_delay": "101ms"}),
        "models.m.sequence.oldest.queue_delay",
        "the delay is 101ms and the budget 100ms",
        loads=True,
    ),
    "iterative sequences of an onnx model": Case(
        "T213",
        model({"direct": {}, "idle_timeout": "10s", "iterative": True}, backend="onnx"),
        "models.m.sequence.iterative",
    ),
    # What Triton answers such a stage: tests/triton/test_traps_of_sequences.py.
    "a stage that uses a model with sequences": Case(
        "T214", {**direct(), "stages": {"echo": STAGE}}, "stages.echo.models", "m has sequences"
    ),
    "a stage that uses an ensemble of a model with sequences": Case(
        "T214",
        {
            **direct(),
            "ensembles": {
                "e": {
                    "inputs": {"x": "float32[4]"},
                    "outputs": {"y": "float32[4]"},
                    "max_batch": 1,
                    "steps": [{"model": "m", "takes": {"x": "x"}, "gives": {"y": "y"}}],
                }
            },
            "stages": {"echo": {**STAGE, "models": ["e"]}},
        },
        "stages.echo.models",
        "e has sequences in its step m",
    ),
    "two tensors for one signal": Case(
        "T220",
        direct(controls=[READY, START, {**START, "input": "begin"}]),
        "models.m.sequence.controls.2.signals",
        "start signals start already",
        refused=MANY,
    ),
    "one tensor that signals the same twice": Case(
        "T220", direct(controls=[START, START]), "models.m.sequence.controls.1.signals", refused=MANY
    ),
    "one tensor for two signals": Case(
        "T221",
        direct(controls=[START, {**READY, "input": "start"}]),
        "models.m.sequence.controls.1.input",
        "start signals start already",
        loads=True,
    ),
    "one tensor for two signals that are apart": Case(
        "T221",
        direct(controls=[START, READY, {**READY, "input": "start", "signals": "end"}]),
        "models.m.sequence.controls.2.input",
        refused="sequence batching control tensor 'start' is specified for multiple control kinds for m",
    ),
    "a state under the name of a signal": Case(
        "T221",
        direct(controls=[START], states=[{**KEPT, "input": "start"}]),
        f"{STATE}.input",
        "the state hides it",
        loads=True,
    ),
    "a signal under the name of an input": Case(
        "T222", control(input="x", type="float32"), f"{CONTROL}.input", "x is an input of m", loads=True
    ),
    "a state under the name of an input": Case("T222", state(input="x"), f"{STATE}.input", loads=True),
    "a signal under the name of an output": Case(
        "T158", control(input="y"), f"{CONTROL}.input", "y is an output of m too", loads=True
    ),
    "a state under the name of an output": Case(
        "T158", state(input="y"), f"{STATE}.input", "y is an output of m too", loads=True
    ),
    "a state of one name": Case(
        "T158", state(input="after"), f"{STATE}.input", "after is a state's output of m too", loads=True
    ),
    "a state that is given under the name of an input": Case(
        "T158", state(output="x"), f"{STATE}.output", "x is an input of m too", loads=True
    ),
    "values of a flag for the id": Case(
        "T223",
        identity(type="int32", off=0, on=1),
        f"{CONTROL}.on",
        refused="sequence batching must not specify either 'int32_false_true'",
    ),
    "an id of a type for none": Case(
        "T224",
        identity(type="float32"),
        f"{CONTROL}.type",
        refused="unexpected data type for control CONTROL_SEQUENCE_CORRID for m",
    ),
    "a flag without values": Case(
        "T225",
        control(off=None, on=None),
        CONTROL,
        "off and on of start is missing",
        refused="sequence batching must specify either 'int32_false_true', 'fp32_false_true' or 'bool_false_true'",
    ),
    "a flag without one of its values": Case("T225", control(off=None), CONTROL, "off of start is missing"),
    "a flag of a type for none": Case(
        "T226",
        control(type="int64"),
        f"{CONTROL}.type",
        "int64 is no flag's type",
        refused="sequence batching must specify either 'int32_false_true', 'fp32_false_true' or 'bool_false_true'",
    ),
    "a flag's value above its type": Case("T227", control(on=3000000000), f"{CONTROL}.on", "3e+09 is no int32"),
    "a flag's value between those of its type": Case("T227", control(on=0.5), f"{CONTROL}.on", "0.5 is no int32"),
    "a boolean flag's value that is neither": Case("T227", control(type="bool", on=2), f"{CONTROL}.on"),
    "a flag whose values are the same": Case("T228", control(off=1), CONTROL, "both 1", loads=True),
    "an id in 32 bits": Case("T229", identity(type="int32"), f"{CONTROL}.type", "cut to int32", loads=True),
    "an id as text in the python backend": Case("T230", identity(type="string"), f"{CONTROL}.type", loads=True),
    "two states with one input": of_states(
        "T231",
        "one_input",
        [KEPT, {**KEPT, "output": "later"}],
        "1.input",
        refused="State input name 'before' specified more than once",
    ),
    "two states with one input, without initial values": Case(
        "T231",
        direct(controls=[START], states=[{**KEPT, "initial": []}, {**KEPT, "output": "later", "initial": []}]),
        "models.m.sequence.states.1.input",
        loads=True,
    ),
    "two states with one output": Case(
        "T231",
        direct(states=[KEPT, {**KEPT, "input": "earlier"}]),
        "models.m.sequence.states.1.output",
        loads=True,
    ),
    "a state and an output of one name that differ": Case(
        "T232",
        state(output="y", tensor="float32[5]", initial=[]),
        f"{STATE}.tensor",
        "the state is float32[5] and the output float32[4]",
    ),
    "a state without an initial value": Case(
        "T233", state(initial=[]), STATE, "before has no initial value", loads=True
    ),
    "two initial values": of_states(
        "T234",
        "two_values",
        [{**KEPT, "initial": [ZERO, ZERO]}],
        "0.initial",
        refused="must contain exactly one or zero element",
    ),
    "an initial value of another type": of_states(
        "T234",
        "other_type",
        [{**KEPT, "initial": [{**ZERO, "tensor": "int32[4]"}]}],
        "0.initial.0.tensor",
        "the initial value is int32[4] and the state float32[4]",
        refused="does not match the state data type",
    ),
    "an initial value with more dimensions": of_states(
        "T234",
        "more_dimensions",
        [{**KEPT, "initial": [{**ZERO, "tensor": "float32[4, 1]"}]}],
        "0.initial.0.tensor",
        refused="Number of dimensions in 'initial_state' doesn't match",
    ),
    "an initial value of other dimensions": of_states(
        "T234",
        "other_dimensions",
        [{**KEPT, "initial": [{**ZERO, "tensor": "float32[5]"}]}],
        "0.initial.0.tensor",
        refused="doesn't match 'state' dim description. 5 != 4",
    ),
    "an initial value with a dimension that varies": of_states(
        "T234",
        "varying_dimension",
        [{**KEPT, "tensor": "float32[-1]", "initial": [{**ZERO, "tensor": "float32[-1]"}]}],
        "0.initial.0.tensor",
        "a dimension of float32[-1] varies",
        refused="'initial_state' field for state input name 'before' contains variable dimensions",
    ),
    "a growing state on a cpu": Case(
        "T235",
        state(growable=True, same_buffer=True),
        f"{STATE}.growable",
        "its instances do not all run on a GPU",
        loads=True,
    ),
    "a growing state in two buffers": Case(
        "T235", state(growable=True), f"{STATE}.growable", "it has not one buffer", loads=True
    ),
    "a state in the python backend": Case("T236", state(), "models.m.sequence.states", loads=True),
    "signals of an onnx model in the python backend": Case(
        "T237", model(None, backend="onnx", weights={"prepare": "tests.rules.stages:Echo"}), "models.m.sequence"
    ),
}
