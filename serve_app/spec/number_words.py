"""Numbers that are written in another way than plain decimals, and how the spec wants them."""

from __future__ import annotations

import re
from collections.abc import Callable


def as_decimals(text: str, whole: bool) -> str | None:
    """What to write instead of a text that was meant as a number, a whole one or any; None where it is no number."""
    plain = text.strip().replace("_", "").replace(",", "").removeprefix("+")
    for pattern, remedy in _WAYS:
        if re.fullmatch(pattern, plain):
            return remedy(plain, whole)
    return None


def _octal(text: str, whole: bool) -> str:
    return f"write it without the leading 0, as {int(text)}; the octal number would be {int(text, 8)}"


def _leading_zero(text: str, whole: bool) -> str:
    return f"write it without the leading 0, as {int(text)}"


def _other_base(text: str, whole: bool) -> str:
    return f"write it in decimals, as {int(text, 0)}"


def _decimals(text: str, whole: bool) -> str | None:
    number = float(text)
    if number.is_integer() and abs(number) < 10**18:
        return f"write {int(number)} as a plain number, without quotes"
    return None if whole else f"write {number:.15f}".rstrip("0")


def _always(words: str) -> Callable[[str, bool], str]:
    return lambda text, whole: words


_WAYS: list[tuple[str, Callable[[str, bool], str | None]]] = [
    (r"-?0[0-7]+", _octal),
    (r"-?0[0-9]+", _leading_zero),
    (r"0[xX][0-9a-fA-F]{1,15}|0[oO][0-7]{1,20}|0[bB][01]{1,60}", _other_base),
    (r"-?[0-9]{1,3}(:[0-9]{1,2}){1,3}", _always("write it in plain decimals, without colons")),
    (r"[-.]*([iI][nN][fF]|[nN][aA][nN])", _always("write a finite number")),
    (r"-?([0-9]{1,18}\.?|[0-9]{0,18}\.[0-9]{1,18})([eE][-+]?[0-9]{1,2})?", _decimals),
    (r"-?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?", _always("write a number of at most 18 digits")),
    (r"-?[0-9]+(\.[0-9]+)? *[A-Za-z%]+", _always("write the number alone, without a unit")),
]
