"""A pipeline's steps, each started as soon as what it takes is there."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from serve_app.concurrency import gather
from serve_app.spec.schema import Pipeline

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
        results[name].set_result(await call(stage, method, arguments))

    await gather([step(name) for name in pipeline.steps])
    return results[list(pipeline.steps)[-1]].result()
