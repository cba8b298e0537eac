"""What the spec may hold where: the types of its parts, followed along a place."""

from __future__ import annotations

import functools
import types
import typing
from collections.abc import Iterator
from typing import Annotated, Any

from pydantic import TypeAdapter, ValidationError

from serve_app.spec.findings import Place
from serve_app.spec.part import Form, MayBeUnknown, Part, Shorthand
from serve_app.spec.schema import Spec

NAME = "NAME"
NUMBER = "N"


def part_at(place: Place) -> type[Part] | None:
    """The type of the part at a place, or None where there is none."""
    return as_part(_annotation(place))


def is_list_at(place: Place) -> bool:
    return typing.get_origin(_plain(_annotation(place))) is list


def is_written_short(place: Place) -> bool:
    """Whether the part at a place may be written as one of its values alone."""
    return _has(place, Shorthand)


def form_at(place: Place) -> Form | None:
    """The form that the text at a place must have, where it must have one."""
    holder = part_at(place[:-1])
    field = holder.model_fields.get(str(place[-1])) if holder else None
    annotation = field.annotation if field else _annotation(place)
    is_union = typing.get_origin(annotation) in (typing.Union, types.UnionType)
    arms = [annotation, *(typing.get_args(annotation) if is_union else ())]
    metadata = [each for arm in arms for each in getattr(arm, "__metadata__", ())]
    return next((each for each in [*metadata, *(field.metadata if field else [])] if isinstance(each, Form)), None)


def nothing_at(place: Place) -> Any:
    """What pydantic says of nothing as a value of the field at a place; None where nothing is refused anyway there."""
    holder = part_at(place[:-1])
    return _nothing(holder, str(place[-1])) if holder else None


@functools.cache
def _nothing(part: type[Part], name: str) -> Any:
    field = part.model_fields.get(name)
    arms = typing.get_args(field.annotation) if field else ()
    if type(None) not in arms:
        return None
    rest: Any = typing.Union[tuple(arm for arm in arms if arm is not type(None))]  # noqa: UP007
    try:
        TypeAdapter(rest).validate_python(None)
    except ValidationError as refused:
        return refused.errors(include_url=False)[0]
    return {"type": "model_type", "input": None}  # which is written short, as a value that may be left out


def nearest_unknown(place: Place) -> Place:
    """The beginning of `place` that UNKNOWN may stand at: a field, a whole part, or an item that says so."""
    depth = 0
    for index in range(len(place)):
        here = place[: index + 1]
        if part_at(place[:index]) is not None or part_at(here) is not None or _has(here, MayBeUnknown):
            depth = index + 1
    return place[:depth]


def homes(key: str, near: Place) -> list[Place]:
    """The parts that have a field `key`, of all those the ones nearest to the part at `near`.

    Names on the way are those of `near` as far as the ways are the same, then NAME or NUMBER.
    """
    found = [_filled(home, near) for home in _homes().get(key, [])]
    most = max((_common(home, near) for home in found), default=0)
    return list(dict.fromkeys(home for home in found if _common(home, near) == most))


def _has(place: Place, metadata: type) -> bool:
    return any(isinstance(each, metadata) for each in getattr(_annotation(place), "__metadata__", ()))


def as_part(annotation: Any) -> type[Part] | None:
    plain = _plain(annotation)
    return plain if isinstance(plain, type) and issubclass(plain, Part) else None


def parts() -> list[type[Part]]:
    """Every type of part that a spec is made of, in the order of the file."""
    return list(places_of_parts())


def places_of_parts() -> dict[type[Part], list[Place]]:
    """Every type of part, with the places that it may have; NAME and NUMBER stand for any."""
    found: dict[type[Part], list[Place]] = {}
    for place, part in _walk(Spec, ()):
        found.setdefault(part, []).append(place)
    return found


def _annotation(place: Place) -> Any:
    annotation: Any = Spec
    for step in place:
        annotation = _within(_plain(annotation), step)
    return annotation


def _plain(annotation: Any) -> Any:
    """The annotation without its metadata and without None."""
    while True:
        origin = typing.get_origin(annotation)
        if origin is Annotated:
            annotation = typing.get_args(annotation)[0]
        elif origin in (typing.Union, types.UnionType):
            annotation = next(arm for arm in typing.get_args(annotation) if arm is not type(None))
        else:
            return annotation


def _within(plain: Any, step: int | str) -> Any:
    """The annotation of what `step` leads to."""
    if (part := as_part(plain)) is not None:
        field = part.model_fields.get(str(step))
        return field.annotation if field else None
    arguments = typing.get_args(plain)
    return arguments[-1] if arguments and typing.get_origin(plain) in (dict, list) else None


def _walk(annotation: Any, place: Place) -> Iterator[tuple[Place, type[Part]]]:
    """Every part with a place that it may have."""
    plain = _plain(annotation)
    if (part := as_part(plain)) is not None:
        yield place, part
        for name, field in part.model_fields.items():
            yield from _walk(field.annotation, (*place, name))
    elif typing.get_origin(plain) in (dict, list):
        step = NAME if typing.get_origin(plain) is dict else NUMBER
        yield from _walk(typing.get_args(plain)[-1], (*place, step))


@functools.cache
def _homes() -> dict[str, list[Place]]:
    found: dict[str, list[Place]] = {}
    for place, part in _walk(Spec, ()):
        for name in part.model_fields:
            found.setdefault(name, []).append(place)
    return found


def _filled(home: Place, near: Place) -> Place:
    filled = list(home)
    for index, step in enumerate(home[: len(near)]):
        if step in (NAME, NUMBER):
            filled[index] = near[index]
        elif step != near[index]:
            break
    return tuple(filled)


def _common(home: Place, near: Place) -> int:
    return next((index for index, (a, b) in enumerate(zip(home, near)) if a != b), min(len(home), len(near)))  # noqa: B905
