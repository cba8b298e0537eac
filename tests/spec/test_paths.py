from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from serve_app.spec import Spec
from serve_app.spec.part import Unknown
from serve_app.spec.paths import budget, longest_path, queue_timeout, reached
from tests.rules.case import MINIMAL, merged


def model(budget_ms: int) -> dict[str, Any]:
    return {**MINIMAL["models"]["m"], "latency_budget": f"{budget_ms}ms"}


def ms(milliseconds: int) -> timedelta:
    return timedelta(milliseconds=milliseconds)


def ensemble(*steps: tuple[str, list[str], list[str]]) -> dict[str, Any]:
    return {
        "inputs": {"x": "float32[4]"},
        "outputs": {"y": "float32[4]"},
        "max_batch": 8,
        "steps": [
            {
                "model": name,
                "takes": {f"in{index}": tensor for index, tensor in enumerate(takes)},
                "gives": {f"out{index}": tensor for index, tensor in enumerate(gives)},
            }
            for name, takes, gives in steps
        ],
    }


def spec(patch: dict[str, Any]) -> Spec:
    return Spec.model_validate(merged(MINIMAL, patch))


def stage(*models: str) -> dict[str, Any]:
    return {"code": "tests.rules.stages:Echo", "models": list(models), "runs_in": "ingress"}


def pipeline(**steps: list[str]) -> dict[str, Any]:
    """Steps named after their stages, and what each takes."""
    return {
        "route": "/v1/x",
        "summary": "x",
        "inputs": {"image": "image"},
        "steps": {
            name: {"call": f"{name}.run", "takes": {f"a{index}": source for index, source in enumerate(sources)}}
            for name, sources in steps.items()
        },
    }


FORK = spec(
    {
        "models": {"a": model(10), "b": model(20), "c": model(40), "d": model(5)},
        "stages": {"first": stage("a"), "left": stage("b"), "right": stage("c"), "last": stage("d")},
        "pipelines": {
            "p": {"sla": "1s", **pipeline(first=["image"], left=["first"], right=["image"], last=["left", "right"])}
        },
    }
)


def test_the_longest_path_is_the_one_with_the_largest_budgets() -> None:
    assert longest_path(FORK, FORK.pipelines["p"]) == (ms(45), ("right", "last"))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("b", (ms(35), ("first", "left", "last"))),
        ("d", (ms(45), ("right", "last"))),
        ("m", None),
    ],
)
def test_the_longest_path_through_a_model_may_be_a_shorter_one(name: str, expected: object) -> None:
    assert longest_path(FORK, FORK.pipelines["p"], name) == expected


def test_the_queue_timeout_is_what_the_path_through_the_model_leaves() -> None:
    assert queue_timeout(FORK, "b") == ms(1000 - 35)
    assert queue_timeout(FORK, "c") == ms(1000 - 45)
    assert queue_timeout(FORK, "m") == ms(8000 - 100)  # no pipeline uses it


def test_many_ways_to_one_step_take_no_longer_than_few() -> None:
    """Sixty steps that each take the two before them have more paths than could be walked one by one."""
    names = [f"s{index}" for index in range(60)]
    steps = {name: names[max(0, index - 2) : index] or ["image"] for index, name in enumerate(names)}
    found = spec({"stages": {name: stage("m") for name in names}, "pipelines": {"p": pipeline(**steps)}})
    assert longest_path(found, found.pipelines["p"]) == (ms(6000), tuple(names))


def test_an_ensembles_budget_is_that_of_its_longest_chain() -> None:
    """a and b run at the same time, c after both."""
    found = spec(
        {
            "models": {"a": model(10), "b": model(20), "c": model(40)},
            "ensembles": {"e": ensemble(("c", ["s", "t"], ["y"]), ("a", ["x"], ["s"]), ("b", ["x"], ["t"]))},
        }
    )
    assert budget(found, ["e"]) == ms(60)
    assert budget(found, ["e", "a"]) == ms(70)
    assert reached(found, "e") == ["c", "a", "b"]


def test_an_ensemble_in_an_ensemble_counts_with_all_its_steps() -> None:
    found = spec(
        {
            "models": {"a": model(10), "b": model(20)},
            "ensembles": {
                "inner": ensemble(("a", ["x"], ["t"]), ("b", ["t"], ["y"])),
                "outer": ensemble(("inner", ["x"], ["t"]), ("a", ["t"], ["y"])),
            },
        }
    )
    assert budget(found, ["outer"]) == ms(40)
    assert reached(found, "outer") == ["a", "b"]


@pytest.mark.parametrize(
    "ensembles",
    [
        {"e": ensemble(("m", ["x", "t"], ["s"]), ("m", ["s"], ["t"]))},
        {"e": ensemble(("e", ["x"], ["y"]))},
        {"e": ensemble(("f", ["x"], ["y"])), "f": ensemble(("e", ["x"], ["y"]))},
        {"e": ensemble(("nobody", ["x"], ["y"]))},
    ],
    ids=["steps in a circle", "itself", "two of each other", "no such model"],
)
def test_a_circle_or_a_missing_model_has_no_budget(ensembles: dict[str, Any]) -> None:
    with pytest.raises(Unknown):
        budget(spec({"ensembles": ensembles}), ["e"])


def nested(depth: int, *inner: tuple[str, list[str], list[str]]) -> Spec:
    """An ensemble e0 of e1 twice, which is one of e2 twice, and so on; the last is of `inner`."""
    ensembles = {
        f"e{level}": ensemble((f"e{level + 1}", ["x"], ["t"]), (f"e{level + 1}", ["t"], ["y"]))
        for level in range(depth)
    }
    return spec({"ensembles": {**ensembles, f"e{depth}": ensemble(*inner)}})


def test_ensembles_in_ensembles_take_the_time_of_each_of_their_steps() -> None:
    assert budget(nested(10, ("m", ["x"], ["y"])), ["e0"]) == ms(100) * 2**10


def test_a_tower_of_ensembles_is_measured_however_high() -> None:
    tower = nested(2000, ("m", ["x"], ["y"]))
    assert budget(tower, ["e0"]) == timedelta(days=1_000_000)
    assert reached(tower, "e0") == ["m"]


def test_a_tower_of_ensembles_that_stands_on_its_own_top_cannot_be_known() -> None:
    with pytest.raises(Unknown):
        reached(nested(2000, ("e0", ["x"], ["y"])), "e0")
