"""What is known of how long requests take."""

from __future__ import annotations

import pytest

from serve_app.admission.service_times import REMEMBERED_S, ServiceTimes


def learned(*seconds: float) -> ServiceTimes:
    times = ServiceTimes()
    for each in seconds:
        times.took("k", 0.0, each)
    return times


def test_nothing_is_known_at_first_nor_of_another_kind() -> None:
    assert (ServiceTimes().mean("k"), ServiceTimes().nearly_longest("k", 0.0)) == (0.0, 0.0)
    assert learned(1.0).mean("other") == 0.0


def test_what_always_takes_the_same_takes_that() -> None:
    times = learned(*[2.0] * 50)
    assert (times.mean("k"), times.nearly_longest("k", 2.0)) == pytest.approx((2.0, 2.0))


def test_what_varies_may_take_longer_than_its_mean() -> None:
    times = learned(*[1.0, 3.0] * 50)
    assert times.mean("k") == pytest.approx(2.0, abs=0.2)
    assert times.nearly_longest("k", 3.0) > 3.0


def test_a_change_is_followed_within_some_tens_of_requests() -> None:
    assert learned(*[1.0] * 50, *[4.0] * 30).mean("k") == pytest.approx(4.0, rel=0.05)


def test_what_was_cut_short_counts_where_it_had_taken_longer_already() -> None:
    times = learned(2.0)
    times.took_at_least("k", 0.0, 1.0)
    assert times.mean("k") == 2.0
    times.took_at_least("k", 0.0, 10.0)
    assert times.mean("k") == pytest.approx(3.0)


def test_the_longest_is_forgotten_after_a_while() -> None:
    times = learned(5.0)
    assert times.nearly_longest("k", 5.0 + REMEMBERED_S) > 0
    assert times.nearly_longest("k", 5.1 + REMEMBERED_S) == 0
