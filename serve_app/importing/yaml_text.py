"""Plain values as the YAML that a person would write: short mappings on one line, texts quoted only where needed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import yaml

_WIDTH = 100
_PLAIN = re.compile(r"[A-Za-z0-9_/][A-Za-z0-9_./-]*")
_ESCAPES = {'"': '\\"', "\\": "\\\\"}
_WORDS = ("on", "off")
_INDENT = "  "


class Block(dict[str, Any]):
    """A mapping that is never put on one line."""


def yaml_lines(value: Any, indent: int = 0) -> Iterator[str]:
    """The lines of a mapping or a list, `indent` levels deep."""
    for opening, item in value.items() if isinstance(value, dict) else (("", item) for item in value):
        lead = f"{_INDENT * indent}{key(opening)}:" if isinstance(value, dict) else f"{_INDENT * indent}-"
        one_line = f"{lead} {flow(item)}"
        if not isinstance(item, dict | list) or not item or (len(one_line) <= _WIDTH and not isinstance(item, Block)):
            yield one_line
        elif isinstance(value, dict):
            yield lead
            yield from yaml_lines(item, indent + 1)
        else:
            first, *rest = yaml_lines(item, indent + 1)
            yield f"{lead} {first.lstrip()}"
            yield from rest


def flow(value: Any) -> str:
    """The value on one line."""
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key(name)}: {flow(item)}' for name, item in value.items())}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(flow, value))}]"
    return scalar(value)


def key(name: str) -> str:
    """A key as one word. `on` and `off` are words here, though old YAML has them for booleans."""
    return name if name in _WORDS else scalar(name)


def scalar(value: str | float | bool | None) -> str:
    """The value as one word, which a spec's reader and any other YAML reader take for the same."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return np.format_float_positional(value, trim="0")  # no exponents: a spec takes them for text
    if isinstance(value, int):
        return str(value)
    if _PLAIN.fullmatch(value) and _is_text(value):
        return value
    return f'"{"".join(_ESCAPES.get(character) or visible(character) for character in value)}"'


def _is_text(word: str) -> bool:
    """Whether YAML 1.1 takes the bare word for a text, unlike `no`, `1_000` or `0x1f`."""
    resolver = yaml.resolver.Resolver()
    tag = resolver.resolve(yaml.ScalarNode, word, (True, False))  # type: ignore[no-untyped-call]
    return bool(tag == "tag:yaml.org,2002:str")


def visible(text: str) -> str:
    """The text with every character that cannot be seen as its escape; no YAML takes those, even in a comment."""
    return "".join(
        character
        if character.isprintable()
        else f"\\U{ord(character):08x}"
        if ord(character) > 0xFFFF
        else f"\\u{ord(character):04x}"
        for character in text
    )
