"""The code that a spec names: stages and weight recipes."""

from __future__ import annotations

import importlib
import typing
from typing import Any

from pydantic import BaseModel

from serve_app.spec.pipeline import Stage


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
