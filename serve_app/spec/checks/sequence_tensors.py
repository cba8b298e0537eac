"""The tensors that Triton adds to the requests of a sequence: signals for the model, and its state."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

from serve_app.spec.batching import Control, State
from serve_app.spec.checks.registry import of_each_model, of_each_model_in_each_profile
from serve_app.spec.findings import Faults, Place, error, warning
from serve_app.spec.model import PYTHON, Model
from serve_app.spec.part import UNKNOWN, Part
from serve_app.spec.resolved import Resolved
from serve_app.spec.schema import Spec
from serve_app.spec.tensors import Tensor
from serve_app.spec.versions import older

_FLAGS = ("int32", "float32", "bool")
_IDS = ("uint64", "int64", "uint32", "int32", "string")
# Measured; which later one is the first to have the fix of core's pull request 339 is not known.
_PADS_IDS = "2.51.0"

SAME_SIGNAL = error(
    "T220", "A signal that two controls carry", "Triton refuses to load the model", "remove one of the two"
)
SAME_TENSOR = error(
    "T221", "A tensor for two signals", "only one of them reaches the model, or Triton refuses to load it",
    "give each signal a tensor of its own",
)  # fmt: skip
HIDDEN_INPUT = error(
    "T222", "A tensor of Triton's under the name of an input",
    "requests have to bring it, and Triton replaces what they bring", "remove the input, or rename one of the two",
)  # fmt: skip
SAME_AS_OUTPUT = error(
    "T158", "A tensor of Triton's for the model under the name of another of its tensors",
    "one name stands for two tensors, which no graph can have and whoever reads code or logs mixes up",
    "name them apart",
)  # fmt: skip
ID_WITH_VALUES = error(
    "T223", "Values of a flag for the sequence's id", "Triton refuses to load the model", "remove off and on"
)
ID_TYPE = error(
    "T224", "A type that cannot hold a sequence's id", "Triton refuses to load the model",
    f"write one of {', '.join(_IDS)}",
)  # fmt: skip
FLAG_VALUES = error(
    "T225", "A flag without its two values", "Triton refuses to load the model", "give off and on, as off: 0 and on: 1"
)
FLAG_TYPE = error(
    "T226", "A type that no flag can have", "Triton refuses to load the model", f"write one of {', '.join(_FLAGS)}"
)
FLAG_RANGE = error(
    "T227", "A value that the flag's type cannot hold", "the model would see another", "write a value of that type"
)
SAME_VALUES = error(
    "T228", "A flag whose two values are the same", "the model cannot tell one from the other", "write two values"
)
NARROW_ID = warning(
    "T229", "Sequence ids in 32 bits", "clients' ids have 64, and two sequences can look like one to the model",
    "write uint64",
)  # fmt: skip
PADDED_ID = error(
    "T230", "Sequence ids as text in the python backend",
    "this Triton pads them to 128 bytes, and every request fails", "write uint64, and give sequences numbers",
)  # fmt: skip
SAME_STATE = error(
    "T231",
    "Two states with one tensor",
    "Triton leaves one of them out, or refuses to load the model",
    "give each state tensors of its own",
)
OTHER_OUTPUT = error(
    "T232", "A state and an output of one name that differ", "one tensor of the model cannot be both",
    "write the same type and dimensions",
)  # fmt: skip
NO_INITIAL = warning(
    "T233", "A state without an initial value",
    "at the start of a sequence it is whatever the memory held, and no control tells the model that it starts",
    "add initial, or a control that signals start",
)  # fmt: skip
INITIAL = error(
    "T234", "An initial value that a state cannot have", "Triton refuses to load the model, or crashes over it",
    "write one of the state's type and dimensions",
)  # fmt: skip
GROWABLE = error(
    "T235", "A growing state that cannot grow", "Triton leaves the state out, and the model runs without it",
    "write same_buffer: true, and let all its instances run on a GPU; or leave growable out",
)  # fmt: skip
STATE_IN_PYTHON = error(
    "T236", "A state in the python backend", "nothing writes it: each request finds it as it was at the start",
    "keep it in the model's own code, by the id that corrid signals",
)  # fmt: skip
ONNX_IN_PYTHON = error(
    "T237", "Signals or states of an ONNX model in the python backend",
    "Tandem's code there gives the graph its inputs only, and does not load a graph that wants more",
    "run it with onnx: onnxruntime, or with code of your own",
)  # fmt: skip

_Part = TypeVar("_Part", bound=Part)


def _whole(parts: Sequence[_Part]) -> Iterator[tuple[int, _Part]]:
    """Those of which everything is known."""
    for index, part in enumerate(parts):
        if part is not UNKNOWN and not any(value is UNKNOWN for _, value in part):
            yield index, part


def _controls(name: str, model: Model) -> Iterator[tuple[Place, Control]]:
    for index, control in _whole(model.sequence.controls if model.sequence else []):
        yield ("models", name, "sequence", "controls", index), control


def _states(name: str, model: Model) -> Iterator[tuple[Place, State]]:
    for index, state in _whole(model.sequence.states if model.sequence else []):
        yield ("models", name, "sequence", "states", index), state


@of_each_model
def one_tensor_for_each_signal(spec: Spec, name: str, model: Model) -> Faults:
    by_signal: dict[str, str] = {}
    by_tensor: dict[str, str] = {}
    for place, control in _controls(name, model):
        if control.signals in by_signal:
            yield SAME_SIGNAL.at((*place, "signals"), f"{by_signal[control.signals]} signals {control.signals} already")
        elif control.input in by_tensor:
            yield SAME_TENSOR.at((*place, "input"), f"{control.input} signals {by_tensor[control.input]} already")
        by_signal.setdefault(control.signals, control.input)
        by_tensor.setdefault(control.input, control.signals)


@of_each_model
def hidden_input(spec: Spec, name: str, model: Model) -> Faults:
    signals: set[str] = set()
    for place, control in _controls(name, model):
        signals.add(control.input)
        if control.input in model.inputs:
            yield HIDDEN_INPUT.at((*place, "input"), f"{control.input} is an input of {name}")
    for place, state in _states(name, model):
        if state.input in model.inputs:
            yield HIDDEN_INPUT.at((*place, "input"), f"{state.input} is an input of {name}")
        if state.input in signals:
            yield SAME_TENSOR.at((*place, "input"), f"{state.input} is a control's tensor, and the state hides it")


@of_each_model
def same_as_output(spec: Spec, name: str, model: Model) -> Faults:
    states = list(_states(name, model))
    outputs = dict.fromkeys(model.outputs, "an output") | {state.output: "a state's output" for _, state in states}
    tensors = [(place, control.input) for place, control in _controls(name, model)]
    for place, tensor in [*tensors, *((place, state.input) for place, state in states)]:
        if tensor in outputs:
            yield SAME_AS_OUTPUT.at((*place, "input"), f"{tensor} is {outputs[tensor]} of {name} too")
    for place, state in states:
        if state.output in model.inputs:
            yield SAME_AS_OUTPUT.at((*place, "output"), f"{state.output} is an input of {name} too")


@of_each_model
def ids(spec: Spec, name: str, model: Model) -> Faults:
    for place, control in _controls(name, model):
        if control.signals != "corrid":
            continue
        for key, value in (("off", control.off), ("on", control.on)):
            if value is not None:
                yield ID_WITH_VALUES.at((*place, key), f"corrid has no value {key}")
        if control.type not in _IDS:
            yield ID_TYPE.at((*place, "type"), f"{control.type} holds no id")
        elif control.type in ("uint32", "int32"):
            yield NARROW_ID.at((*place, "type"), f"the id is cut to {control.type}")


@of_each_model
def flags(spec: Spec, name: str, model: Model) -> Faults:
    for place, control in _controls(name, model):
        if control.signals == "corrid":
            continue
        if control.type not in _FLAGS:
            yield FLAG_TYPE.at((*place, "type"), f"{control.type} is no flag's type")
        elif control.off is None or control.on is None:
            missing = [key for key, value in (("off", control.off), ("on", control.on)) if value is None]
            yield FLAG_VALUES.at(place, f"{' and '.join(missing)} of {control.input} is missing")
        else:
            for key, value in (("off", control.off), ("on", control.on)):
                if not _holds(control.type, value):
                    yield FLAG_RANGE.at((*place, key), f"{value:g} is no {control.type}")
            if control.off == control.on:
                yield SAME_VALUES.at(place, f"off and on of {control.input} are both {control.on:g}")


def _holds(dtype: str, value: float) -> bool:
    if dtype == "float32":
        return abs(value) < 2.0**128
    return value in (0, 1) if dtype == "bool" else value == int(value) and -(2**31) <= value < 2**31


@of_each_model_in_each_profile
def padded_id(found: Resolved) -> Faults:
    version = found.spec.profiles[found.profile].triton.version
    for place, control in _controls(found.name, found.model):
        text = control.signals == "corrid" and control.type == "string"
        if text and found.backend == PYTHON and not older(_PADS_IDS, version):
            yield PADDED_ID.at((*place, "type"), f"{control.input} is text, in profile {found.profile}")


@of_each_model
def same_state(spec: Spec, name: str, model: Model) -> Faults:
    inputs: set[str] = set()
    outputs: set[str] = set()
    for place, state in _states(name, model):
        if state.input in inputs:
            yield SAME_STATE.at((*place, "input"), f"{state.input} is another state's too")
        if state.output in outputs:
            yield SAME_STATE.at((*place, "output"), f"{state.output} is another state's too")
        inputs.add(state.input)
        outputs.add(state.output)


@of_each_model
def other_output(spec: Spec, name: str, model: Model) -> Faults:
    for place, state in _states(name, model):
        output = model.outputs.get(state.output)
        if output is not None and output.tensor != state.tensor:
            yield OTHER_OUTPUT.at((*place, "tensor"), f"the state is {state.tensor} and the output {output.tensor}")


@of_each_model
def no_initial(spec: Spec, name: str, model: Model) -> Faults:
    starts = any(control.signals == "start" for _, control in _controls(name, model))
    for place, state in _states(name, model):
        if not state.initial and not starts:
            yield NO_INITIAL.at(place, f"{state.input} has no initial value")


@of_each_model
def initial(spec: Spec, name: str, model: Model) -> Faults:
    for place, state in _states(name, model):
        if len(state.initial) > 1:
            yield INITIAL.at((*place, "initial"), f"{state.input} has {len(state.initial)} initial values")
        for index, value in _whole(state.initial):
            if not value.tensor.fixed:
                yield INITIAL.at((*place, "initial", index, "tensor"), f"a dimension of {value.tensor} varies")
            elif not _fits(value.tensor, state.tensor):
                what = f"the initial value is {value.tensor} and the state {state.tensor}"
                yield INITIAL.at((*place, "initial", index, "tensor"), what)


def _fits(given: Tensor, wanted: Tensor) -> bool:
    return (
        given.dtype == wanted.dtype
        and len(given.dims) == len(wanted.dims)
        and all(want in (-1, have) for have, want in zip(given.dims, wanted.dims, strict=True))
    )


@of_each_model_in_each_profile
def growable(found: Resolved) -> Faults:
    on_gpu = all(group.kind == "gpu" for group in found.instances)
    for place, state in _states(found.name, found.model):
        if state.growable and not (state.same_buffer and on_gpu):
            lacks = "its instances do not all run on a GPU" if state.same_buffer else "it has not one buffer"
            yield GROWABLE.at((*place, "growable"), f"{state.input} grows, and {lacks}, in profile {found.profile}")


@of_each_model_in_each_profile
def in_the_python_backend(found: Resolved) -> Faults:
    place: Place = ("models", found.name, "sequence")
    sequence = found.model.sequence
    if sequence is None or found.backend != PYTHON:
        return
    if found.has_tandems_code and (sequence.controls or sequence.states):
        yield ONNX_IN_PYTHON.at(place, f"profile {found.profile} runs {found.name} in the python backend")
    elif sequence.states:
        yield STATE_IN_PYTHON.at((*place, "states"), f"{found.name} runs in the python backend, in {found.profile}")
