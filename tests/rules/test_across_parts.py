"""Timeouts along paths, what waits in which queue, and idle GPUs: where there is a finding, and where there is none."""

from __future__ import annotations

from typing import Any

import pytest

from tests.rules.case import GONE, MINIMAL, merged, report
from tests.rules.ensemble_cases import ensemble, step
from tests.rules.model_cases import on_gpu
from tests.rules.pipeline_cases import AFTER, STEP, served
from tests.rules.server_cases import GPU

MODEL: dict[str, Any] = MINIMAL["models"]["m"]
TWO_STEPS = {"pipelines": {"echo": {"steps": {"answer": GONE, "first": STEP, "second": AFTER}}}}
JUDGE = {"call": "echo.judge", "takes": {"first": "first", "second": "second"}}


def messages(patch: dict[str, Any], *codes: str) -> dict[str, str]:
    """What the findings with these codes say, by code and place."""
    return {f"{each.code} {each.place}": each.message for each in report(patch).findings if each.code in codes}


def waiting(queue: dict[str, Any], **batching: Any) -> dict[str, Any]:
    """Two steps, one after the other, of the model m."""
    return served({**TWO_STEPS, "models": {"m": {"batching": {"queue": queue, **batching}}}})


# -- the timeouts of a path (P124, P125)


def test_timeouts_that_fit_the_sla_together_are_fine() -> None:
    assert messages(waiting({"timeout": "3900ms"}), "P124", "P125") == {}


def test_tandems_own_timeouts_are_no_fault() -> None:
    assert messages(waiting({}), "P124", "P125") == {}


def test_of_parallel_steps_only_the_longest_way_counts() -> None:
    steps = {"answer": GONE, "first": STEP, "second": STEP, "judged": JUDGE}
    patch = served(
        {"models": {"m": {"batching": {"queue": {"timeout": "3900ms"}}}}, "pipelines": {"echo": {"steps": steps}}}
    )
    assert messages(patch, "P124", "P125") == {}


def test_the_longest_way_is_the_one_with_the_longest_timeouts() -> None:
    """That of the largest budgets, through n alone, has no timeout."""
    models = {
        "m": {"batching": {"queue": {"timeout": "4s"}}},
        "n": {**MODEL, "latency_budget": "1s"},
    }
    slow = {"code": "tests.rules.stages:Echo", "models": ["n"], "runs_in": "ingress"}
    steps = {
        "answer": GONE,
        "first": STEP,
        "then": AFTER,
        "second": {"call": "slow.run", "takes": {"image": "image"}},
        "judged": {"call": "slow.judge", "takes": {"first": "then", "second": "second"}},
    }
    found = messages(
        served({"models": models, "stages": {"slow": slow}, "pipelines": {"echo": {"steps": steps}}}), "P125"
    )
    assert list(found) == ["P125 pipelines.echo"]
    assert "(m 4s + m 4s) and latency budgets along first → then → judged are 9200ms" in found["P125 pipelines.echo"]


def test_a_single_timeout_that_is_too_long_is_said_once() -> None:
    assert list(messages(waiting({"timeout": "7900ms"}), "P124", "P125")) == ["P124 models.m.batching.queue.timeout"]


def test_budgets_that_are_too_long_are_said_once() -> None:
    patch = merged(waiting({"timeout": "90ms"}), {"pipelines": {"echo": {"sla": "199ms"}}})
    assert list(messages(patch, "P110", "P125")) == ["P110 pipelines.echo"]


def test_the_timeouts_of_one_tiers_queues_are_added_up_for_that_tier() -> None:
    found = messages(waiting({"timeout": "1s"}, queues={"second": {"timeout": "4s"}}), "P125")
    assert list(found) == ["P125 pipelines.echo"]
    assert "(m 4s for tier second + m 4s for tier second)" in found["P125 pipelines.echo"]


def test_timeouts_of_different_tiers_are_not_added_up() -> None:
    models = {
        "m": {"batching": {"queues": {"first": {"timeout": "5s"}}}},
        "n": {**MODEL, "batching": {"queue_delay": "1ms", "queues": {"second": {"timeout": "5s"}}}},
    }
    assert messages(served({"models": models, "stages": {"echo": {"models": ["m", "n"]}}}), "P124", "P125") == {}


def both(sla: str, timeout: str) -> dict[str, Any]:
    """An ensemble of m and n in the pipeline echo, each with the timeout."""
    waits = {"batching": {"queue_delay": "1ms", "queue": {"timeout": timeout}}}
    steps = [step("n", gives={"y": "t"}), step("m", {"x": "t"})]
    return served(
        {
            **ensemble(*steps, models={"m": waits, "n": {**MODEL, **waits}}),
            "stages": {"echo": {"models": ["e"]}},
            "pipelines": {"echo": {"sla": sla}},
        }
    )


def test_an_ensembles_steps_count_as_one_after_the_other() -> None:
    found = messages(both("8s", "4s"), "T329", "P124", "P125")
    assert list(found) == ["P125 pipelines.echo"]
    assert "(n 4s + m 4s) and latency budgets along answer are 8200ms" in found["P125 pipelines.echo"]


def test_timeouts_of_an_ensemble_above_the_sla_are_said_once() -> None:
    assert list(messages(both("8s", "5s"), "T329", "P124", "P125")) == ["T329 ensembles.e.steps"]


# -- queues that are too small for what may come (P121)


def sized(batching: dict[str, Any]) -> dict[str, str]:
    return messages(served({"models": {"m": {"max_batch": 2, "batching": batching}}}), "P121")


def test_a_size_that_tiers_take_from_the_default_queue_is_said_once_and_there() -> None:
    found = sized({"queue": {"size": 13}, "queues": {"first": {"timeout": "1s"}, "second": {"timeout": "1s"}}})
    assert list(found) == ["P121 models.m.batching.queue.size"]


def test_a_default_queue_in_which_no_tier_waits_may_have_any_size() -> None:
    assert sized({"queue": {"size": 13}, "queues": {"first": {"size": 14}, "second": {"size": 0}}}) == {}


LEVELS = {"levels": 3, "default": 3}


def test_a_level_that_no_tier_comes_with_may_have_any_size() -> None:
    assert sized({"priorities": LEVELS, "queues": {"3": {"size": 2}}}) == {}
    assert list(sized({"priorities": LEVELS, "queues": {"2": {"size": 2}}})) == ["P121 models.m.batching.queues.2.size"]


def test_a_tier_below_the_lowest_level_waits_in_the_default_one() -> None:
    found = sized({"priorities": {"levels": 1, "default": 1}, "queues": {"1": {"size": 2}}})
    assert "4 of level 1 can wait or run" in found["P121 models.m.batching.queues.1.size"]


@pytest.mark.parametrize(("gpus", "found"), [(1, ["P121 models.m.batching.queue.size"]), (4, [])])
def test_an_instance_on_each_gpu_runs_requests_too(gpus: int, found: list[str]) -> None:
    gpu = merged(GPU, {"triton": {"gpus": gpus}})
    model = {"backend": "onnxruntime", "max_batch": 2, "batching": {"queue": {"size": 9}}}
    assert list(messages(served({"profiles": {"embedded": GONE, "gpu": gpu}, "models": {"m": model}}), "P121")) == found


# -- GPUs that nothing runs on (R062)


def idle(*groups: dict[str, Any], gpus: float = 2, **model: Any) -> dict[str, str]:
    """With these instances of m in a profile that asks for so many GPUs."""
    changes = {"profiles": {"gpu": {"triton": {"gpus": gpus}}}, "models": {"m": model}}
    patch = merged(merged(on_gpu(), changes), {"models": {"m": {"profiles": {"gpu": {"instances": list(groups)}}}}})
    return messages(patch, "R062")


@pytest.mark.parametrize("gpus", [0.5, 1, 2, 8])
def test_a_group_without_gpus_runs_on_all_of_them(gpus: float) -> None:
    assert idle({"kind": "gpu", "count": 1}, gpus=gpus) == {}
    assert idle({"kind": "auto"}, gpus=gpus) == {}


def test_groups_may_share_the_gpus_out() -> None:
    assert idle({"kind": "gpu", "gpus": [0]}, {"kind": "gpu", "gpus": [1]}) == {}


def test_half_a_gpu_is_used_by_an_instance_on_it() -> None:
    assert idle({"kind": "gpu", "gpus": [0]}, gpus=0.5) == {}


def test_instances_on_cpus_leave_all_gpus_idle() -> None:
    assert "1 GPU is asked for, and no instance runs on one" in "".join(idle({"kind": "cpu"}, gpus=1).values())


def test_a_model_that_finds_its_gpus_itself_may_use_all() -> None:
    assert idle({"kind": "model"}) == {}


def test_of_a_backend_that_may_use_gpus_whatever_its_kind_nothing_is_said() -> None:
    assert idle({"kind": "cpu"}, backend="tensorrtllm") == {}
