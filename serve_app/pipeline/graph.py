"""A pipeline's steps, each started as soon as what it takes is there."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from serve_app.concurrency import together
from serve_app.problem import Problem
from serve_app.spec.pipeline import Pipeline, Step

Call = Callable[[str, str, dict[str, Any]], Awaitable[Any]]


async def run(pipeline: Pipeline, inputs: Mapping[str, Any], call: Call) -> Any:
    """The last step's result. `call(stage, method, arguments)` runs one step; the first failure cancels the others."""
    results: dict[str, asyncio.Future[Any]] = {
        name: asyncio.get_running_loop().create_future() for name in pipeline.steps
    }

    async def step(name: str) -> None:
        entry = pipeline.steps[name]
        arguments = {
            argument: inputs[source] if source in inputs else await results[source]
            for argument, source in entry.takes.items()
        }
        stage, method = entry.call.split(".")
        try:
            results[name].set_result(await call(stage, method, arguments))
        except Problem as problem:
            raise _in_input(problem, entry, pipeline) from None

    await together(*(step(name) for name in pipeline.steps))
    return results[list(pipeline.steps)[-1]].result()


def _in_input(problem: Problem, step: Step, pipeline: Pipeline) -> Problem:
    """The problem, said of the client's input instead of the stage's argument."""
    argument, bracket, index = (problem.field or "").partition("[")
    if argument in step.takes:
        return problem.in_field(step.takes[argument] + bracket + index)
    inputs = [source for source in step.takes.values() if source in pipeline.inputs]
    if problem.field is None and problem.is_of_the_input and len(inputs) == 1:
        return problem.in_field(inputs[0])
    return problem
