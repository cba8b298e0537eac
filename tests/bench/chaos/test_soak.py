"""What a soak sends."""

from __future__ import annotations

import pytest

from serve_app.bench.chaos.soak import rate_beside
from serve_app.bench.error import BenchError


def test_a_soak_sends_what_the_requests_beside_leave_of_four_fifths() -> None:
    assert rate_beside(1000, 0.0) == pytest.approx(800)
    assert rate_beside(1000, 0.3) == pytest.approx(500)


def test_a_soak_says_so_where_the_requests_beside_leave_nothing() -> None:
    with pytest.raises(BenchError, match="take 85% of the cores: nothing is left of 80%"):
        rate_beside(1000, 0.85)
