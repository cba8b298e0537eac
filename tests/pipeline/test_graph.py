from __future__ import annotations

import asyncio
from typing import Any

import pytest

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


async def test_a_step_gets_what_it_takes_and_the_last_result_is_the_answer() -> None:
    async def call(stage: str, method: str, arguments: dict[str, Any]) -> Any:
        return f"{stage}.{method}({', '.join(f'{k}={v}' for k, v in arguments.items())})"

    answer = await run(DIAMOND, {"a": 1, "b": 2}, call)
    assert answer == "three.join(x=one.work(value=1), y=two.work(value=2))"


async def test_steps_that_do_not_need_each_other_run_together() -> None:
    meeting = {"one": asyncio.Event(), "two": asyncio.Event()}

    async def call(stage: str, method: str, arguments: dict[str, Any]) -> str:
        if stage in meeting:
            meeting[stage].set()
            await asyncio.gather(*(event.wait() for event in meeting.values()))
        return stage

    assert await asyncio.wait_for(run(DIAMOND, {"a": 1, "b": 2}, call), 5) == "three"


async def test_the_first_failure_ends_the_pipeline_and_cancels_the_other_steps() -> None:
    cancelled = asyncio.Event()

    async def call(stage: str, method: str, arguments: dict[str, Any]) -> str:
        if stage == "one":
            raise LookupError("first")
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise
        return stage

    with pytest.raises(LookupError, match="first"):
        await asyncio.wait_for(run(DIAMOND, {"a": 1, "b": 2}, call), 5)
    assert cancelled.is_set()


async def test_cancelling_the_pipeline_cancels_its_steps() -> None:
    started, cancelled = asyncio.Semaphore(0), []

    async def call(stage: str, method: str, arguments: dict[str, Any]) -> str:
        started.release()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append(stage)
            raise
        return stage

    task = asyncio.create_task(run(DIAMOND, {"a": 1, "b": 2}, call))
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
    async def call(stage: str, method: str, arguments: dict[str, Any]) -> str:
        if stage == "one":
            raise raised
        return stage

    with pytest.raises(Problem) as refused:
        await run(DIAMOND, {"a": 1, "b": 2}, call)
    assert (refused.value.code, refused.value.field) == (raised.code, told)
