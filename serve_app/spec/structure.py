"""From YAML's plain values to a Spec: what has the wrong shape is found, and what is right is kept."""

from __future__ import annotations

import difflib
import types
import typing
from typing import Annotated, Any

from pydantic import ValidationError

from serve_app.spec.findings import Fault, Place, error
from serve_app.spec.part import UNKNOWN, Part
from serve_app.spec.schema import Spec

UNKNOWN_KEY = error(
    "Y010", "A key that the spec does not have", "it would have no effect", "remove it, or correct its spelling"
)
MISSING = error("Y011", "A key that must be there is missing", "there is no right value to assume for it", "add it")
WRONG_KIND = error(
    "Y012", "A value of another kind than the key takes", "it cannot be used", "write a value of the kind named"
)
OUT_OF_RANGE = error(
    "Y013", "A number out of its range", "the engines would refuse or misread it", "write one in range"
)
NOT_A_CHOICE = error(
    "Y014", "A word that is none of the choices", "it has no meaning there", "write one of the choices"
)
WRONG_FORM = error("Y015", "A text that is not in the form the key takes", "it cannot be used", "write it in that form")
EMPTY = error(
    "Y016", "An empty list or mapping where something is needed", "there would be nothing to serve", "add one"
)
NOT_A_DURATION = error(
    "Y020",
    "A duration without a unit, or with an unknown one",
    "milliseconds and seconds would be mixed up",
    "write a number and its unit, as 90ms",
)
NOT_A_SIZE = error(
    "Y021",
    "A size without a unit, or with an unknown one",
    "bytes and mebibytes would be mixed up",
    "write a number and its unit, as 10MiB",
)
NOT_A_TENSOR = error(
    "Y022",
    "A tensor that cannot be read",
    "neither engine could be told what it is",
    "write a type and dimensions of 1 and more, or -1 where one varies, without the batch, as uint8[112, 112, 3]",
)
NOT_IMAGES = error(
    "Y023", "An input of a pipeline that cannot be read", "the route could not be made", "write image, or image[0..8]"
)

_BY_TYPE = {
    "duration": NOT_A_DURATION, "size": NOT_A_SIZE, "tensor": NOT_A_TENSOR, "images": NOT_IMAGES, "form": WRONG_FORM,
    "literal_error": NOT_A_CHOICE, "too_short": EMPTY, "missing": MISSING, "extra_forbidden": UNKNOWN_KEY,
}  # fmt: skip
_RANGE = {
    "greater_than_equal": ("ge", "at least"),
    "greater_than": ("gt", "more than"),
    "less_than_equal": ("le", "at most"),
}
_KINDS = {
    "int_type": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "string_type": "text",
    "dict_type": "a mapping",
    "list_type": "a list",
    "model_type": "a mapping",
}
_ROUNDS = 4


def read_structure(data: object) -> tuple[Spec | None, list[Fault]]:
    """The Spec in `data` (which is changed), and what is wrong with its shape.

    What is wrong is UNKNOWN in the Spec, so that the rest can be checked; None where too little is left.
    """
    faults: list[Fault] = []
    for _ in range(_ROUNDS):
        try:
            return Spec.model_validate(data), faults
        except ValidationError as failed:
            errors = failed.errors(include_url=False)
        for each in errors:
            faults.append(_fault(each, data))
        for each in sorted(errors, key=_is_of_a_key):  # what is removed must not come back
            _take_out(each, data)
    return None, faults


def _fault(problem: Any, data: object) -> Fault:
    kind = problem["type"]
    place, part = _place(problem["loc"], data)
    given = _shown(problem["input"])
    if _is_of_a_key(problem):
        fault = WRONG_FORM.at(place, f"{place[-1]!r}: {_lower(problem['msg'])}", remedy="correct the name")
    elif kind == "extra_forbidden":
        close = difflib.get_close_matches(str(place[-1]), list(part.model_fields) if part else [], 1)
        remedy = f"did you mean {close[0]}?" if close else None
        fault = UNKNOWN_KEY.at(place, f"there is no key {place[-1]!r} here", remedy=remedy)
    elif kind == "missing":
        fault = MISSING.at(place, f"{place[-1]} is missing")
    elif kind == "literal_error":
        fault = NOT_A_CHOICE.at(place, f"{given} is none of {problem['ctx']['expected']}")
    elif kind == "too_short":
        fault = EMPTY.at(place, f"{place[-1]} is empty")
    elif kind in _RANGE:
        key, words = _RANGE[kind]
        fault = OUT_OF_RANGE.at(place, f"{given} is out of range", remedy=f"write {words} {problem['ctx'][key]}")
    elif kind in _KINDS:
        fault = WRONG_KIND.at(place, f"{given} is not {_KINDS[kind]}", remedy=f"write {_KINDS[kind]}")
    else:
        what, _, remedy = str(problem["msg"]).partition("; ")
        fault = _BY_TYPE.get(kind, WRONG_FORM).at(place, what, remedy=remedy or None)
    return fault


def _is_of_a_key(problem: Any) -> bool:
    return bool(problem["loc"][-1:] == ("[key]",))


def _shown(value: object) -> str:
    text = repr(value) if isinstance(value, str | int | float | bool | None) else f"a {type(value).__name__}"
    return {"a dict": "a mapping", "None": "nothing"}.get(text, text if len(text) < 60 else f"{text[:57]}…")


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]


def _place(loc: tuple[int | str, ...], data: Any) -> tuple[Place, type[Part] | None]:
    """The part of `loc` that the file has, and the type of the part that holds its end."""
    place: list[int | str] = []
    holder: type[Part] | None = None
    annotation: Any = Spec
    for step in loc:
        if type(data) not in (dict, list) or step == "[key]":
            break
        place.append(step)
        plain = _plain(annotation)
        holder = plain if _is_part(plain) else None
        annotation = _within(plain, step)
        data = (
            data.get(step)
            if isinstance(data, dict)
            else data[step]
            if isinstance(step, int) and step < len(data)
            else None
        )
    return tuple(place), holder


def _item(holder: Any, step: int | str) -> Any:
    if isinstance(holder, dict):
        return holder.get(step)
    return holder[step] if isinstance(step, int) and step < len(holder) else None


def _take_out(problem: Any, data: object) -> None:
    """Put UNKNOWN where the problem is, or remove a key that should not be there."""
    place, _ = _place(problem["loc"], data)
    if _is_of_a_key(problem) or problem["type"] == "extra_forbidden":
        holder = _at(data, place[:-1])
        if isinstance(holder, dict):
            holder.pop(place[-1], None)
        return
    # UNKNOWN can stand for a field and for a whole part, not for an item of plain values.
    annotation: Any = Spec
    depth = 0
    for index, step in enumerate(place):
        plain = _plain(annotation)
        annotation = _within(plain, step)
        if _is_part(plain) or _is_part(_plain(annotation)):
            depth = index + 1
    around: Any = _at(data, place[: depth - 1]) if depth else None
    if type(around) in (dict, list):
        around[place[depth - 1]] = UNKNOWN


def _at(data: Any, place: Place) -> Any:
    for step in place:
        if type(data) not in (dict, list):
            return None
        data = data[step]
    return data


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


def _is_part(plain: Any) -> bool:
    return isinstance(plain, type) and issubclass(plain, Part)


def _within(plain: Any, step: int | str) -> Any:
    """The annotation of what `step` leads to."""
    if _is_part(plain):
        field = plain.model_fields.get(step)
        return field.annotation if field else None
    arguments = typing.get_args(plain)
    return arguments[-1] if arguments and typing.get_origin(plain) in (dict, list) else None
