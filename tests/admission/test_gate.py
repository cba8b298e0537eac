"""Who may work, who waits, who is sent away and what they are told."""

from __future__ import annotations

import pytest

from serve_app.admission import TierLimits
from serve_app.admission.queue import Request
from serve_app.problem import Problem
from tests.admission.events import Events, limits


def test_no_more_work_at_a_time_than_may() -> None:
    events = Events(limits(2))
    for name in "abc":
        events.come(name)
    assert (events.working, events.waiting) == (["a", "b"], ["c"])
    events.end("b")
    assert events.working == ["a", "c"]


def test_the_more_urgent_comes_first_and_then_the_earlier() -> None:
    events = Events(limits(1))
    for name, priority in {"first": 1, "bulk": 3, "standard": 2, "late": 2, "urgent": 1}.items():
        events.come(name, priority)
    for name in ("first", "urgent", "standard", "late", "bulk"):
        assert events.working == [name]
        events.end(name)


def test_one_too_many_is_refused() -> None:
    events = Events(limits(1, 1))
    for name in "abc":
        events.come(name)
    assert (events.code("c"), events.problems["c"].status) == ("service_full", 429)
    events.end("a")
    events.come("d")
    assert (events.working, events.waiting) == (["b"], ["d"])


def test_the_newest_of_the_least_urgent_makes_room_for_a_more_urgent_one() -> None:
    events = Events(limits(1, 2))
    for name, priority in {"a": 2, "standard": 2, "bulk": 3, "urgent": 1, "second": 1}.items():
        events.come(name, priority)
    assert (events.code("bulk"), events.code("standard")) == ("service_full", "service_full")
    assert events.waiting == ["urgent", "second"]
    events.come("third", 1)
    assert events.code("third") == "service_full"


def test_a_place_to_wait_is_kept_for_a_tier_with_a_floor() -> None:
    events = Events(limits(1, 3, TierLimits(1), TierLimits(2, floor=0.2)))
    for name in ("a", "b", "c", "d"):
        events.come(name, 1)
    assert (events.working, events.waiting, events.code("d")) == (["a"], ["b", "c"], "service_full")
    events.come("bulk", 2)
    events.come("more bulk", 2)
    assert (events.waiting, events.code("more bulk")) == (["b", "c", "bulk"], "service_full")
    events.come("urgent", 1)
    assert events.code("urgent") == "service_full"


def test_a_tier_has_bounds_of_its_own() -> None:
    tiers = TierLimits(1, 3, 10), TierLimits(2, 1, 1)
    events = Events(limits(3, 10, *tiers))
    for name in ("a", "b", "c"):
        events.come(name, 2)
    assert (events.working, events.waiting, events.code("c")) == (["a"], ["b"], "service_full")
    events.come("urgent", 1)
    assert events.working == ["a", "urgent"]
    events.end("urgent")
    assert events.working == ["a"]
    events.end("a")
    assert events.working == ["b"]


def test_what_a_floor_gives_takes_no_place_of_its_tier() -> None:
    """Those that have its places may be stuck behind the more urgent."""
    events = Events(limits(3, 10, TierLimits(1), TierLimits(2, 1, 10, 0.5)))
    for name, priority in {"stuck": 2, "a": 1, "b": 1, "bulk": 2, "more bulk": 2, "c": 1}.items():
        events.come(name, priority)
    assert (events.working, events.waiting) == (["stuck", "a", "b"], ["bulk", "more bulk", "c"])
    events.end("a")
    assert (events.working, events.waiting) == (["stuck", "b", "bulk"], ["more bulk", "c"])
    events.end("b")
    assert (events.working, events.waiting) == (["stuck", "bulk", "c"], ["more bulk"])


def test_what_is_kept_for_a_floor_is_for_those_that_wait_and_not_used_by_those_that_work() -> None:
    events = Events(limits(3, 3, TierLimits(1), TierLimits(2, floor=0.4)))
    for name, priority in {"bulk": 2, "second bulk": 2, "urgent": 1}.items():
        events.come(name, priority)
    for _ in range(2):  # whose bodies are still being sent
        events.gate.enter(Request("/v1/verify", 1, events.now + 100), events.now)
    with pytest.raises(Problem, match="too many requests wait"):
        events.gate.enter(Request("/v1/verify", 1, events.now + 100), events.now)
    events.come("more bulk", 2)
    assert events.waiting == ["more bulk"]


def test_a_tier_that_may_not_wait_is_refused_where_no_place_is_free() -> None:
    events = Events(limits(1, 10, TierLimits(1, 1, 0)))
    events.come("a")
    events.come("b")
    assert events.code("b") == "service_full"


def test_what_cannot_be_answered_before_its_deadline_is_refused_at_once() -> None:
    events = Events(limits(1))
    events.learn(2.0)
    events.come("a")
    events.come("b", allowed=100)
    events.come("c", allowed=5)
    assert (events.code("c"), events.waiting) == ("too_late", ["b"])
    assert "allow more time" in events.problems["c"].detail


def test_it_is_told_to_come_back_when_what_is_ahead_of_it_has_been_done() -> None:
    events = Events(limits(2))
    events.learn(3.0)
    for number in range(7):
        events.come(f"{number}")
    events.come("late", allowed=5)
    # Five wait for two places, and it after them: six times three seconds by two at a time.
    assert events.problems["late"].retry_after == 9


def test_what_is_ahead_is_what_is_as_urgent_or_more() -> None:
    events = Events(limits(1))
    events.learn(2.0)
    events.come("a")
    for number in range(4):
        events.come(f"bulk {number}", 3)
    events.come("urgent", 1, allowed=7)
    events.come("second", 1, allowed=12)
    assert events.waiting[-2:] == ["urgent", "second"]


def test_a_tier_with_few_places_waits_for_those() -> None:
    events = Events(limits(4, 10, TierLimits(1, 4, 10), TierLimits(2, 1, 10)))
    events.learn(2.0)
    for name in ("a", "b", "c"):
        events.come(name, 2)
    events.come("d", 2, allowed=9)
    assert events.code("d") == "too_late"
    assert events.problems["d"].retry_after == 6
    events.come("urgent", 1, allowed=9)
    assert events.working == ["a", "urgent"]


def test_where_a_place_is_free_every_request_is_tried() -> None:
    events = Events(limits(1))
    events.learn(9.0)
    events.come("a", allowed=1)
    assert events.working == ["a"]


def test_a_request_that_waited_too_long_gets_no_work() -> None:
    events = Events(limits(1))
    events.learn(1.0)
    events.come("a")
    events.come("b", allowed=10)
    events.come("c", allowed=30)
    events.end("a", after=9.5)
    assert (events.code("b"), events.working) == ("too_late", ["c"])


def test_a_request_whose_deadline_has_passed_is_told_so() -> None:
    events = Events(limits(1))
    events.come("a")
    events.come("b", allowed=10)
    events.end("a", after=11)
    assert (events.code("b"), events.problems["b"].status) == ("deadline_exceeded", 504)


def test_nobody_is_refused_for_lateness_where_the_spec_does_not_want_it() -> None:
    events = Events(limits(1, refuse_late=False))
    events.learn(5.0)
    events.come("a")
    events.come("b", allowed=3)
    assert events.waiting == ["b"]
    events.end("a", after=2)
    assert events.working == ["b"]


def test_what_was_long_ago_refuses_nobody() -> None:
    events = Events(limits(1))
    events.learn(9.0)
    events.now += 60
    events.come("a")
    events.come("b", allowed=8)
    assert events.waiting == ["b"]


def test_a_client_that_is_gone_frees_its_place() -> None:
    events = Events(limits(1, 1))
    for name in "ab":
        events.come(name)
    events.hang_up("b")
    events.come("c")
    events.hang_up("a")
    assert (events.working, events.waiting) == (["c"], [])


def test_who_is_cut_off_early_does_not_pass_for_quick() -> None:
    events = Events(limits(1))
    events.learn(4.0)
    for name in ("a", "b", "c"):
        events.come(name)
        events.end(name, after=0.01, whole=False)
    events.come("d")
    events.come("e", allowed=3)
    assert events.code("e") == "too_late"


def test_a_slow_kind_does_not_keep_a_quick_one_from_waiting() -> None:
    events = Events(limits(1))
    events.learn(5.0)
    events.learn(0.1, "/v1/faces/embed")
    events.come("a")
    events.come("slow", allowed=4)
    events.come("quick", allowed=4, kind="/v1/faces/embed")
    assert (events.code("slow"), events.waiting) == ("too_late", ["quick"])


def test_other_limits_hold_at_once() -> None:
    events = Events(limits(1))
    for name in "abcd":
        events.come(name)
    events.gate.change(limits(3), events.now)
    assert events.working == ["a", "b", "c"]
    events.gate.change(limits(1), events.now)
    events.end("a")
    assert events.working == ["b", "c"]


def test_what_is_begun_for_a_floor_beside_more_urgent_work_is_marked() -> None:
    tiers = TierLimits(1, 2, 10), TierLimits(2, 2, 10, 0.25)
    events = Events(limits(2, 10, *tiers))
    events.come("alone", 2)
    assert not events.requests["alone"].for_floor
    for name, priority in {"a": 1, "b": 1, "c": 1, "d": 1, "e": 1, "bulk": 2}.items():
        events.come(name, priority)
    for name in ("alone", "a", "b", "c"):
        events.end(name)
    assert events.requests["bulk"].for_floor
    assert "bulk" in events.working
