"""One mistake in a `{…}` or `[…]` is cut out or mended, so that all else in there can be examined.

Positions are offsets in a text that begins with the line of the outermost bracket and goes on to where, by its
indentation, it has to be closed. What comes back has as many lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_CLOSER = {"[": "]", "{": "}"}
# Quotes that end in the line, where a value may end; comments; and what parts entries.
_TOKEN = re.compile(
    r"""(?<=[\[{,:\s])(?: "(?:\\.|[^"\\\n])*"(?=\s*(?:[,:\]}]|$)) | '(?:''|[^'\n])*'(?=\s*(?:[,:\]}]|$)) )
        | (?<=\s)\#[^\n]* | [\[\]{},]""",
    re.VERBOSE | re.MULTILINE,
)
_KEY = re.compile(r"""\s*(?P<key>"[^"\n]*"|'[^'\n]*'|[\w./\U000f0000-\U0010fffd-]+)\s*:(?=\s|$)""")
_WORD = re.compile(r"\s*([\w./-]+)(?=\s|$)")
# Tabs before and between what stands in a line, and those that indent the lines below it too.
_TABS = re.compile(r"[ \t]*\t[ \t]*(?:[^\n]*\n *\t[ \t]*)*")
_TAB = re.compile(r"^ *\t[ \t]*", re.MULTILINE)
_WITHIN_WORD = re.compile(r"[\w\"']")
# What stands where a comma should, behind a value.
_ODD_COMMA = re.compile(r"[^\w\s\"'\]}]")
# Behind a blank, what can only begin another entry: a key, or an item in quotes or brackets.
_NEXT_ENTRY = {"{": re.compile(r"""("[^"\n]*"|'[^'\n]*'|[\w./-]+)\s*:(\s|$)"""), "[": re.compile(r"""["'\[{]""")}


@dataclass
class _Open:
    """A bracket that is open, where its content begins, and where its last entry does."""

    bracket: str
    begin: int
    entry: int

    @property
    def closer(self) -> str:
        return _CLOSER[self.bracket]


def without_mistake(text: str, start: int, at: int, gap: str) -> str | None:
    """The text without the mistake at `at`, which the parser has come to in the bracket at `start`.

    `gap` stands for what is cut out, as `recovery.py` says. None where only the whole can be cut out.
    """
    within = _open_at(text, start, at)
    ways = list(_ways(text, start, at, within, gap))
    # More may be wrong further on; then the first is the likeliest.
    return next((each for each in ways if _is_balanced(each, start)), ways[0] if ways else None)


def _ways(text: str, start: int, at: int, within: list[_Open], gap: str) -> Iterator[str]:
    """What the text could be without the mistake, the likeliest first."""
    here, without = text[at : at + 1], _put(text, at, at + 1, " ")
    if not within:
        yield from _closed_later(text, start, at) if here == "," else [without] if here in _CLOSER.values() else []
        return
    inner = within[-1]
    if tabs := _TABS.match(text, at):
        deeper = " " * (len(text) - len(text.lstrip(" -")) + 1)
        yield _put(text, at, tabs.end(), _TAB.sub(deeper, tabs[0]))
    elif here in _CLOSER.values() and not _WITHIN_WORD.match(text, at + 1):
        yield from _closed_rightly(text, at, within)
    elif here == "," and not text[inner.entry : at].strip():
        yield without
    else:
        yield from _with_comma(text, at, inner)
        yield _cut(text, inner, _end_of_entry(text, inner, at), gap)
        # The bracket at the mistake may be none.
        yield _cut(text, inner, _end_of_entry(text, inner, at + 1), gap)


def closed(text: str, start: int, gap: str) -> str | None:
    """The text with the bracket at `start` closed at its end; None where it is not sure which one is open."""
    is_sure = len(_open_at(text, start, len(text))) == 1 and text.count("{", start) == 1
    if not is_sure or text[start] != "{":
        return None
    end = _end_of_content(text, start, len(text))
    return _put(text, end, end, f" {gap}}}" if text[end - 1] == ":" else "}")


def _tokens(text: str, start: int) -> Iterator[re.Match[str]]:
    return _TOKEN.finditer(text, start)


def _open_at(text: str, start: int, at: int) -> list[_Open]:
    """The brackets that are open before `at`, the outermost first."""
    found: list[_Open] = []
    for token in _tokens(text, start):
        if token.start() >= at:
            break
        sign = token[0]
        if sign in _CLOSER:
            found.append(_Open(sign, token.end(), token.end()))
        elif sign == "," and found:
            found[-1].entry = token.end()
        elif sign in ("]", "}") and found and found[-1].closer == sign:
            found.pop()
    return found


def _is_balanced(text: str, start: int) -> bool:
    signs = [token[0] for token in _tokens(text, start)]
    opened = sum(sign in _CLOSER for sign in signs)
    return opened * 2 == sum(sign in "[]{}" for sign in signs) and not _open_at(text, start, len(text))


def _closed_rightly(text: str, at: int, within: list[_Open]) -> Iterator[str]:
    """Without a bracket that closes nothing; with the right one for a wrong one, or with one that is missing."""
    inner = within[-1]
    yield _put(text, at, at + 1, " ")
    yield _put(text, at, at + 1, inner.closer)
    if len(within) > 1 and within[-2].bracket == "{" and not text[within[-2].entry : inner.begin - 1].strip():
        yield _put(text, inner.begin - 1, inner.begin, " ")  # a bracket in place of a key
    end = _end_of_list(text, inner, at) if inner.bracket == "[" else at
    yield _put(text, end, end, inner.closer)


def _closed_later(text: str, start: int, at: int) -> Iterator[str]:
    """Without the bracket before `at`, where all is closed too early and what follows is another entry."""
    last = max(token.start() for token in _tokens(text, start) if token.start() < at and token[0] in "]}")
    yield _put(text, last, last + 1, " ")


def _end_of_list(text: str, inner: _Open, at: int) -> int:
    """Before the first comma in a list that a key follows, as keys are not of lists; or `at`."""
    for token in _tokens(text, inner.begin):
        if token.start() >= at:
            break
        if token[0] == "," and _KEY.match(text, token.end()):
            return token.start()
    return at


def _with_comma(text: str, at: int, inner: _Open) -> Iterator[str]:
    """With a comma between two entries, where one is missing there."""
    if text[at : at + 1] == ":":  # of the second one, whose key was taken for a part of the first one's value
        words = text[inner.entry : at].split()
        at = text.rindex(words[-1], 0, at) if words else at
    end = _end_of_content(text, inner.entry, at)
    if end not in (inner.entry, at) and text[end - 1] != ":" and _NEXT_ENTRY[inner.bracket].match(text, at):
        last = text[end - 1]
        odd = last not in text[inner.entry : end - 1] if last in "\"'" else _ODD_COMMA.match(last)
        yield _put(text, end - 1, end, ",") if odd else _put(text, end, end + (text[end] == " "), ",")


def _end_of_content(text: str, begin: int, end: int) -> int:
    """Before the blanks and comments that stand before `end`."""
    comments = {token.end(): token.start() for token in _tokens(text, begin) if token[0].startswith("#")}
    while begin < end and (text[end - 1].isspace() or end in comments):
        end = comments.get(end, end - 1)
    return end


def _cut(text: str, inner: _Open, end: int, gap: str) -> str:
    """Without the last entry of a bracket, which ends at `end`."""
    entry = text[inner.entry : end]
    blank = entry[: len(entry) - len(entry.lstrip())]
    left = gap
    if inner.bracket == "{":
        key, word = _KEY.match(entry), _WORD.match(entry)
        left = f"{key['key']}: {gap}" if key else f"{gap}{word[1] if word else ''}: {gap}"
    return _put(text, inner.entry, end, f"{blank}{left}{chr(10) * (entry.count(chr(10)) - blank.count(chr(10)))}")


def _end_of_entry(text: str, inner: _Open, at: int) -> int:
    depth = 0
    for token in _tokens(text, at):
        sign = token[0]
        if depth == 0 and sign in (",", inner.closer):
            return token.start()
        if sign in _CLOSER:
            depth += 1
        elif sign in ("]", "}") and depth:
            depth -= 1
    return len(text.rstrip())


def _put(text: str, begin: int, end: int, new: str) -> str:
    return text[:begin] + new + text[end:]
