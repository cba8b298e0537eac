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


@pytest.mark.parametrize("text", [8, 8.0, "8", "-1s", "s", "", "1e3ms", None, True])
def test_what_is_no_duration_is_refused_with_an_example(text: object) -> None:
    with pytest.raises(ValueError, match="90ms or 8s"):
        parse_duration(text)


def test_a_duration_finer_than_a_microsecond_is_refused() -> None:
    with pytest.raises(ValueError, match="finer than the smallest unit, us"):
        parse_duration("0.0001ms")


@pytest.mark.parametrize(
    ("text", "meant"), [("8 seconds", "8s"), ("5m", "5min"), ("250usec", "250us"), ("1.5 hours", "1.5h")]
)
def test_another_name_of_a_unit_is_understood_and_refused(text: str, meant: str) -> None:
    with pytest.raises(ValueError, match=f"as {meant}$"):
        parse_duration(text)


@pytest.mark.parametrize(("text", "meant"), [("10MB", "10MiB"), ("512M", "512MiB"), ("1Gi", "1GiB"), ("4 kb", "4KiB")])
def test_another_name_of_a_sizes_unit_is_understood_and_refused(text: str, meant: str) -> None:
    with pytest.raises(ValueError, match=f"as {meant}$"):
        parse_size(text)


@pytest.mark.parametrize("text", ["1000000000s", "9999999999999999us", "99999999999999999999999999GiB"])
def test_more_than_the_engines_can_hold_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="more than both engines can hold"):
        (parse_size if text.endswith("B") else parse_duration)(text)


@pytest.mark.parametrize(("text", "size"), [("10MiB", 10485760), ("1.5KiB", 1536), ("2GiB", 2147483648), ("7B", 7)])
def test_a_size_carries_its_unit(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", [10, "10", "10m"])
def test_what_is_no_size_is_refused_with_an_example(text: object) -> None:
    with pytest.raises(ValueError, match="10MiB"):
        parse_size(text)


@pytest.mark.parametrize("text", ["90ms", "8s", "2min", "1h", "1500us", "0s"])
def test_a_duration_is_shown_as_it_would_be_written(text: str) -> None:
    assert show_duration(parse_duration(text)) == text
