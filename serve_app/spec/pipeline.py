"""Stages, and the pipelines that put them together into HTTP routes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema

from serve_app.spec.part import CodePath, Form, Part, Positive, invalid
from serve_app.spec.ray import Replicas
from serve_app.spec.units import Duration


def _one_item_each(value: Any) -> Any:
    """`[a, b]` is short for `{a: 1, b: 1}`."""
    if type(value) is list and all(type(name) is str for name in value):
        return dict.fromkeys(value, 1)
    return value


ModelUse = Annotated[
    dict[str, Positive],
    BeforeValidator(_one_item_each),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "array", "items": {"type": "string"}},
                {"type": "object", "additionalProperties": {"type": "integer", "minimum": 1}},
            ]
        }
    ),
]


class Stage(Part):
    code: CodePath = Field(description="module:Class; its constructor takes the models by name, and settings")
    models: ModelUse = Field(
        default_factory=dict,
        description="the models it calls, as a list, or with the items that one request brings to each at the most",
    )
    runs_in: Literal["ingress"] | None = Field(default=None, description="ingress: no process of its own")
    replicas: Replicas | None = None
    settings: dict[str, Any] = Field(default_factory=dict)


@dataclass(frozen=True)
class Images:
    """What a pipeline takes under one name: `image`, or `image[0..8]` for a list."""

    many: bool
    fewest: int
    most: int


_IMAGES = r"image(?:\[(\d{1,3})\.\.(\d{1,3})\])?"


def parse_images(text: object) -> Images:
    match = re.fullmatch(_IMAGES, text) if isinstance(text, str) else None
    if match is None:
        raise invalid("images", f"{text!r} is not an input; write image, or image[0..8] for a list of up to eight")
    if match[1] is None:
        return Images(many=False, fewest=1, most=1)
    fewest, most = int(match[1]), int(match[2])
    if fewest > most or most < 1:
        raise invalid("images", f"{text!r} allows nothing; write the smaller count first, as image[0..8]")
    return Images(many=True, fewest=fewest, most=most)


ImagesField = Annotated[
    Images, BeforeValidator(parse_images), WithJsonSchema({"type": "string", "pattern": f"^{_IMAGES}$"})
]


class Step(Part):
    """One call of a stage's method. Its arguments are inputs of the pipeline or results of earlier steps, by name."""

    call: Annotated[str, Form(r"[a-z][a-z0-9_]*\.[a-z][a-z0-9_]*", "stage.method, as faces.match")]
    takes: dict[str, str] = Field(default_factory=dict, description="argument of the method: input or step")

    @property
    def stage(self) -> str:
        return self.call.split(".")[0]


class Pipeline(Part):
    route: Annotated[str, Form(r"(/[a-z0-9_-]+)+", "a path of lower-case words, as /v1/verify")]
    summary: str = Field(description="one line for the API's documentation")
    sla: Duration | None = None
    inputs: dict[str, ImagesField] = Field(min_length=1)
    steps: dict[str, Step] = Field(min_length=1, description="the last one's result is the answer")
