"""Single values at random, in the ways in which people write them."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

Draw = Any
NAMES = st.from_regex(r"[A-Za-z][A-Za-z0-9_.:/-]{0,8}", fullmatch=True)
WORDS = st.from_regex(r"[a-z]{1,6}", fullmatch=True)
TEXTS = st.text(st.characters(exclude_categories=["C", "Zl", "Zp"]), max_size=8)
NUMBERS = ["bool", "uint8", "int16", "int32", "int64", "float16", "float32", "float64"]
FILES = st.from_regex(r"[a-z]{1,6}\.(bin|txt)", fullmatch=True)
# What settings and arguments of people's own code may be.
PLAIN: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**6), 10**6) | st.floats(-1000, 1000, width=16) | TEXTS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(WORDS, inner, max_size=2),
    max_leaves=4,
)


def durations(least: int, most: int) -> st.SearchStrategy[str]:
    """So many microseconds, in one of the ways to write them."""
    return st.integers(least, most).flatmap(
        lambda us: st.sampled_from(
            [f"{us}us", *([f"{us // 1000}ms"] if us % 1000 == 0 and us else []), f"{us / 1000}ms"]
        )
    )


def seconds(least: int, most: int) -> st.SearchStrategy[str]:
    return st.integers(least, most).map(lambda number: f"{number}s")


def sizes(least: int, most: int) -> st.SearchStrategy[str]:
    """So many MiB."""
    return st.integers(least, most).map(lambda number: f"{number}MiB")


def percents(least: int = 1) -> st.SearchStrategy[str]:
    return st.integers(least, 100).map(lambda number: f"{number}%") | st.just("12.5%")


def fractions(least: float, most: float) -> st.SearchStrategy[float]:
    return st.floats(least, most).map(lambda number: round(number, 3))


@st.composite
def given(draw: Draw, **fields: st.SearchStrategy[Any]) -> dict[str, Any]:
    """A mapping with any of the fields, each as often as not."""
    return {name: draw(field) for name, field in fields.items() if draw(st.booleans())}


def plain(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """A mapping with all of the fields."""
    return st.fixed_dictionaries(fields)


@st.composite
def tensors(draw: Draw, dtypes: list[str]) -> tuple[str, list[int]]:
    """A type and dimensions, of which at most one is large: a batch of them fits into anything."""
    dims = draw(st.lists(st.sampled_from([-1, 1, 2, 3]), min_size=1, max_size=4))
    if draw(st.booleans()):
        dims[draw(st.integers(0, len(dims) - 1))] = 224
    return draw(st.sampled_from(dtypes)), dims


def written(dtype: str, dims: list[int]) -> str:
    return f"{dtype}[{', '.join(map(str, dims))}]"
