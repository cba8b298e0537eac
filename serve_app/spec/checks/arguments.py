"""What a pipeline's steps give to the methods of stages, by type: pictures, flags and the answers of earlier steps."""

from __future__ import annotations

import types
from collections.abc import Iterator
from typing import Any

from serve_app.spec.annotations import fits, show_type
from serve_app.spec.checks.registry import of_each_pipeline
from serve_app.spec.code import (
    BadCode,
    annotation,
    coroutine_of,
    is_answer,
    load_code,
    parameters_of,
    why_no_class,
)
from serve_app.spec.findings import Faults, error
from serve_app.spec.part import UNKNOWN
from serve_app.spec.pipeline import Flag, Images, Input, Pipeline, Step
from serve_app.spec.schema import Spec

OTHER_INPUT = error(
    "C008", "An argument that takes another type than its input is",
    "the method gets what it is not written for, and the route fails when it is called",
    "take another input, or change the input",
)  # fmt: skip
OTHER_ANSWER = error(
    "C009", "An argument that takes another type than the earlier step answers",
    "the method gets what it is not written for, and the route fails when it is called",
    "take the step that answers it, or correct the annotation of the one or the other",
)  # fmt: skip

TAKES_NO_NONE = error(
    "C011", "An argument that takes no None, of an optional step",
    "the route fails whenever that step does, or is too late",
    "annotate it with | None, and let the method do without it; or leave `optional` out",
)  # fmt: skip


def _given_by(taken: Input) -> Any:
    if isinstance(taken, Flag):
        return bool
    return list[bytes] if taken.many else bytes


def _written(taken: Input) -> str:
    if isinstance(taken, Flag):
        return "flag"
    return f"image[{taken.fewest}..{taken.most}]" if taken.many else "image"


def _type(spec: Spec, step: Step, name: str) -> Any:
    """The type that the step's method gives an argument, or `return`; None where there is none that can be known."""
    stage = None if step is UNKNOWN else spec.stages.get(step.stage)
    if stage is None or why_no_class(stage.code):
        return None
    function = coroutine_of(load_code(stage.code), step.call.split(".")[1])
    taken = None if function is None else parameters_of(function, but="self")
    if taken is None or name not in ("return", *taken.names):
        return None
    try:
        return annotation(function, name)
    except BadCode:  # what looks for the answer's type says so; of an argument it is a type checker's affair
        return None


def _sources(spec: Spec, pipeline: Pipeline, step_name: str) -> Iterator[tuple[str, Any]]:
    """What a step can take, with its type: the inputs and the earlier steps, as far as their types are known."""
    for name, taken in pipeline.inputs.items():
        if taken is not UNKNOWN:
            yield name, _given_by(taken)
    for name, step in pipeline.steps.items():
        if name == step_name:
            return
        answer = _type(spec, step, "return")
        if name not in pipeline.inputs and is_answer(answer):
            yield name, answer


@of_each_pipeline
def given_types(spec: Spec, name: str, pipeline: Pipeline) -> Faults:
    for step_name, step in pipeline.steps.items():
        if step is UNKNOWN or step.takes is UNKNOWN:
            continue
        given = dict(_sources(spec, pipeline, step_name))
        for argument, source in step.takes.items():
            wanted = _type(spec, step, argument)
            if wanted is None or source not in given or fits(given[source], wanted):
                continue
            place = ("pipelines", name, "steps", step_name, "takes", argument)
            method = f"{spec.stages[step.stage].code}.{step.call.split('.')[1]}"
            other = [each for each, found in given.items() if fits(found, wanted)]
            what = f"{method} takes {argument} as {show_type(wanted)}, and would get {show_type(given[source])} from"
            if source in pipeline.inputs:
                written = _written(pipeline.inputs[source])
                remedy = _remedy(source, wanted, other)
                yield OTHER_INPUT.at(place, f"{what} the input {source}, {written}", remedy=remedy)
            else:
                remedy = f"take {' or '.join(other)}" if other else None
                answer = f"{source}, the answer of {pipeline.steps[source].call}"
                yield OTHER_ANSWER.at(place, f"{what} {answer}", remedy=remedy)


@of_each_pipeline
def none_taken(spec: Spec, name: str, pipeline: Pipeline) -> Faults:
    optional = {step_name for step_name, step in pipeline.steps.items() if step is not UNKNOWN and step.optional}
    for step_name, step in pipeline.steps.items():
        for argument, source in step.takes.items() if step is not UNKNOWN and step.takes is not UNKNOWN else ():
            wanted = _type(spec, step, argument) if source in optional else None
            if wanted is not None and not fits(types.NoneType, wanted):
                method = f"{spec.stages[step.stage].code}.{step.call.split('.')[1]}"
                yield TAKES_NO_NONE.at(
                    ("pipelines", name, "steps", step_name, "takes", argument),
                    f"{method} takes {argument} as {show_type(wanted)}, and {source} is optional",
                )


def _remedy(source: str, wanted: Any, other: list[str]) -> str | None:
    """To take what fits, or to declare the input as what does."""
    inputs = (Images(many=False, fewest=1, most=1), Images(many=True, fewest=1, most=8), Flag())
    declared = next((_written(each) for each in inputs if fits(_given_by(each), wanted)), None)
    ways = [
        *([f"take {' or '.join(other)}"] if other else []),
        *([f"write the input as {source}: {declared}"] if declared else []),
    ]
    return ", or ".join(ways) or f"take a step that answers {show_type(wanted)}"
