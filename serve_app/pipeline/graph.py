"""A pipeline's steps, each started as soon as what it takes is there.

An optional step that fails or is too late answers None. That is for what may be otherwise a moment later: the load, the
time, a model or stage that is down. What the client sent wrong is told as ever, and a fault of the code stays one.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any

from serve_app.concurrency import together
from serve_app.context import RequestContext, deadline_exceeded
from serve_app.interruption import Interruptible
from serve_app.problem import Problem
from serve_app.spec.pipeline import Pipeline, Step

Call = Callable[[str, str, dict[str, Any], RequestContext], Awaitable[Any]]

logger = logging.getLogger("ray.serve")


async def run(pipeline: Pipeline, inputs: Mapping[str, Any], context: RequestContext, call: Call) -> Any:
    """The last step's result. `call(stage, method, arguments, context)` runs one step.

    The first failure of a step that is not optional cancels the others.
    """
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
        work = partial(call, stage, method, arguments)
        try:
            if entry.optional:
                result = await _unless_it_fails(name, work, context.part_of(entry.within))
            else:
                result = await work(context)
            results[name].set_result(result)
        except Problem as problem:
            raise _in_input(problem, entry, pipeline) from None

    await together(*(step(name) for name in pipeline.steps))
    return results[list(pipeline.steps)[-1]].result()


async def _unless_it_fails(step: str, work: Callable[[RequestContext], Awaitable[Any]], context: RequestContext) -> Any:
    """An optional step's result; None where it has none before the context's deadline."""
    try:
        with Interruptible() as trial:
            trial.interrupt_after(context.remaining(), deadline_exceeded)
            return await work(context)
    except Problem as problem:
        if not problem.is_of_the_service:
            raise
        logger.warning("request %s goes on without %s: %s", context.request_id, step, problem)
        return None


def _in_input(problem: Problem, step: Step, pipeline: Pipeline) -> Problem:
    """The problem, said of the client's input instead of the stage's argument."""
    argument, bracket, index = (problem.field or "").partition("[")
    if argument in step.takes:
        return problem.in_field(step.takes[argument] + bracket + index)
    inputs = [source for source in step.takes.values() if source in pipeline.inputs]
    if problem.field is None and problem.is_of_the_input and len(inputs) == 1:
        return problem.in_field(inputs[0])
    return problem
