"""The figures of a window."""

from __future__ import annotations

import pytest

from serve_app.bench.samples import Kind, Sample, figures, percentile


def sample(took: float, kind: Kind = "answered", code: str = "200") -> Sample:
    return Sample(0.0, took, kind, code)


@pytest.mark.parametrize(("share", "value"), [(0.5, 5), (0.9, 9), (0.99, 10), (0.01, 1), (1.0, 10)])
def test_a_percentile_is_the_smallest_value_that_so_many_do_not_exceed(share: float, value: float) -> None:
    assert percentile(range(1, 11), share) == value


def test_there_is_no_percentile_of_nothing() -> None:
    assert percentile([], 0.5) is None


def test_latencies_are_those_of_answered_requests_and_refusals_count_apart() -> None:
    quick = [sample(0.001, "refused", "429")] * 98
    found = figures([sample(0.2), sample(0.4), *quick, sample(9, "late", "504"), sample(0, "failed", "500")], 2.0)
    assert (found.answered, found.refused, found.late, found.failed) == (2, 98, 1, 1)
    assert (found.rate, found.p50_ms, found.p99_ms, found.refused_p99_ms) == (1.0, 200.0, 400.0, 1.0)
    assert found.codes == {"200": 2, "429": 98, "504": 1, "500": 1}


def test_a_window_without_answers_has_no_latencies() -> None:
    found = figures([sample(1, "failed", "500")], 1.0)
    assert (found.rate, found.p50_ms, found.p99_ms, found.refused_p99_ms) == (0.0, None, None, None)
