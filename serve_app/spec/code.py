"""The code that a spec names: stages and weight recipes, loaded and checked against their entries."""

from __future__ import annotations

import importlib
import inspect
import typing
from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel, ValidationError

from serve_app.spec.findings import Place
from serve_app.spec.schema import Spec, Stage


def load_code(path: str) -> Any:
    """What `module:name` names. ImportError or AttributeError where there is no such thing."""
    module, name = path.split(":")
    return getattr(importlib.import_module(module), name)


def settings_of(stage: Stage) -> BaseModel | None:
    """The stage's settings, checked by the type its constructor gives them; None where it takes none."""
    annotation = typing.get_type_hints(load_code(stage.code).__init__).get("settings")
    return None if annotation is None else typing.cast("type[BaseModel]", annotation).model_validate(stage.settings)


def answer_type(stage: Stage, method: str) -> Any:
    """What a stage's method says that it returns."""
    return typing.get_type_hints(getattr(load_code(stage.code), method))["return"]


def code_checks(spec: Spec) -> Iterator[tuple[Place, str]]:
    """What is wrong between the spec's entries and the code they name, as (place, what to do)."""
    for name, stage in spec.stages.items():
        yield from _check_stage(("stages", name), stage)
    for name, model in spec.models.items():
        if model.weights is not None:
            yield from _check_path(("models", name, "weights", "prepare"), model.weights.prepare)
    broken = {name for name, stage in spec.stages.items() if any(_check_path((), stage.code))}
    for name, pipeline in spec.pipelines.items():
        for step_name, step in pipeline.steps.items():
            stage_name, method = step.call.split(".")
            if stage_name in spec.stages and stage_name not in broken:
                place = ("pipelines", name, "steps", step_name)
                yield from _check_call(place, spec.stages[stage_name], method, set(step.takes))


def _check_path(place: Place, path: str) -> Iterator[tuple[Place, str]]:
    try:
        load_code(path)
    except (ImportError, AttributeError) as error:
        yield place, f"{path} cannot be loaded: {error}; correct the path, or the module"


def _check_stage(place: Place, stage: Stage) -> Iterator[tuple[Place, str]]:
    if problems := list(_check_path((*place, "code"), stage.code)):
        yield from problems
        return
    parameters = inspect.signature(load_code(stage.code)).parameters
    models = [name for name in parameters if name != "settings"]
    required = {name for name in models if parameters[name].default is inspect.Parameter.empty}
    if not required <= set(stage.models) <= set(models):
        yield (*place, "models"), f"{stage.code} takes the models {', '.join(sorted(required))}; name exactly these"
    try:
        settings = settings_of(stage)
    except ValidationError as invalid:
        for error in invalid.errors():
            yield (*place, "settings", *error["loc"]), str(error["msg"]).removeprefix("Value error, ")
    else:
        if settings is None and stage.settings:
            yield (*place, "settings"), f"{stage.code} takes no settings; remove them"


def _check_call(place: Place, stage: Stage, method: str, arguments: set[str]) -> Iterator[tuple[Place, str]]:
    function = getattr(load_code(stage.code), method, None)
    if not inspect.iscoroutinefunction(function):
        yield (*place, "call"), f"{stage.code} has no `async def {method}`; correct the name"
        return
    parameters = inspect.signature(function).parameters
    taken = [name for name in parameters if name != "self"]
    required = {name for name in taken if parameters[name].default is inspect.Parameter.empty}
    if not required <= arguments <= set(taken):
        yield (*place, "takes"), f"{stage.code}.{method} takes {', '.join(taken)}; give it exactly these"
    annotation = typing.get_type_hints(function).get("return")
    if not (inspect.isclass(annotation) and issubclass(annotation, BaseModel)):
        yield (*place, "call"), f"{stage.code}.{method} must say that it returns a pydantic model: it becomes the API"
