from __future__ import annotations

from datetime import timedelta

import pytest

from serve_app.spec.units import parse_duration, parse_size, show_duration


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [("90ms", 90), ("8s", 8000), ("1.5s", 1500), ("2min", 120_000), ("250us", 0.25), ("0ms", 0)],
)
def test_a_duration_carries_its_unit(text: str, milliseconds: float) -> None:
    assert parse_duration(text) == timedelta(milliseconds=milliseconds)


@pytest.mark.parametrize("text", [8, 8.0, "8", "8 seconds", "-1s", "s", "", "1e3ms", None, True])
def test_what_is_no_duration_is_refused_with_an_example(text: object) -> None:
    with pytest.raises(ValueError, match="90ms or 8s"):
        parse_duration(text)


def test_a_duration_finer_than_a_microsecond_is_refused() -> None:
    with pytest.raises(ValueError, match="finer than the smallest unit, us"):
        parse_duration("0.0001ms")


@pytest.mark.parametrize(("text", "size"), [("10MiB", 10485760), ("1.5KiB", 1536), ("2GiB", 2147483648), ("7B", 7)])
def test_a_size_carries_its_unit(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", [10, "10", "10MB", "10m"])
def test_what_is_no_size_is_refused_with_an_example(text: object) -> None:
    with pytest.raises(ValueError, match="10MiB"):
        parse_size(text)


@pytest.mark.parametrize("text", ["90ms", "8s", "2min", "1h", "1500us", "0us"])
def test_a_duration_is_shown_as_it_would_be_written(text: str) -> None:
    assert show_duration(parse_duration(text)) == text
