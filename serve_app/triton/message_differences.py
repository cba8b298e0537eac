"""Where two protobuf messages of one type differ, field by field."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from google.protobuf import text_format

_SHOWN = 200


@dataclass(frozen=True)
class Difference:
    """A field, as `dynamic_batching.max_queue_delay_microseconds`, with its value in both messages as text."""

    field: str
    first: str
    second: str


def differences(first: Any, second: Any) -> list[Difference]:
    """Every field in which the messages differ; of a message that only one has, that it is there."""
    return list(_differing(first, second, ""))


def _differing(first: Any, second: Any, path: str) -> Iterator[Difference]:
    for field in first.DESCRIPTOR.fields:
        name = f"{path}{field.name}"
        one, other = getattr(first, field.name), getattr(second, field.name)
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            for key in sorted({*one, *other}):
                yield from _values(one.get(key), other.get(key), f"{name}[{key!r}]")
        elif field.message_type is not None and field.is_repeated:
            for index in range(max(len(one), len(other))):
                yield from _values(_item(one, index), _item(other, index), f"{name}[{index}]")
        elif field.message_type is not None:
            given = one if first.HasField(field.name) else None
            yield from _values(given, other if second.HasField(field.name) else None, name)
        elif field.is_repeated:
            if list(one) != list(other):
                yield Difference(name, str(list(one)), str(list(other)))
        elif one != other:
            yield Difference(name, _scalar(field, one), _scalar(field, other))


def _item(values: Any, index: int) -> Any:
    return values[index] if index < len(values) else None


def _values(one: Any, other: Any, name: str) -> Iterator[Difference]:
    """Two values of a message's field; None where there is none."""
    if one is not None and other is not None and hasattr(one, "DESCRIPTOR"):
        yield from _differing(one, other, f"{name}.")
    elif one != other:
        yield Difference(name, _shown(one), _shown(other))


def _scalar(field: Any, value: Any) -> str:
    if field.enum_type is not None:
        return str(field.enum_type.values_by_number[value].name)
    return repr(value) if isinstance(value, str) else str(value).lower() if isinstance(value, bool) else str(value)


def _shown(value: Any) -> str:
    if value is None:
        return "nothing"
    if not hasattr(value, "DESCRIPTOR"):
        return repr(value)
    text = text_format.MessageToString(value, as_one_line=True)
    return f"{{{text[:_SHOWN]}{'…' if len(text) > _SHOWN else ''}}}"
