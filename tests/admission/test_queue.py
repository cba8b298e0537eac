"""Whose turn it is: by tier, then by arrival, and by the floors over a long time."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from serve_app.admission.queue import Queue, Request


def request(priority: int, kind: str = "k") -> Request:
    return Request(kind, priority, 1e9)


def anyone(_: Request) -> bool:
    return True


def shares(floors: dict[int, float], tiers: list[int], costs: list[float], begun: int = 2000) -> dict[int, float]:
    """The share of all work that each tier gets while all of `tiers` always wait, each with its costs in turn."""
    queue = Queue(floors)
    work: Counter[int] = Counter()
    turns = dict.fromkeys(tiers, 0)
    for priority in tiers:
        queue.add(request(priority))
    for _ in range(begun):
        chosen = queue.next(anyone)
        assert chosen is not None
        cost = costs[turns[chosen.priority] % len(costs)]
        turns[chosen.priority] += 1
        queue.remove(chosen)
        queue.add(request(chosen.priority))
        queue.begun(chosen.priority, cost)
        work[chosen.priority] += cost  # type: ignore[assignment]
    return {priority: work[priority] / sum(work.values()) for priority in tiers}


def test_without_floors_the_most_urgent_gets_all() -> None:
    assert shares({}, [1, 2, 3], [1.0]) == {1: 1.0, 2: 0.0, 3: 0.0}


def test_each_tier_gets_its_floor_and_the_most_urgent_all_the_rest() -> None:
    found = shares({2: 0.2, 3: 0.05}, [1, 2, 3], [1.0])
    assert found == pytest.approx({1: 0.75, 2: 0.2, 3: 0.05}, abs=0.002)


@settings(max_examples=30)
@given(
    st.tuples(st.floats(0.01, 0.3), st.floats(0.01, 0.3), st.floats(0.01, 0.3)),
    st.lists(st.floats(0.05, 5.0), min_size=1, max_size=5),
)
def test_no_tier_that_always_waits_gets_less_than_its_floor(
    floors: tuple[float, float, float], costs: list[float]
) -> None:
    given_floors = dict(enumerate(floors, 2))
    found = shares(given_floors, [1, 2, 3, 4], costs, begun=600)
    for priority, floor in given_floors.items():
        assert found[priority] >= floor - max(costs) / (600 * min(costs))


def test_nothing_is_saved_up_while_nobody_waits() -> None:
    queue = Queue({2: 0.1})
    for _ in range(100):
        queue.begun(1, 1.0)
    for priority in (1, 2, 2):
        queue.add(request(priority))
    taken = []
    while (chosen := queue.next(anyone)) is not None:
        queue.remove(chosen)
        queue.begun(chosen.priority, 1.0)
        taken.append(chosen.priority)
    assert taken == [2, 1, 2]


def test_what_the_others_left_to_a_tier_is_not_held_against_it() -> None:
    queue = Queue({2: 0.1})
    for _ in range(1000):
        queue.begun(2, 1.0)
    queue.add(request(1))
    queue.add(request(2))
    taken = []
    for _ in range(25):
        chosen = queue.next(anyone)
        assert chosen is not None
        queue.remove(chosen)
        queue.add(request(chosen.priority))
        queue.begun(chosen.priority, 1.0)
        taken.append(chosen.priority)
    assert taken.count(2) == 2


def test_a_tier_that_may_not_begin_is_passed_over() -> None:
    queue = Queue({})
    first, second = request(1), request(2)
    queue.add(first)
    queue.add(second)
    assert queue.next(lambda each: each.priority == 2) is second
    assert queue.next(lambda _: False) is None


def test_a_kind_that_may_not_begin_keeps_no_other_waiting() -> None:
    queue = Queue({})
    slow, quick, later = request(1, "slow"), request(1, "quick"), request(1, "slow")
    for each in (slow, quick, later):
        queue.add(each)
    assert queue.next(lambda each: each.kind != "slow") is quick
    assert queue.next(anyone) is slow
    queue.remove(slow)
    assert queue.next(anyone) is quick
    assert queue.least_urgent(0, {}) is later


def test_who_goes_first_for_another_is_the_newest_of_the_least_urgent() -> None:
    queue = Queue({})
    requests = [request(priority) for priority in (3, 2, 3, 2)]
    for each in requests:
        queue.add(each)
    assert queue.least_urgent(1, {}) is requests[2]
    assert queue.least_urgent(2, {}) is requests[2]
    assert queue.least_urgent(3, {}) is None
    queue.remove(requests[2])
    queue.remove(requests[0])
    assert queue.least_urgent(1, {}) is requests[3]


def test_nobody_goes_from_a_place_that_is_kept_for_the_tier() -> None:
    queue = Queue({})
    requests = [request(priority) for priority in (3, 2, 3)]
    for each in requests:
        queue.add(each)
    assert queue.least_urgent(1, {3: 1}) is requests[2]
    queue.remove(requests[2])
    assert queue.least_urgent(1, {3: 1}) is requests[1]
    assert queue.least_urgent(1, {2: 1, 3: 1}) is None


def test_what_is_ahead_counts_the_more_urgent_and_its_own_tier() -> None:
    queue = Queue({})
    for priority, kind in ((1, "slow"), (2, "quick"), (3, "slow")):
        queue.add(request(priority, kind))
    costs = {"slow": 5.0, "quick": 1.0}
    assert list(queue.ahead(1, costs.__getitem__)) == [(1, "slow", 5.0)]
    assert list(queue.ahead(2, costs.__getitem__)) == [(1, "slow", 5.0), (2, "quick", 1.0)]
    assert len(list(queue.ahead(4, costs.__getitem__))) == 3
