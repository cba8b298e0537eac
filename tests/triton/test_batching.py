from __future__ import annotations

import numpy as np
import pytest

from serve_app.triton.backend.batching import run_requests


class Doubling:
    """Doubles x; fails a run in which any value is negative, and remembers the rows of each run."""

    def __init__(self) -> None:
        self.rows: list[int] = []

    def __call__(self, feed):
        self.rows.append(len(feed["x"]))
        if (feed["x"] < 0).any():
            raise ValueError("negative")
        return [feed["x"] * 2]


def feed(*rows: list[int]) -> dict[str, np.ndarray]:
    return {"x": np.array(rows)}


def test_requests_of_equal_shape_run_as_one_and_each_gets_its_own_rows():
    run = Doubling()
    first, second = run_requests(run, [feed([1, 2]), feed([3, 4], [5, 6])], (ValueError,))
    assert run.rows == [3]
    np.testing.assert_array_equal(first[0], [[2, 4]])
    np.testing.assert_array_equal(second[0], [[6, 8], [10, 12]])


def test_requests_of_other_shapes_run_apart_and_answers_keep_the_order():
    run = Doubling()
    answers = run_requests(run, [feed([1]), feed([2, 3]), feed([4])], (ValueError,))
    assert sorted(run.rows) == [1, 2]
    assert [answer[0].tolist() for answer in answers] == [[[2]], [[4, 6]], [[8]]]


def test_one_bad_request_fails_alone():
    run = Doubling()
    good, bad, other = run_requests(run, [feed([1]), feed([-1]), feed([2])], (ValueError,))
    assert isinstance(bad, ValueError)
    assert (good[0].tolist(), other[0].tolist()) == ([[2]], [[4]])
    assert run.rows == [3, 1, 1, 1]


def test_a_bad_request_by_itself_is_run_once():
    run = Doubling()
    (bad,) = run_requests(run, [feed([-1])], (ValueError,))
    assert isinstance(bad, ValueError)
    assert run.rows == [1]


def test_a_single_request_is_not_copied():
    lone = feed([1, 2])
    seen = []
    run_requests(lambda given: seen.append(given["x"]) or [given["x"]], [lone], (ValueError,))
    assert seen[0] is lone["x"]


def test_a_model_that_loses_rows_fails_its_requests_instead_of_mixing_them_up():
    answers = run_requests(lambda given: [given["x"][:1]], [feed([1]), feed([2], [3])], (ValueError,))
    assert answers[0][0].tolist() == [[1]]
    assert isinstance(answers[1], ValueError)


def test_an_error_that_is_not_the_inputs_fault_is_raised():
    def broken(given):
        raise AttributeError("a bug")

    with pytest.raises(AttributeError):
        run_requests(broken, [feed([1])], (ValueError,))
