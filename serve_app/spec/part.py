"""What every part of the spec is made of: a model that refuses unknown keys, and values that cannot be known.

A value that is wrong has a finding of its own. So that the rest of the spec can be checked all the same, `UNKNOWN`
takes its place: whoever looks at it gets `Unknown`, and the check that looked ends there.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, Any, NoReturn, TypeVar

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    field_validator,
    model_validator,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError, core_schema


class Unknown(Exception):
    """What was asked for follows from something that is wrong, and for which there is a finding already."""


class _Unknown:
    """The value that cannot be known. `is` is the only question that it answers."""

    def _refuse(self, *_: object) -> NoReturn:
        raise Unknown

    __getattr__ = __call__ = __iter__ = __len__ = __getitem__ = __contains__ = _refuse
    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __bool__ = __hash__ = _refuse
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _refuse
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __neg__ = __abs__ = __round__ = _refuse
    __int__ = __float__ = __index__ = __str__ = __format__ = _refuse
    __class__ = property(_refuse)

    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN: Any = _Unknown()
_Value = TypeVar("_Value")


def known(value: _Value) -> _Value:
    """The value, on its way to code that would not let it refuse: pydantic, or what is written in C."""
    if value is UNKNOWN:
        raise Unknown
    return value


class Part(BaseModel):
    """A part of the spec: unknown keys are refused, nothing changes after loading."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    @field_validator("*", mode="wrap")
    @classmethod
    def _pass_unknown_value(cls, value: Any, handler: Any) -> Any:
        return value if value is UNKNOWN else handler(value)

    @model_validator(mode="wrap")
    @classmethod
    def _pass_unknown_part(cls, value: Any, handler: Any) -> Any:
        return value if value is UNKNOWN else handler(value)


def shown(value: object) -> str:
    """The value as it would be written, where that is short."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return "nothing"
    if isinstance(value, str | int | float):
        text = repr(value)
        return text if len(text) < 60 else f"{text[:57]}…"
    return (
        "a mapping" if isinstance(value, dict) else "a list" if isinstance(value, list) else "a value of another kind"
    )


def names_as_list(value: object) -> str | None:
    """`a, b` as the list that was probably meant, `[a, b]`."""
    if not isinstance(value, str):
        return None
    names = [name.strip() for name in value.split(",")]
    return f"[{', '.join(names)}]" if all(re.fullmatch(r"[A-Za-z_][\w.-]*", name) for name in names) else None


def invalid(kind: str, message: str, consequence: str | None = None) -> PydanticCustomError:
    """A ValueError of a kind that `structure.py` knows a rule for, with its consequence where the rule's differs."""
    return PydanticCustomError(kind, "{message}", {"message": message, "consequence": consequence})


@dataclass(frozen=True)
class Form:
    """Metadata of a text that has to match a pattern; `wanted` says in words what to write."""

    pattern: str
    wanted: str

    def _check(self, text: str, info: core_schema.ValidationInfo) -> str:
        if text in (info.context or ()):  # a name that has its finding, and that other parts of the spec refer to
            return text
        if re.fullmatch(self.pattern, text, re.ASCII) is None:
            raise invalid("form", f"{shown(text)} is not {self.wanted}")
        return text

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.with_info_after_validator_function(self._check, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {**handler(schema), "title": self.wanted, "pattern": f"^(?:{self.pattern})$"}


@dataclass(frozen=True)
class Shorthand:
    """Metadata of a part that may be written as the value of its field `key` alone."""

    key: str

    def _expand(self, value: Any) -> Any:
        return value if value is UNKNOWN or type(value) is dict or isinstance(value, BaseModel) else {self.key: value}

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_before_validator_function(self._expand, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        whole = handler(schema)
        short = {**handler.resolve_ref_schema(whole)["properties"][self.key]}
        short.pop("default", None)
        return {"anyOf": [short, whole]}


@dataclass(frozen=True)
class MayBeUnknown:
    """Metadata of a plain value in a mapping that can be unknown alone, without the rest of the mapping."""

    @staticmethod
    def _pass(value: Any, handler: Any) -> Any:
        return value if value is UNKNOWN else handler(value)

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_wrap_validator_function(self._pass, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return handler(schema["schema"])


@dataclass(frozen=True)
class OneAlone:
    """Metadata of a list that may be written as its only item, where that is no list itself."""

    @staticmethod
    def _expand(value: Any) -> Any:
        return value if value is UNKNOWN or value is None or type(value) is list else [value]

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_before_validator_function(self._expand, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        whole = handler(schema)
        return {"anyOf": [whole["items"], whole]}


Identifier = Annotated[
    str, Form(r"[a-z][a-z0-9_]*", "lower-case letters, digits and underscores, a letter first, as face_match")
]
CodePath = Annotated[
    str, Form(r"[A-Za-z_][A-Za-z0-9_.]*:[A-Za-z_][A-Za-z0-9_]*", "module:name, as my_package.stages:Resize")
]
Sha256 = Annotated[str, Form(r"[0-9a-f]{64}", "64 hexadecimal digits, as sha256sum prints them")]
_VERSION = r"[0-9]+\.[0-9]+\.[0-9]+"
TritonVersion = Annotated[str, Form(_VERSION, "a version of three numbers, as 2.51.0")]
RayVersion = Annotated[str, Form(_VERSION, "a version of three numbers, as 2.60.0")]
Port = Annotated[int, Field(ge=1024, le=65535)]
# Both engines count in 32 bits.
Whole = Annotated[int, Field(ge=-(2**31), le=2**31 - 1)]
Positive = Annotated[int, Field(ge=1, le=2**31 - 1)]
NonNegative = Annotated[int, Field(ge=0, le=2**31 - 1)]
