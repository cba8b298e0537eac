"""How many are worked on at a time, by how long each took."""

from __future__ import annotations

from serve_app.admission.concurrency import Concurrency

WITHIN = 1.0


def ended(concurrency: Concurrency, began: float, now: float, at_once: int) -> None:
    share = (now - began) / WITHIN
    if share <= 1:
        concurrency.in_time(share, at_once)
    else:
        concurrency.too_slow(share, at_once, began, now)


def rounds(concurrency: Concurrency, count: int, alone: float, cores: float, now: float = 0.0) -> float:
    """So many rounds of as many requests as may be, each slower the more there are than cores; answers when."""
    for _ in range(count):
        at_once = concurrency.limit
        began, now = now, now + alone * max(1.0, at_once / cores)
        for left in range(at_once, 0, -1):
            ended(concurrency, began, now, at_once if left == at_once else left)
    return now


def test_it_begins_with_few_and_becomes_as_many_as_may_be_where_that_slows_nobody() -> None:
    concurrency = Concurrency(64, adapts=True)
    assert concurrency.limit == 4
    for _ in range(60):
        ended(concurrency, 0.0, 0.01, concurrency.limit)
    assert concurrency.limit == 64


def test_it_stays_where_each_takes_about_as_long_as_it_may() -> None:
    concurrency = Concurrency(64, adapts=True)
    now = rounds(concurrency, 50, alone=0.25, cores=2)
    for _ in range(50):
        now = rounds(concurrency, 1, alone=0.25, cores=2, now=now)
        assert 6 <= concurrency.limit <= 9  # 8 on 2 cores take a second


def test_one_at_a_time_is_never_too_many() -> None:
    concurrency = Concurrency(8, adapts=True)
    for began in range(100):
        ended(concurrency, began, began + 50, 1)
    assert concurrency.limit == 4
    for began in range(100, 200):
        ended(concurrency, began, began + 0.9, concurrency.limit)
    assert concurrency.limit == 8


def test_requests_that_began_before_a_decrease_lead_to_no_other() -> None:
    concurrency = Concurrency(8, adapts=True)
    for _ in range(8):
        ended(concurrency, 0.0, 0.1, concurrency.limit)
    for at_once in range(8, 1, -1):
        ended(concurrency, 1.0, 3.0, at_once)
    assert concurrency.limit == 4


def test_it_does_not_become_more_while_nobody_needs_more() -> None:
    concurrency = Concurrency(8, adapts=True)
    for _ in range(100):
        ended(concurrency, 0.0, 0.1, 2)
    assert concurrency.limit == 4


def test_where_it_does_not_adapt_it_is_as_many_as_may_be() -> None:
    concurrency = Concurrency(8, adapts=False)
    ended(concurrency, 0.0, 100.0, 8)
    assert concurrency.limit == 8
    concurrency.change(3, adapts=False)
    assert concurrency.limit == 3
