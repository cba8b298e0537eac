"""The code that a spec names: stages and weight recipes."""

from __future__ import annotations

import importlib
import typing
from typing import Any

from pydantic import BaseModel

from serve_app.spec.part import known
from serve_app.spec.pipeline import Stage


def load_code(path: str) -> Any:
    """What `module:name` names. ImportError or AttributeError where there is no such thing."""
    module, name = path.split(":")
    return getattr(importlib.import_module(module), name)


def why_not_loaded(path: str) -> str | None:
    """Why the code cannot be loaded; None where it can."""
    try:
        load_code(path)
    except (ImportError, AttributeError) as broken:
        return str(broken)
    return None


def checked_user_config(code: Any, user_config: dict[str, Any]) -> Any:
    """`user_config` as the stage class's `reconfigure` takes it: by the model that it annotates, if it does.

    ValidationError where the model refuses it.
    """
    annotation = typing.get_type_hints(code.reconfigure).get("user_config")
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation.model_validate(known(user_config))
    return user_config


def settings_type(stage: Stage) -> type[BaseModel] | None:
    """The type of settings that the stage's constructor takes; None where it takes none."""
    return typing.get_type_hints(load_code(stage.code).__init__).get("settings")


def settings_of(stage: Stage) -> BaseModel | None:
    """The stage's settings, checked by the type its constructor gives them; None where it takes none."""
    settings = settings_type(stage)
    return None if settings is None else settings.model_validate(known(stage.settings))


def answer_type(stage: Stage, method: str) -> Any:
    """What a stage's method says that it returns."""
    return typing.get_type_hints(getattr(load_code(stage.code), method))["return"]
