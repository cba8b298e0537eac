"""Triton's messages as its HTTP server writes them: every plain field there, 64-bit numbers as numbers."""

from __future__ import annotations

from typing import Any

from google.protobuf.message import Message


def as_json(message: Message) -> dict[str, Any]:
    """Fields of a choice, and messages within it, only where they are set."""
    written: dict[str, Any] = {}
    for field in message.DESCRIPTOR.fields:
        value = getattr(message, field.name)
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            each = field.message_type.fields_by_name["value"]
            written[field.name] = {_key(key): _plain(each, value[key]) for key in value}
        elif field.is_repeated:
            written[field.name] = [_plain(field, item) for item in value]
        elif not field.has_presence or message.HasField(field.name):
            written[field.name] = _plain(field, value)
    return written


def _plain(field: Any, value: Any) -> Any:
    if field.message_type is not None:
        return as_json(value)
    if field.enum_type is not None:
        found = field.enum_type.values_by_number.get(value)
        return value if found is None else found.name
    return value


def _key(key: Any) -> str:
    return str(key).lower() if isinstance(key, bool) else str(key)
