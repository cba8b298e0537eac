"""What YAML's parser says, in words that name the mistake."""

from __future__ import annotations

import re

import yaml

from serve_app.spec.findings import Fault, error
from serve_app.spec.part import shown
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
    ("expected <block end>, but found ','", "all brackets are closed before this comma", "close the last one later"),
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
_UNQUOTED = re.compile(r"\{.*?:\s*(\w+\[[^\]\"']*\])")


# `sla:8s`, which YAML takes for a text.
_NO_SPACE = re.compile(r"([\w.-]+):(\S.*)")
_LOOKED_AT = 1000

# What looks like a space, a colon or a quote.
_SPACES = "\u00a0\u1680\u2000-\u200b\u202f\u205f\u3000\ufeff"
_COLONS = "\uff1a\ufe55\ua789\u2236"
_QUOTES = "\u201c\u201d\u201e\u201f\u2018\u2019\u201a\u201b\u00ab\u00bb\uff02"
_MARKER = re.compile(r"(?:<{7}|>{7}|\|{7})(?:\s.*)?|={7}\s*")
_ODD_INDENT = re.compile(rf"([ {_SPACES}]*)(?=(?:- +)*[\w./-]+\s*[:{_COLONS}]|- |#)")
_ODD_COLON = re.compile(rf"(\s*(?:- +)*[\w./-]+)([ {_SPACES}]*[:{_COLONS}])([ {_SPACES}]*)")
_ODD_QUOTES = re.compile(rf"(\s*(?:- +)*(?:[\w./-]+: +)?)([{_QUOTES}])[^{_QUOTES}\"']*[{_QUOTES}]\s*(?:#.*)?")
_IN_BRACKETS = re.compile(rf"([\[{{,:]\s*)([{_QUOTES}])([^{_QUOTES}\"']*)[{_QUOTES}](?=\s*[\]}},:])")
_BRACKETS = re.compile(r"\s*(?:- +)*(?:[\w./-]+: +)?[\[{]")
_ODD = re.compile(f"[{_SPACES}{_COLONS}]")

DEEPER = NOT_YAML.at((), "the line is indented deeper than its mapping", remedy=_INDENT)

MARKER = NOT_YAML.at(
    (), "a conflict marker of git is left in the file", remedy="keep one side and remove the lines of the markers"
)
LESS = NOT_YAML.at((), "the line is indented less than the mapping that goes on below it", remedy=_INDENT)
DASH = NOT_YAML.at((), "a dash stands before a key of a mapping", remedy="remove the dash")


def without_colon(line: str) -> Fault:
    """The fault of a line that has no key with a colon."""
    content = re.sub(r"\s+#.*", "", line).lstrip(" -").rstrip()
    if found := _NO_SPACE.fullmatch(content):
        remedy = f"put a space behind it, as {found[1]}: {found[2]}"
        return NOT_YAML.at((), f"no space behind the colon of {shown(content)}", remedy=remedy)
    remedy = "write `key: value`, and indent what goes on"
    return NOT_YAML.at((), "a line without a key and its colon", remedy=remedy)


def is_marker(line: str) -> bool:
    """Whether git wrote the line, between two versions of a text."""
    return _MARKER.fullmatch(line) is not None


def without_odd_characters(line: str, lost: str) -> tuple[int, Fault, str] | None:
    """The column and the fault of a space, colon or quote that YAML takes for a letter, and the line as it was meant.

    A value in such quotes is `lost`.
    """
    meant = _ODD_INDENT.sub(lambda found: " " * len(found[1]), line, count=1) if _ODD_INDENT.match(line) else line
    if (found := _ODD_COLON.match(meant)) and (_ODD.search(found[2]) or _ODD.search(found[3])):
        meant = f"{found[1]}: {meant[found.end() :]}"
    if odd := _ODD.search(line) if meant != line else None:
        name, sign = ("space", " ") if re.match(f"[{_SPACES}]", odd[0]) else ("colon", ":")
        return odd.start(), _no_such(odd[0], name, sign), meant
    if found := _ODD_QUOTES.fullmatch(line):
        return found.start(2), _no_such(found[2], "quote", '"'), f"{found[1]}{lost}"
    if _BRACKETS.match(line):
        outside = re.sub(r"\"[^\"]*\"|(?<!\w)'[^']*'", lambda text: '"' * len(text[0]), line)
        if (found := _IN_BRACKETS.search(outside)) and "#" not in line[: found.start()]:
            return found.start(2), _no_such(found[2], "quote", '"'), _IN_BRACKETS.sub(r'\1"\3"', line)
    return None


def _no_such(odd: str, name: str, sign: str) -> Fault:
    code = f"U+{ord(odd):04X}"
    character = f"'{odd}' ({code})" if odd.isprintable() else code
    remedy = f"write {sign}" if name == "quote" else "write a space" if name == "space" else f"write '{sign}'"
    return NOT_YAML.at((), f"the character {character} is no {name}", remedy=remedy)


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
