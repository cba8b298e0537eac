"""The code that a spec names, loaded and checked against the entries that name it."""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError

from serve_app.spec.checks.registry import of_each_model, of_each_pipeline, of_each_stage
from serve_app.spec.code import (
    BadCode,
    Parameters,
    answer_type,
    coroutine_of,
    coroutines_of,
    is_answer,
    is_plain_method,
    load_code,
    parameters_of,
    settings_of,
    settings_type,
    takes,
    why_no_class,
    why_not_loaded,
)
from serve_app.spec.findings import Fault, Faults, Place, error
from serve_app.spec.model import Model
from serve_app.spec.pipeline import Pipeline, Stage, Step
from serve_app.spec.schema import Spec
from serve_app.spec.spelling import did_you_mean
from serve_app.spec.value_words import describe

NOT_LOADED = error(
    "C001", "Code that cannot be loaded", "the deployment fails when it starts", "correct the path, or the module"
)
TAKES_MODELS = error(
    "C002", "A stage with other models than its class takes", "the stage cannot be built", "name exactly these models"
)
SETTINGS = error(
    "C003", "A setting that the stage's class refuses", "the stage cannot be built", "write what the class takes"
)
NO_SETTINGS = error("C004", "Settings of a stage whose class takes none", "they would have no effect", "remove them")
NO_METHOD = error(
    "C005", "A step that calls a method which does not exist", "the route fails when it is called", "correct the name"
)
TAKES_ARGUMENTS = error(
    "C006", "A step with other arguments than the method takes", "the route fails when it is called",
    "give exactly these arguments",
)  # fmt: skip
NO_ANSWER_TYPE = error(
    "C007", "A method that does not say what it answers", "the route's API cannot be described",
    "annotate that it returns a pydantic model",
)  # fmt: skip
TAKES_CONTENT = error(
    "C010", "A recipe that takes other arguments than it is given", "the model cannot be prepared",
    "let it take the file's bytes alone, or nothing where there is no file",
)  # fmt: skip


def _meant(problem: Any, stage: Stage) -> str | None:
    """The setting that an unknown one was probably meant to be."""
    settings = settings_type(stage)
    if problem["type"] != "extra_forbidden" or settings is None or len(problem["loc"]) > 1:
        return None
    return did_you_mean(problem["loc"][0], settings.model_fields)


@of_each_model
def recipe(spec: Spec, name: str, model: Model) -> Faults:
    if model.weights is None:
        return
    path, place = model.weights.prepare, ("models", name, "weights", "prepare")
    if reason := why_not_loaded(path):
        yield NOT_LOADED.at(place, f"{path} cannot be loaded: {reason}")
    elif not callable(code := load_code(path)):
        yield NOT_LOADED.at(place, f"{path} is no function, but of type {type(code).__name__}")
    elif not takes(code, *([] if model.weights.file is None else [b""])):
        given = "nothing" if model.weights.file is None else "the file's bytes"
        yield TAKES_CONTENT.at(place, f"{path} cannot be called with {given}")


@of_each_stage
def stage_class(spec: Spec, name: str, stage: Stage) -> Faults:
    place: Place = ("stages", name)
    if reason := why_no_class(stage.code):
        yield NOT_LOADED.at((*place, "code"), f"{stage.code} {reason}")
        return
    try:
        settings = settings_of(stage)
    except BadCode as bad:
        yield NOT_LOADED.at(
            (*place, "code"),
            f"what {stage.code} takes cannot be known: {bad}",
            remedy="annotate its settings with a pydantic model that is there when it runs",
        )
    except ValidationError as invalid:
        for each in invalid.errors(include_url=False):
            where = (*place, "settings", *each["loc"])
            words = describe(each, where[-1])
            yield SETTINGS.at(where, words.what, remedy=_meant(each, stage) or words.remedy)
    else:
        if settings is None and stage.settings:
            yield NO_SETTINGS.at((*place, "settings"), f"{stage.code} takes no settings")


@of_each_stage
def models_taken(spec: Spec, name: str, stage: Stage) -> Faults:
    if why_no_class(stage.code) or not set(stage.models) <= {*spec.models, *spec.ensembles}:
        return  # both have findings of their own
    models = parameters_of(load_code(stage.code), but="settings")
    if models is not None and not models.take(stage.models):
        taken = f"the models {', '.join(sorted(models.needed or models.names))}" if models.names else "no models"
        yield TAKES_MODELS.at(("stages", name, "models"), f"{stage.code} takes {taken}")


@of_each_pipeline
def calls(spec: Spec, name: str, pipeline: Pipeline) -> Faults:
    for step_name, step in pipeline.steps.items():
        stage = spec.stages.get(step.stage)
        if stage is None or why_no_class(stage.code):
            continue
        place: Place = ("pipelines", name, "steps", step_name)
        method = step.call.split(".")[1]
        function = coroutine_of(load_code(stage.code), method)
        if function is None:
            yield _no_method(stage, method, (*place, "call"))
            continue
        taken = parameters_of(function, but="self")
        if taken is not None:
            yield from _arguments(f"{stage.code}.{method}", taken, step, (*place, "takes"))
        yield from _answer(stage, method, (*place, "call"))


def _no_method(stage: Stage, method: str, place: Place) -> Fault:
    what = f"{stage.code} has no `async def {method}`"
    code = load_code(stage.code)
    if is_plain_method(code, method):
        return NO_METHOD.at(place, f"{what}, but a plain one", remedy=f"write it as `async def {method}`")
    methods = coroutines_of(code)
    remedy = did_you_mean(method, methods) or f"write one of {', '.join(methods)}" if methods else None
    return NO_METHOD.at(place, what, remedy=remedy)


def _arguments(method: str, taken: Parameters, step: Step, place: Place) -> Faults:
    unknown = [] if taken.others else [argument for argument in step.takes if argument not in taken.names]
    left = [argument for argument in taken.names if argument not in step.takes]
    for argument in unknown:
        remedy = did_you_mean(argument, left) or (f"write {' or '.join(left)} for it" if left else "remove it")
        yield TAKES_ARGUMENTS.at((*place, argument), f"{method} takes {taken}, and no {argument}", remedy=remedy)
    missing = [argument for argument in left if argument in taken.needed]
    if len(missing) > len(unknown):  # else it is said where the others were written for them
        yield TAKES_ARGUMENTS.at(
            place, f"{method} takes {taken}, and does not get {', '.join(missing)}", remedy="give what is missing"
        )


def _answer(stage: Stage, method: str, place: Place) -> Faults:
    try:
        answer = answer_type(stage, method)
    except BadCode as bad:
        yield NO_ANSWER_TYPE.at(place, f"{stage.code}.{method}: {bad}", remedy="correct its annotation")
        return
    if not is_answer(answer):
        yield NO_ANSWER_TYPE.at(place, f"{stage.code}.{method} names no pydantic model as its answer")
