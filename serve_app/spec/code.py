"""The code that a spec names: stages and weight recipes.

It is somebody else's, and may raise anything where it is loaded or looked at: here that is `BadCode`.
"""

from __future__ import annotations

import importlib
import inspect
import types
import typing
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ValidationError

from serve_app.spec.part import known
from serve_app.spec.pipeline import Stage


class BadCode(Exception):
    """What the spec names raises when it is looked at, or is of another kind than it must be."""


@contextmanager
def _looking() -> Iterator[None]:
    try:
        yield
    except (BadCode, ValidationError):
        raise
    # A metaclass, a descriptor, a `__signature__` or a validator runs here. A script ends itself when it is imported.
    except (Exception, SystemExit) as raised:
        raise BadCode(f"{type(raised).__name__}: {raised}") from raised


def load_code(path: str) -> Any:
    """What `module:name` names. ImportError or AttributeError where there is no such thing."""
    module, name = path.split(":")
    return getattr(importlib.import_module(module), name)


def why_not_loaded(path: str) -> str | None:
    """Why the code cannot be loaded; None where it can."""
    try:
        with _looking():
            try:
                load_code(path)
            except (ImportError, AttributeError) as broken:
                return str(broken)
    except BadCode as bad:
        return str(bad)
    return None


def why_no_class(path: str) -> str | None:
    """Why the code is no class that can be loaded; None where it is one."""
    if reason := why_not_loaded(path):
        return f"cannot be loaded: {reason}"
    found = type(load_code(path))
    return None if issubclass(found, type) else f"is no class, but of type {found.__name__}"


@dataclass(frozen=True)
class Parameters:
    """What a function or constructor takes by name, and what of that it needs; `others`: any other name as well."""

    names: tuple[str, ...]
    needed: frozenset[str]
    others: bool

    def take(self, given: Collection[str]) -> bool:
        return self.needed <= set(given) and (self.others or set(given) <= set(self.names))

    def __str__(self) -> str:
        return ", ".join([*self.names, *(["any other"] if self.others else [])]) or "nothing"


def parameters_of(code: Any, but: str = "") -> Parameters | None:
    """What can be given to it besides `but`; None where Python does not know, as of a class that is written in C."""
    try:
        with _looking():
            found = inspect.signature(code).parameters
    except BadCode:
        return None
    named = {
        name: each
        for name, each in found.items()
        if name != but and each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)
    }
    needed = frozenset(name for name, each in named.items() if each.default is each.empty)
    return Parameters(tuple(named), needed, any(each.kind is each.VAR_KEYWORD for each in found.values()))


def takes(code: Any, *values: object) -> bool:
    """Whether it can be called with these values in their order; also where Python does not know what it takes."""
    try:
        with _looking():
            signature = inspect.signature(code)
    except BadCode:
        return True
    try:
        signature.bind(*values)
    except TypeError:
        return False
    return True


def annotation(function: Any, name: str) -> Any:
    """The type that a function gives its parameter `name`, or `return`; None where it gives none.

    It alone is looked up: others may be there for type checkers only. BadCode where it leads to nothing.
    """
    try:
        with _looking():
            given = getattr(function, "__annotations__", {})
            if name not in given:
                return None
            within = getattr(inspect.unwrap(function), "__globals__", {})
            one = types.SimpleNamespace(__annotations__={name: given[name]})
            return typing.get_type_hints(one, globalns=within, localns={})[name]
    except BadCode as bad:
        of = "what it returns" if name == "return" else name
        raise BadCode(f"the type of {of} cannot be looked up ({bad})") from bad


def coroutine_of(code: Any, name: str) -> Callable[..., Any] | None:
    """The class's `async def` of that name; None where it has none that can be seen."""
    try:
        with _looking():
            function = getattr(code, name, None)
            return function if inspect.iscoroutinefunction(function) else None
    except BadCode:
        return None


def coroutines_of(code: Any) -> list[str]:
    """The names of all of them."""
    try:
        with _looking():
            names = dir(code)
    except BadCode:
        return []
    return [name for name in names if coroutine_of(code, name) is not None]


def is_plain_method(code: Any, name: str) -> bool:
    """Whether the class has something of that name that can be called, and is not `async`."""
    try:
        with _looking():
            return callable(getattr(code, name, None)) and coroutine_of(code, name) is None
    except BadCode:
        return False


def checked_user_config(code: Any, user_config: dict[str, Any]) -> Any:
    """`user_config` as the stage class's `reconfigure` takes it: by the model that it annotates, if it does.

    ValidationError where the model refuses it, BadCode where the annotation leads to nothing.
    """
    given, wanted = known(user_config), annotation(code.reconfigure, "user_config")
    with _looking():
        if isinstance(wanted, type) and issubclass(wanted, BaseModel):
            return wanted.model_validate(given)
    return user_config


def settings_type(stage: Stage) -> type[BaseModel] | None:
    """The type of settings that the stage's constructor takes; None where it takes none.

    BadCode where that is no pydantic model.
    """
    with _looking():
        constructor = load_code(stage.code).__init__
    given = annotation(constructor, "settings")
    if given is None:
        return None
    if typing.get_origin(given) in (typing.Union, types.UnionType):
        kinds = [kind for kind in typing.get_args(given) if kind is not types.NoneType]
        given = kinds[0] if len(kinds) == 1 else given
    with _looking():
        if isinstance(given, type) and issubclass(given, BaseModel):
            return given
    raise BadCode("the type of settings is no pydantic model")


def settings_of(stage: Stage) -> BaseModel | None:
    """The stage's settings, checked by the type its constructor gives them; None where it takes none.

    ValidationError where that refuses them, BadCode where it is none to check them by.
    """
    settings = settings_type(stage)
    if settings is None:
        return None
    given = known(stage.settings)
    with _looking():
        return settings.model_validate(given)


def answer_type(stage: Stage, method: str) -> Any:
    """What a stage's method says that it returns; None where it does not. BadCode where that leads to nothing."""
    with _looking():
        function = getattr(load_code(stage.code), method)
    return annotation(function, "return")


def is_answer(answer: Any) -> bool:
    """Whether a method's answer is a type that a route can be described by."""
    try:
        with _looking():
            return isinstance(answer, type) and issubclass(answer, BaseModel)
    except BadCode:
        return False
