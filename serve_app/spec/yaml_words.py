"""What YAML's parser says, in words that name the mistake."""

from __future__ import annotations

import re

import yaml

from serve_app.spec.findings import Fault, error
from serve_app.spec.part import shown
from serve_app.spec.tensors import DTYPES
from serve_app.spec.yaml_parser import NO_CHARACTER

NOT_YAML = error("Y002", "Something that is not YAML", "it cannot be read", "correct it at that line")

_INDENT = "indent every key of a mapping by the same number of spaces"
_QUOTE = "put the text in quotes"
_WORDS: list[tuple[str, str, str]] = [
    (r"found character '\\t'", "a tab stands where only spaces may", "indent with spaces"),
    (r"found character ('.*') that cannot start", r"a text cannot start with \1", _QUOTE),
    ("mapping values are not allowed", "a second `: ` in one line", f"{_QUOTE} where it holds `: `"),
    ("sequence entries are not allowed", "a list's `- ` stands behind a key", "start the list on a line of its own"),
    ("mapping keys are not allowed", "a key cannot stand here", _INDENT),
    (r"expected ',' or '(.)'", r"a comma is missing, or the bracket is never closed by \1", r"write , or \1 here"),
    (r"expected .*, but found '([\]}])'", r"a \1 that closes nothing", "remove it, or open the bracket"),
    ("expected <block end>, but found '<scalar>'", "something stands behind a text in quotes", _QUOTE),
    ("expected <block end>", "the line does not belong to the mapping or list above it", _INDENT),
    ("invalid indentation or unclosed", "a bracket is never closed, or the line is not indented enough", _INDENT),
    (r"unknown escape character (.*)$", r"\\ and \1 mean nothing in double quotes", "use single quotes, or write \\\\"),
    (NO_CHARACTER, NO_CHARACTER, "write the character itself"),
    ("expected escape sequence", "an escape in double quotes is cut short", "use single quotes, or write \\\\"),
    ("version 1", "a version of YAML that there is no reader for", "remove the %YAML line"),
    ("directive", "a line that starts with % and means nothing", "remove it"),
    ("expected alphabetic or numeric", "a text cannot start with & or *", _QUOTE),
    ("expected chomping or indentation", "| and > start a text of several lines", _QUOTE),
    ("document start", "something stands behind the document's end", "remove it"),
    ("tag", "a tag that YAML cannot read", "write the value without it"),
    ("node content", "a value is missing", "write it"),
]


# `{crop: uint8[112, 112, 3]}`: within braces YAML takes the brackets and commas for its own.
_UNQUOTED = re.compile(rf"\{{.*?:\s*((?:{'|'.join(DTYPES)}|image)\[[^\]\"']*\])")


# `sla:8s`, which YAML takes for a text.
_NO_SPACE = re.compile(r"([\w.-]+):(\S.*)")
_LOOKED_AT = 1000

DEEPER = NOT_YAML.at((), "the line is indented deeper than its mapping", remedy=_INDENT)


def without_colon(line: str) -> Fault:
    """The fault of a line that has no key with a colon."""
    content = re.sub(r"\s+#.*", "", line).lstrip(" -").rstrip()
    if found := _NO_SPACE.fullmatch(content):
        remedy = f"put a space behind it, as {found[1]}: {found[2]}"
        return NOT_YAML.at((), f"no space behind the colon of {shown(content)}", remedy=remedy)
    remedy = "write `key: value`, and indent what goes on"
    return NOT_YAML.at((), "a line without a key and its colon", remedy=remedy)


def never_closed(what: str) -> Fault:
    """The fault of a quote or bracket that is open to the file's end, or beyond what can belong to it."""
    return NOT_YAML.at((), f"a {what} is opened and never closed", remedy=f"close the {what}")


def in_our_words(broken: yaml.MarkedYAMLError, line: str) -> Fault:
    """The fault behind an error of the parser in a line."""
    if found := _UNQUOTED.search(line[:_LOOKED_AT]):
        return NOT_YAML.at((), f"{found[1]} is not in quotes", remedy=f'write "{found[1]}" in quotes')
    said = f"{broken.context or ''}; {broken.problem or ''}"
    for pattern, what, remedy in _WORDS:
        if found := re.search(pattern, said):
            return NOT_YAML.at((), found.expand(what), remedy=found.expand(remedy))
    return NOT_YAML.at((), str(broken.problem or broken.context))
