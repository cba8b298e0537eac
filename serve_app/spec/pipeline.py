"""Stages, and the pipelines that put them together into HTTP routes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, GetCoreSchemaHandler, GetJsonSchemaHandler, WithJsonSchema
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from serve_app.spec.part import (
    UNKNOWN,
    CodePath,
    Form,
    Identifier,
    MayBeUnknown,
    Part,
    Positive,
    invalid,
    names_as_list,
    shown,
)
from serve_app.spec.replicas import StageReplicas
from serve_app.spec.units import SomeTime


def _one_item_each(value: Any) -> Any:
    """`[a, b]` is short for `{a: 1, b: 1}`."""
    if value is UNKNOWN or type(value) is dict:
        return value
    if type(value) is not list:
        wanted = f"write {names_as_list(value) or 'a list of their names'}"
        if value is None:
            raise invalid("kind", f"models has no value; {wanted}")
        raise invalid("kind", f"{shown(value)} is not a list of models; {wanted}")
    known = [name for name in value if name is not UNKNOWN]
    for name in known:
        if type(name) is not str:
            raise invalid("kind", f"{shown(name)} is not the name of a model; write a list of names")
        if known.count(name) > 1:
            raise invalid("twice", f"{name} is there twice; write it once, with its items as {{{name}: 2}}")
    return dict.fromkeys(known, 1) if len(known) == len(value) else UNKNOWN


@dataclass(frozen=True)
class _NamesAlone:
    """Metadata of a mapping from names to numbers that may be written as a list of its names, for 1 each."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_before_validator_function(_one_item_each, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        names = {"type": "array", "items": {"type": "string"}, "uniqueItems": True}
        return {"anyOf": [names, handler(schema)]}


ModelUse = Annotated[dict[str, Annotated[Positive, MayBeUnknown()]], _NamesAlone()]


class Stage(Part):
    """A plain Python class that Ray Serve replicates, and that awaits models as functions of arrays."""

    code: CodePath = Field(description="module:Class; its constructor takes the models by name, and settings")
    models: ModelUse = Field(
        default_factory=dict,
        description="the models it calls, as a list, or with the items that one request brings to each at the most",
    )
    runs_in: Literal["ingress"] | None = Field(default=None, description="ingress: no process of its own")
    replicas: StageReplicas | None = Field(default=None, description="its processes; needed unless runs_in is given")
    settings: dict[str, Any] = Field(
        default_factory=dict, description="what its constructor gets, by the fields of its own settings class"
    )


@dataclass(frozen=True)
class Images:
    """What a pipeline takes under one name: `image`, or `image[0..8]` for a list."""

    many: bool
    fewest: int
    most: int


@dataclass(frozen=True)
class Flag:
    """True or false, false where a request does not say: a parameter of the route's query."""


Input = Images | Flag
_INPUT = r"flag|image(?:\[([0-9]{1,3})\.\.([0-9]{1,3})\])?"


def parse_input(text: object) -> Input:
    """`image[0..8]` → Images. ValueError says how to write it; whether the counts allow anything, a check finds."""
    match = re.fullmatch(_INPUT, text) if isinstance(text, str) else None
    if match is None:
        wanted = "write image, image[0..8] for a list of up to eight, or flag"
        raise invalid("images", f"{shown(text)} is not an input; {wanted}")
    if match[0] == "flag":
        return Flag()
    if match[1] is None:
        return Images(many=False, fewest=1, most=1)
    return Images(many=True, fewest=int(match[1]), most=int(match[2]))


InputField = Annotated[
    Input,
    BeforeValidator(parse_input),
    WithJsonSchema({"type": "string", "title": "image, image[0..8] for a list, or flag", "pattern": f"^({_INPUT})$"}),
]


class Step(Part):
    """One call of a stage's method. Its arguments are inputs of the pipeline or results of earlier steps, by name."""

    call: Annotated[str, Form(r"[a-z][a-z0-9_]*\.[a-z][a-z0-9_]*", "stage.method, as faces.match")] = Field(
        description="the stage, and the method of its class"
    )
    takes: dict[str, str] = Field(default_factory=dict, description="argument of the method: input or step")
    optional: bool = Field(
        default=False,
        description="true: where it fails or is too late, the request goes on, and steps that take its result get None",
    )
    within: SomeTime | None = Field(
        default=None,
        description="an optional step is given up after this, and always after half of the time that its request had "
        "left when it began",
    )

    @property
    def stage(self) -> str:
        return self.call.split(".")[0]


class Pipeline(Part):
    """Which call of a stage follows which, as a route of the HTTP API."""

    route: Annotated[str, Form(r"(/[a-z0-9_-]+)+", "a path of lower-case words, as /v1/verify")] = Field(
        description="where clients POST to"
    )
    summary: str = Field(description="one line for the API's documentation")
    sla: SomeTime | None = Field(default=None, description="within this a request is answered; service.sla")
    inputs: dict[Identifier, Annotated[InputField, MayBeUnknown()]] = Field(
        min_length=1, description="what a request brings, by its names: pictures in its body, flags in its query"
    )
    steps: dict[Identifier, Step] = Field(min_length=1, description="the last one's result is the answer")

    @property
    def images(self) -> dict[str, Images]:
        return {name: taken for name, taken in self.inputs.items() if isinstance(taken, Images)}

    @property
    def flags(self) -> list[str]:
        return [name for name, taken in self.inputs.items() if isinstance(taken, Flag)]
