"""When a model that is silent is no longer asked, and when it is again. Moments are made up."""

from __future__ import annotations

import math

import pytest

from serve_app.triton.breaker import Breaker

PATIENCE, OPEN_FOR, PLENTY = 1.0, 10.0, 60.0


class Watched:
    """A breaker that opens after three failures, at moments of the test's choosing."""

    def __init__(self) -> None:
        self.told: list[bool] = []
        self.breaker = Breaker(3, OPEN_FOR, PATIENCE, self.told.append)
        self.renewed = -math.inf

    def may_call(self, now: float, timeout: float = PLENTY) -> bool:
        return self.breaker.ask(now, timeout, self.renewed) == 0

    def silence(self, began: float, ended: float) -> None:
        """A call that waits in vain."""
        assert self.may_call(began)
        self.breaker.unanswered(began, ended, self.renewed)

    def open(self) -> None:
        """Three silences, the last of which ends at the moment 30."""
        for began in (0, 10, 20):
            self.silence(began, began + 10)
        assert self.told == [True]


@pytest.fixture
def watched() -> Watched:
    return Watched()


def test_calls_are_made_until_too_many_in_a_row_got_no_answer(watched: Watched) -> None:
    watched.silence(0, 5)
    watched.silence(5, 10)
    watched.silence(10, 15)
    assert not watched.may_call(15)
    assert watched.told == [True]


def test_calls_at_a_time_count_each(watched: Watched) -> None:
    for _ in range(3):
        assert watched.may_call(0)
    for _ in range(3):
        watched.breaker.unanswered(0, 5)
    assert not watched.may_call(5)


def test_an_answer_between_begins_the_count_anew(watched: Watched) -> None:
    watched.silence(0, 5)
    watched.silence(5, 10)
    watched.breaker.answered(11)
    watched.silence(12, 17)
    watched.silence(17, 22)
    assert watched.told == []


def test_a_call_that_others_were_answered_beside_does_not_count(watched: Watched) -> None:
    """It stood in a queue that moves."""
    for began in range(0, 100, 10):
        watched.breaker.answered(began + 5)
        watched.silence(began, began + 10)
    assert watched.told == []


def test_a_client_that_gives_up_early_does_not_count_however_often_it_asks(watched: Watched) -> None:
    for began in range(100):
        watched.silence(began, began + 0.9 * PATIENCE)
    assert watched.told == []


def test_while_it_is_open_it_says_when_to_come_back(watched: Watched) -> None:
    watched.open()
    assert watched.breaker.ask(30, PLENTY) == OPEN_FOR
    assert watched.breaker.ask(37, PLENTY) == 3


def test_one_call_tries_and_its_answer_lets_all_others_through(watched: Watched) -> None:
    watched.open()
    assert watched.may_call(40)
    assert not watched.may_call(40.5)
    watched.breaker.answered(41)
    assert watched.may_call(41)
    assert watched.told == [True, False]
    watched.silence(42, 50)
    watched.silence(50, 60)
    assert watched.may_call(60)


def test_where_the_one_that_tries_gets_no_answer_another_does_so_later_and_nothing_is_told_twice(
    watched: Watched,
) -> None:
    watched.open()
    for moment in (40, 51, 62):
        assert watched.may_call(moment)
        assert not watched.may_call(moment + 5)
        watched.breaker.unanswered(moment, moment + 5)
        assert not watched.may_call(moment + 6)
    assert watched.told == [True]


def test_who_has_too_little_time_to_tell_is_not_the_one_that_tries(watched: Watched) -> None:
    watched.open()
    assert not watched.may_call(40, timeout=0.5 * PATIENCE)
    assert watched.may_call(40)


@pytest.mark.parametrize("how", ["given up early", "nothing learned"])
def test_where_the_one_that_tries_ends_without_having_told_the_next_one_does(watched: Watched, how: str) -> None:
    watched.open()
    assert watched.may_call(40)
    if how == "given up early":
        watched.breaker.unanswered(40, 40.1)
    else:
        watched.breaker.inconclusive(40, 40.1)
    assert watched.may_call(40.1)


def test_earlier_calls_that_end_late_do_not_let_others_try(watched: Watched) -> None:
    watched.open()
    watched.breaker.unanswered(5, 31)
    watched.breaker.inconclusive(29, 32)
    assert not watched.may_call(39)


def test_a_late_answer_to_an_earlier_call_lets_all_others_through(watched: Watched) -> None:
    watched.open()
    watched.breaker.answered(31)
    assert watched.may_call(31)


def test_while_a_lost_server_is_looked_for_nothing_counts(watched: Watched) -> None:
    watched.renewed = math.inf
    for began in range(0, 100, 10):
        watched.silence(began, began + 10)
    assert watched.told == []


def test_calls_from_before_there_was_a_successor_do_not_count(watched: Watched) -> None:
    watched.silence(0, 10)
    watched.silence(1, 10)
    watched.renewed = 15
    watched.silence(10, 20)
    watched.silence(11, 20)
    watched.silence(12, 20)
    assert watched.told == []


@pytest.mark.parametrize("since", [math.inf, 32], ids=["lost", "found"])
def test_what_was_learned_of_a_lost_server_does_not_keep_requests_from_its_successor(
    watched: Watched, since: float
) -> None:
    watched.open()
    watched.renewed = since
    assert watched.may_call(33)
    assert watched.may_call(33)
    assert watched.told == [True, False]


def test_a_successor_from_before_the_failures_changes_nothing(watched: Watched) -> None:
    watched.renewed = -1
    watched.open()
    assert not watched.may_call(33)
