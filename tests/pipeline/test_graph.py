from __future__ import annotations

import asyncio
import logging
import time
from datetime import timedelta
from typing import Any

import pytest

from serve_app.context import RequestContext
from serve_app.pipeline.graph import run
from serve_app.problem import Problem
from serve_app.spec.pipeline import Pipeline

DIAMOND = Pipeline.model_validate(
    {
        "route": "/x",
        "summary": "x",
        "inputs": {"a": "image", "b": "image"},
        "steps": {
            "left": {"call": "one.work", "takes": {"value": "a"}},
            "right": {"call": "two.work", "takes": {"value": "b"}},
            "both": {"call": "three.join", "takes": {"x": "left", "y": "right"}},
        },
    }
)
INPUTS = {"a": 1, "b": 2}


def context(seconds: float = 60) -> RequestContext:
    return RequestContext("of-this-test", 1, time.time() + seconds)


def with_optional(name: str, **how: Any) -> Pipeline:
    step = DIAMOND.steps[name].model_copy(update={"optional": True, **how})
    return DIAMOND.model_copy(update={"steps": {**DIAMOND.steps, name: step}})


async def test_a_step_gets_what_it_takes_and_the_last_result_is_the_answer() -> None:
    async def call(stage: str, method: str, arguments: dict[str, Any], _: RequestContext) -> Any:
        return f"{stage}.{method}({', '.join(f'{k}={v}' for k, v in arguments.items())})"

    answer = await run(DIAMOND, INPUTS, context(), call)
    assert answer == "three.join(x=one.work(value=1), y=two.work(value=2))"


async def test_steps_that_do_not_need_each_other_run_together() -> None:
    meeting = {"one": asyncio.Event(), "two": asyncio.Event()}

    async def call(stage: str, method: str, arguments: dict[str, Any], _: RequestContext) -> str:
        if stage in meeting:
            meeting[stage].set()
            await asyncio.gather(*(event.wait() for event in meeting.values()))
        return stage

    assert await asyncio.wait_for(run(DIAMOND, INPUTS, context(), call), 5) == "three"


async def test_the_first_failure_ends_the_pipeline_and_cancels_the_other_steps() -> None:
    cancelled = asyncio.Event()

    async def call(stage: str, method: str, arguments: dict[str, Any], _: RequestContext) -> str:
        if stage == "one":
            raise LookupError("first")
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise
        return stage

    with pytest.raises(LookupError, match="first"):
        await asyncio.wait_for(run(DIAMOND, INPUTS, context(), call), 5)
    assert cancelled.is_set()


async def test_cancelling_the_pipeline_cancels_its_steps() -> None:
    started, cancelled = asyncio.Semaphore(0), []

    async def call(stage: str, method: str, arguments: dict[str, Any], _: RequestContext) -> str:
        started.release()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append(stage)
            raise
        return stage

    task = asyncio.create_task(run(DIAMOND, INPUTS, context(), call))
    await started.acquire()
    await started.acquire()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert sorted(cancelled) == ["one", "two"]


@pytest.mark.parametrize(
    ("raised", "told"),
    [
        (Problem(422, "no_face", "x"), "a"),
        (Problem(422, "no_face", "x", field="value"), "a"),
        (Problem(422, "no_face", "x", field="value[2]"), "a[2]"),
        (Problem(422, "no_face", "x", field="other"), "other"),
        (Problem(503, "model_unavailable", "x"), None),
    ],
    ids=["unnamed", "by its argument", "one of several", "something else", "not of a picture"],
)
async def test_a_problem_of_a_picture_names_the_clients_input(raised: Problem, told: str | None) -> None:
    async def call(stage: str, method: str, arguments: dict[str, Any], _: RequestContext) -> str:
        if stage == "one":
            raise raised
        return stage

    with pytest.raises(Problem) as refused:
        await run(DIAMOND, INPUTS, context(), call)
    assert (refused.value.code, refused.value.field) == (raised.code, told)


class Failing:
    """Runs steps, of which the first stage's does what it is told."""

    def __init__(self, fault: BaseException | None = None):
        self._fault = fault
        self.contexts: dict[str, RequestContext] = {}
        self.cancelled = False

    async def __call__(self, stage: str, method: str, arguments: dict[str, Any], context: RequestContext) -> Any:
        self.contexts[stage] = context
        if stage != "one":
            return arguments
        if self._fault is not None:
            raise self._fault
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.cancelled = True
            raise


OF_THE_SERVICE = [
    Problem(503, "model_unavailable", "x"),
    Problem(503, "model_failed", "x"),
    Problem(503, "stage_unavailable", "x"),
    Problem(504, "deadline_exceeded", "x"),
    Problem(429, "queue_full", "x"),
]


@pytest.mark.parametrize("problem", OF_THE_SERVICE, ids=lambda problem: problem.code)
async def test_without_an_optional_step_that_fails_the_rest_is_answered_and_the_log_says_why(
    problem: Problem, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "ray.serve"):
        answer = await run(with_optional("left"), INPUTS, context(), Failing(problem))
    assert answer == {"x": None, "y": {"value": 2}}
    assert [record.getMessage() for record in caplog.records] == [
        f"request of-this-test goes on without left: {problem.code}: x"
    ]


@pytest.mark.parametrize(
    "fault",
    [Problem(422, "no_face", "x"), Problem(415, "not_an_image", "x"), Problem(400, "bad", "x"), TypeError("a bug")],
    ids=["no face", "no picture", "malformed", "a bug"],
)
async def test_what_a_client_sent_wrong_and_a_fault_of_the_code_are_told_of_an_optional_step_too(
    fault: Exception,
) -> None:
    with pytest.raises(type(fault)) as raised:
        await run(with_optional("left"), INPUTS, context(), Failing(fault))
    assert str(raised.value) == str(fault)


async def test_a_step_that_is_not_optional_fails_for_the_whole_pipeline() -> None:
    with pytest.raises(Problem, match="model_unavailable"):
        await run(with_optional("right"), INPUTS, context(), Failing(OF_THE_SERVICE[0]))


@pytest.mark.parametrize("how", [{"within": timedelta(milliseconds=50)}, {}], ids=["its own time", "half of the rest"])
async def test_an_optional_step_that_is_late_is_cancelled_and_the_rest_is_in_time(how: dict[str, Any]) -> None:
    call = Failing()
    assert await run(with_optional("left", **how), INPUTS, context(60 if how else 1), call) == {
        "x": None,
        "y": {"value": 2},
    }
    await asyncio.sleep(0)
    assert call.cancelled


async def test_an_optional_step_is_told_its_own_deadline_and_the_others_that_of_the_request() -> None:
    whole, call = context(60), Failing(OF_THE_SERVICE[0])
    await run(with_optional("left", within=timedelta(seconds=5)), INPUTS, whole, call)
    assert time.time() < call.contexts["one"].deadline <= time.time() + 5
    assert call.contexts["two"] == call.contexts["three"] == whole


async def test_time_of_its_own_never_takes_an_optional_step_beyond_half_of_what_is_left() -> None:
    whole, call = context(60), Failing(OF_THE_SERVICE[0])
    await run(with_optional("left", within=timedelta(seconds=59)), INPUTS, whole, call)
    assert call.contexts["one"].deadline < whole.deadline - 29


async def test_the_deadline_of_the_request_itself_is_told_of_an_optional_step_too() -> None:
    with pytest.raises(Problem, match="deadline_exceeded"):
        await run(with_optional("left"), INPUTS, context(-1), Failing(OF_THE_SERVICE[0]))


async def test_cancelling_the_pipeline_cancels_its_optional_step() -> None:
    call = Failing()
    task = asyncio.create_task(run(with_optional("left"), INPUTS, context(), call))
    while "one" not in call.contexts:
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.sleep(0)
    assert call.cancelled
