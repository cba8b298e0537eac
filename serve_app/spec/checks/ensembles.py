"""Ensembles: steps whose models exist, and tensors that lead from the inputs to the outputs."""

from __future__ import annotations

from collections.abc import Iterator

from serve_app.spec.checks.registry import of_each_ensemble, of_the_spec
from serve_app.spec.circles import on_circles, reachable
from serve_app.spec.findings import Faults, Place, error
from serve_app.spec.model import Ensemble, EnsembleStep, Model
from serve_app.spec.part import UNKNOWN
from serve_app.spec.schema import Spec
from serve_app.spec.spelling import did_you_mean

_REFUSED = "Triton refuses to load the ensemble"

NO_MODEL = error("T301", "A step of a model that does not exist", _REFUSED, "correct the name, or add the model")
NO_VERSION = error(
    "T302",
    "A step of a version that is not served",
    _REFUSED,
    "leave version out for the latest, or serve that version",
)
NO_INPUT = error("T303", "A step that gives a model an input it does not have", _REFUSED, "correct the name")
NO_OUTPUT = error("T304", "A step that takes an output which its model does not have", _REFUSED, "correct the name")
LEFT_OUT = error(
    "T305", "A step that leaves out an input of its model", _REFUSED, "say which tensor it is, or make it optional"
)
NOTHING = error("T306", "A step that takes or gives nothing", _REFUSED, "name a tensor, or remove the step")
UNUSED = error("T307", "A tensor that no step takes", _REFUSED, "remove it, take it in a step, or make it an output")
UNWRITTEN = error("T308", "A tensor that no step gives", _REFUSED, "make it an input, or give it in a step")
TWICE = error("T310", "A tensor that is written twice", _REFUSED, "name the two apart")
OVERWRITTEN = error(
    "T311", "A step that writes an input of the ensemble", "later steps get the request's tensor, or the request fails",
    "give the step's tensor a name of its own",
)  # fmt: skip
CIRCLE = error("T312", "Steps that wait for each other", _REFUSED, "break the circle")
ITSELF = error("T313", "An ensemble in itself", _REFUSED, "break the circle")


def steps_of(name: str, ensemble: Ensemble) -> Iterator[tuple[Place, EnsembleStep]]:
    """The steps of which everything is known, with their places."""
    for index, step in enumerate(ensemble.steps):
        if step is not UNKNOWN and not any(value is UNKNOWN for _, value in step):
            yield ("ensembles", name, "steps", index), step


def known(spec: Spec, name: str) -> Model | Ensemble | None:
    """The model or ensemble of that name; None where there is none, or what it is cannot be known."""
    for entries in (spec.models, spec.ensembles):
        if name in entries:
            found: Model | Ensemble = entries[name]
            return None if found is UNKNOWN else found
    return None


@of_each_ensemble
def models_exist(spec: Spec, name: str, ensemble: Ensemble) -> Faults:
    there_is = [*spec.models, *spec.ensembles]
    for place, step in steps_of(name, ensemble):
        if step.model not in there_is:
            others = ", ".join(each for each in there_is if each != name)
            yield NO_MODEL.at(
                (*place, "model"),
                f"there is no model {step.model!r}; there is {others}",
                remedy=did_you_mean(step.model, [each for each in there_is if each != name]),
            )


@of_each_ensemble
def versions(spec: Spec, name: str, ensemble: Ensemble) -> Faults:
    for place, step in steps_of(name, ensemble):
        served = known(spec, step.model)
        if step.version == -1 or served is None:
            continue
        if step.version < 1:
            yield NO_VERSION.at((*place, "version"), f"there is no version {step.version}, and the latest is -1")
        elif served.versions is not UNKNOWN and step.version not in (served.versions.only or [step.version]):
            numbers = ", ".join(map(str, served.versions.only or []))
            yield NO_VERSION.at(
                (*place, "version"), f"{step.model} serves version {numbers}, and the step wants {step.version}"
            )


@of_each_ensemble
def maps(spec: Spec, name: str, ensemble: Ensemble) -> Faults:
    for place, step in steps_of(name, ensemble):
        for key in ("takes", "gives"):
            if not getattr(step, key):
                yield NOTHING.at((*place, key), f"the step {key} no tensor")


@of_each_ensemble
def tensors_of_models(spec: Spec, name: str, ensemble: Ensemble) -> Faults:
    for place, step in steps_of(name, ensemble):
        served = known(spec, step.model)
        if served is None:
            continue
        if served.inputs is not UNKNOWN:
            yield from _inputs(place, step, served)
        if served.outputs is not UNKNOWN:
            for key in step.gives:
                if key not in served.outputs:
                    has = ", ".join(served.outputs)
                    yield NO_OUTPUT.at(
                        (*place, "gives", key),
                        f"{step.model} has no output {key!r}; it has {has}",
                        remedy=did_you_mean(key, served.outputs),
                    )


def _inputs(place: Place, step: EnsembleStep, served: Model | Ensemble) -> Faults:
    for key in step.takes:
        if key not in served.inputs:
            has = ", ".join(served.inputs)
            yield NO_INPUT.at(
                (*place, "takes", key),
                f"{step.model} has no input {key!r}; it has {has}",
                remedy=did_you_mean(key, served.inputs),
            )
    for key, entry in served.inputs.items():
        if step.takes and key not in step.takes and entry is not UNKNOWN and not entry.optional:
            yield LEFT_OUT.at((*place, "takes"), f"{step.model} needs its input {key}")


@of_each_ensemble
def flow(spec: Spec, name: str, ensemble: Ensemble) -> Faults:
    written: set[str] = set()
    for place, step in steps_of(name, ensemble):
        for key, tensor in step.gives.items():
            if tensor in written:
                yield TWICE.at((*place, "gives", key), f"{tensor} is written already")
            if tensor in ensemble.inputs:
                yield OVERWRITTEN.at((*place, "gives", key), f"{tensor} is an input of {name}")
            written.add(tensor)
    if len(list(steps_of(name, ensemble))) < len(ensemble.steps):
        return  # as a step that cannot be known may give what is missing
    for tensor in ensemble.outputs:
        if tensor not in written and tensor not in ensemble.inputs:
            yield UNWRITTEN.at(("ensembles", name, "outputs", tensor), f"no step gives {tensor}")
    for place, step in steps_of(name, ensemble):
        for key, tensor in step.takes.items():
            if tensor not in written and tensor not in ensemble.inputs and tensor not in ensemble.outputs:
                yield UNWRITTEN.at((*place, "takes", key), f"{tensor} is no input of {name}, and no step gives it")


@of_each_ensemble
def unused(spec: Spec, name: str, ensemble: Ensemble) -> Faults:
    taken = {tensor for step in ensemble.steps for tensor in step.takes.values()}
    for tensor in ensemble.inputs:
        if tensor not in taken:
            yield UNUSED.at(("ensembles", name, "inputs", tensor), f"no step takes {tensor}")
    for place, step in steps_of(name, ensemble):
        for key, tensor in step.gives.items():
            if tensor not in taken and tensor not in ensemble.outputs:
                yield UNUSED.at((*place, "gives", key), f"no step takes {tensor}, and it is no output of {name}")


@of_each_ensemble
def circle(spec: Spec, name: str, ensemble: Ensemble) -> Faults:
    steps = [step for _, step in steps_of(name, ensemble)]
    writers = {tensor: index for index, step in enumerate(steps) for tensor in step.gives.values()}
    needs = {
        index: [
            writers[tensor] for tensor in step.takes.values() if tensor in writers and tensor not in ensemble.inputs
        ]
        for index, step in enumerate(steps)
    }
    if found := on_circles(needs):
        among = ", ".join(f"{index} ({steps[index].model})" for index in found)
        yield CIRCLE.at(("ensembles", name, "steps"), f"tensors go in a circle among the steps {among}")


@of_the_spec
def in_itself(spec: Spec) -> Faults:
    uses = {
        name: [step.model for _, step in steps_of(name, ensemble)]
        for name, ensemble in spec.ensembles.items()
        if ensemble is not UNKNOWN and ensemble.steps is not UNKNOWN
    }
    for name in on_circles(uses):
        for place, step in steps_of(name, spec.ensembles[name]):
            if name in reachable(uses, step.model):
                back = "itself" if step.model == name else f"{step.model}, which comes back to {name}"
                yield ITSELF.at((*place, "model"), f"a step of {name} is {back}")
