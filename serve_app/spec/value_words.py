"""What is wrong with a single value, in the project's words instead of pydantic's."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

from serve_app.spec.findings import Rule, error
from serve_app.spec.number_words import as_decimals
from serve_app.spec.part import names_as_list, shown
from serve_app.spec.spelling import did_you_mean

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
    "Y020", "A duration without a unit, or with an unknown one", "milliseconds and seconds would be mixed up",
    "write a number and its unit, as 90ms",
)  # fmt: skip
NOT_A_SIZE = error(
    "Y021", "A size without a unit, or with an unknown one", "bytes and mebibytes would be mixed up",
    "write a number and its unit, as 10MiB",
)  # fmt: skip
NOT_A_TENSOR = error(
    "Y022", "A tensor that cannot be read", "neither engine could be told what it is",
    "write a type and dimensions of 1 and more, or -1 where one varies, without the batch, as uint8[112, 112, 3]",
)  # fmt: skip
NOT_IMAGES = error(
    "Y023",
    "An input of a pipeline that cannot be read",
    "the route could not be made",
    "write image, image[0..8] or flag",
)
TWICE_IN_LIST = error(
    "Y024", "A name that is in a list twice", "the second one would have no effect", "keep one of the two"
)


NOT_A_PERCENTAGE = error(
    "Y025",
    "A percentage that cannot be read",
    "20 and 0.2 would be mixed up",
    "write a number up to 100 and its sign, as 20%",
)


class Words(NamedTuple):
    """The rule that a value breaks, what is wrong, and the remedy and consequence where the rule's own say less."""

    rule: Rule
    what: str
    remedy: str | None = None
    consequence: str | None = None


# The kinds of `invalid`, which say themselves what is wrong.
_OURS = {
    "duration": NOT_A_DURATION,
    "seconds": NOT_A_DURATION,
    "size": NOT_A_SIZE,
    "percentage": NOT_A_PERCENTAGE,
    "tensor": NOT_A_TENSOR,
    "images": NOT_IMAGES,
    "form": WRONG_FORM,
    "choice": NOT_A_CHOICE,
    "twice": TWICE_IN_LIST,
    "kind": WRONG_KIND,
    "nothing": OUT_OF_RANGE,
    "amount": OUT_OF_RANGE,
}
_WHOLE_NUMBER, _NUMBER, _FLAG, _TEXT, _MAPPING, _LIST = (
    "a whole number", "a number", "true or false", "text", "a mapping", "a list",
)  # fmt: skip
_KINDS = {
    _WHOLE_NUMBER: "int_type int_parsing int_parsing_size int_from_float",
    _NUMBER: "float_type float_parsing finite_number decimal_type decimal_parsing",
    _FLAG: "bool_type bool_parsing",
    _TEXT: "string_type string_unicode bytes_type",
    _MAPPING: "dict_type model_type model_attributes_type mapping_type dataclass_type arguments_type",
    _LIST: "list_type tuple_type set_type frozen_set_type iterable_type deque_type",
    "a duration": "time_delta_type time_delta_parsing",
    "a date": "date_type date_parsing datetime_type datetime_parsing",
}
_RANGE = {
    "greater_than_equal": ("ge", "at least"),
    "greater_than": ("gt", "more than"),
    "less_than_equal": ("le", "at most"),
    "less_than": ("lt", "less than"),
    "multiple_of": ("multiple_of", "a multiple of"),
}
_LENGTH = {
    "too_short": ("min_length", "at least", "items"),
    "too_long": ("max_length", "at most", "items"),
    "string_too_short": ("min_length", "at least", "characters"),
    "string_too_long": ("max_length", "at most", "characters"),
}
# Of a key without a value, where it may be left out.
OR_REMOVE = ", or remove the key"
_YES = ("yes", "on", "y", "1", "true")
_NO = ("no", "off", "n", "0", "false")


def describe(problem: Any, key: str | int) -> Words:
    """The words for one of the errors of a pydantic ValidationError, of the value under `key`."""
    kind = str(problem["type"])
    if problem["input"] is None and (kind in _OURS or kind in ("literal_error", "enum")):
        return _no_value(problem, key)
    if kind in _OURS:
        what, _, remedy = str(problem["msg"]).partition("; ")
        return Words(_OURS[kind], what, remedy or None, problem["ctx"].get("consequence"))
    return _SAY.get(kind, _other)(problem, key)


def _no_value(problem: Any, key: str | int) -> Words:
    """Nothing, where a value has a form of its own."""
    kind = str(problem["type"])
    remedy = f"write one of {', '.join(_choices(problem))}" if kind not in _OURS else _OURS[kind].remedy
    if _OURS.get(kind) is WRONG_KIND:
        remedy = str(problem["msg"]).partition("; ")[2] or remedy
    return Words(WRONG_KIND, f"{key} has no value", f"{remedy}{OR_REMOVE}")


def _choices(problem: Any) -> list[str]:
    expected = str(problem["ctx"]["expected"])
    return re.findall(r"'([^']*)'", expected) or [expected]


def _unknown_key(problem: Any, key: str | int) -> Words:
    return Words(UNKNOWN_KEY, f"there is no key {shown(key)} here")


def _missing(problem: Any, key: str | int) -> Words:
    return Words(MISSING, f"{key} is missing")


def _choice(problem: Any, key: str | int) -> Words:
    choices, value = _choices(problem), problem["input"]
    return Words(NOT_A_CHOICE, f"{shown(value)} is none of {', '.join(choices)}", did_you_mean(value, choices))


def _range(problem: Any, key: str | int) -> Words:
    name, words = _RANGE[problem["type"]]
    return Words(OUT_OF_RANGE, f"{shown(problem['input'])} is out of range", f"write {words} {problem['ctx'][name]}")


def _length(problem: Any, key: str | int) -> Words:
    name, words, unit = _LENGTH[problem["type"]]
    value = problem["input"]
    if not value:
        return Words(EMPTY, f"{key} is empty")
    return Words(OUT_OF_RANGE, f"{key} has {len(value)} {unit}", f"write {words} {problem['ctx'][name]}")


def _kind(noun: str) -> Callable[[Any, str | int], Words]:
    def say(problem: Any, key: str | int) -> Words:
        value = problem["input"]
        if value is None:
            return Words(WRONG_KIND, f"{key} has no value", f"write {noun}{OR_REMOVE}")
        if noun == _MAPPING and type(value) is list and any(type(item) is dict for item in value):
            return Words(WRONG_KIND, f"{key} has a dash before its keys", "write them without dashes")
        return Words(WRONG_KIND, f"{shown(value)} is not {noun}", _as_kind(noun, value) or f"write {noun}")

    return say


def _other(problem: Any, key: str | int) -> Words:
    """A sentence of pydantic's about the "input", as the end of one about the value."""
    said = re.sub(r"^(Value error|Assertion failed), ", "", str(problem["msg"]))
    said = re.sub(r"\b(\w+ )?[Ii]nput should\b", "it must", said).replace("Input", "it").replace(" should ", " must ")
    return Words(WRONG_FORM, f"{shown(problem['input'])} cannot be used: {said[:1].lower()}{said[1:]}")


_SAY: dict[str, Callable[[Any, str | int], Words]] = {
    "extra_forbidden": _unknown_key,
    "missing": _missing,
    "literal_error": _choice,
    "enum": _choice,
    **dict.fromkeys(_RANGE, _range),
    **dict.fromkeys(_LENGTH, _length),
    **{kind: _kind(noun) for noun, kinds in _KINDS.items() for kind in kinds.split()},
}


def _as_kind(noun: str, value: object) -> str | None:
    """How to write what was probably meant, as the kind that is wanted."""
    if noun == _TEXT and isinstance(value, bool | int | float):
        return f'put it in quotes, as "{shown(value)}"'
    if noun == _FLAG and isinstance(value, str | int):
        word = str(value).lower()
        return "write true" if word in _YES else "write false" if word in _NO else None
    if noun == _MAPPING and isinstance(value, str) and (found := re.fullmatch(r"(\w+):([^:/\s]\S*)", value)):
        return f"put a space behind the colon, as {found[1]}: {found[2]}"
    if noun == _LIST and (names := names_as_list(value)):
        return f"write {names}"
    if noun in (_WHOLE_NUMBER, _NUMBER) and isinstance(value, str):
        return as_decimals(value, whole=noun == _WHOLE_NUMBER)
    return None
