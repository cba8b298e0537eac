"""The code that a spec names, loaded and checked against the entries that name it."""

from __future__ import annotations

import inspect
import typing
from typing import Any

from pydantic import BaseModel, ValidationError

from serve_app.spec.checks.registry import of_each_model, of_each_pipeline, of_each_stage
from serve_app.spec.code import load_code, settings_of, settings_type, why_not_loaded
from serve_app.spec.findings import Faults, Place, error
from serve_app.spec.model import Model
from serve_app.spec.pipeline import Pipeline, Stage
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


def _meant(problem: Any, stage: Stage) -> str | None:
    """The setting that an unknown one was probably meant to be."""
    settings = settings_type(stage)
    if problem["type"] != "extra_forbidden" or settings is None or len(problem["loc"]) > 1:
        return None
    return did_you_mean(problem["loc"][0], settings.model_fields)


@of_each_model
def recipe(spec: Spec, name: str, model: Model) -> Faults:
    if model.weights is not None and (reason := why_not_loaded(model.weights.prepare)):
        yield NOT_LOADED.at(
            ("models", name, "weights", "prepare"), f"{model.weights.prepare} cannot be loaded: {reason}"
        )


@of_each_stage
def stage_class(spec: Spec, name: str, stage: Stage) -> Faults:
    place: Place = ("stages", name)
    if reason := why_not_loaded(stage.code):
        yield NOT_LOADED.at((*place, "code"), f"{stage.code} cannot be loaded: {reason}")
        return
    try:
        settings = settings_of(stage)
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
    if why_not_loaded(stage.code) or not set(stage.models) <= {*spec.models, *spec.ensembles}:
        return  # both have findings of their own
    parameters = inspect.signature(load_code(stage.code)).parameters
    models = [parameter for parameter in parameters if parameter != "settings"]
    required = {model for model in models if parameters[model].default is inspect.Parameter.empty}
    if not required <= set(stage.models) <= set(models):
        yield TAKES_MODELS.at(
            ("stages", name, "models"), f"{stage.code} takes the models {', '.join(sorted(required))}"
        )


@of_each_pipeline
def calls(spec: Spec, name: str, pipeline: Pipeline) -> Faults:
    for step_name, step in pipeline.steps.items():
        stage = spec.stages.get(step.stage)
        if stage is None or why_not_loaded(stage.code):
            continue
        place: Place = ("pipelines", name, "steps", step_name)
        method = step.call.split(".")[1]
        function = getattr(load_code(stage.code), method, None)
        if not inspect.iscoroutinefunction(function):
            methods = [name for name, _ in inspect.getmembers(load_code(stage.code), inspect.iscoroutinefunction)]
            yield NO_METHOD.at(
                (*place, "call"),
                f"{stage.code} has no `async def {method}`",
                remedy=did_you_mean(method, methods) or f"write one of {', '.join(methods)}" if methods else None,
            )
            continue
        parameters = inspect.signature(function).parameters
        taken = [parameter for parameter in parameters if parameter != "self"]
        required = {parameter for parameter in taken if parameters[parameter].default is inspect.Parameter.empty}
        if not required <= set(step.takes) <= set(taken):
            yield TAKES_ARGUMENTS.at((*place, "takes"), f"{stage.code}.{method} takes {', '.join(taken)}")
        answer = typing.get_type_hints(function).get("return")
        if not (inspect.isclass(answer) and issubclass(answer, BaseModel)):
            yield NO_ANSWER_TYPE.at((*place, "call"), f"{stage.code}.{method} names no pydantic model as its answer")
