"""Whether what is given fits an annotation, judged as a type checker would, and True where that cannot be known."""

from __future__ import annotations

import inspect
import re
import types
from typing import Any, Literal, NewType, Union, get_args, get_origin


def fits(given: Any, wanted: Any) -> bool:
    """Whether values of the type `given`, a class or a list of one, may go where `wanted` is annotated."""
    origin = get_origin(wanted)
    if origin is Union or origin is types.UnionType:
        return any(fits(given, each) for each in get_args(wanted))
    if isinstance(wanted, NewType):
        return fits(given, wanted.__supertype__)
    if origin is Literal:
        return any(isinstance(value, get_origin(given) or given) for value in get_args(wanted))
    items = get_args(wanted)
    return _is_one(get_origin(given) or given, wanted) and (
        len(items) != 1 or _item(given) is None or fits(_item(given), items[0])
    )


def _is_one(given: type, wanted: Any) -> bool:
    """Whether the class `given` is of the type, whatever is in it."""
    class_wanted = _without_arguments(get_origin(wanted) or wanted)
    if wanted is Any or not isinstance(class_wanted, type):
        return True
    if class_wanted in (float, complex):
        return issubclass(given, (int, class_wanted))  # an int is as good as one, says PEP 484
    try:
        return issubclass(given, class_wanted)
    except TypeError:  # of a protocol or a TypedDict, which only looking at values could tell
        return True


def _without_arguments(wanted: Any) -> Any:
    """`Page` for a pydantic model `Page[Item]`, which is a class of its own."""
    return getattr(wanted, "__pydantic_generic_metadata__", {}).get("origin") or wanted


def _item(given: Any) -> Any:
    """What one gets of a list or of bytes one by one; None where `given` is neither."""
    return int if given is bytes else next(iter(get_args(given)), None)


def show_type(annotation: Any) -> str:
    """An annotation as it is written, without the modules: `Sequence[bytes]`."""
    return re.sub(r"\b(?:\w+\.)+(?=\w)", "", inspect.formatannotation(annotation))
