"""The paths a request takes through a pipeline, and the time each model has on them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from serve_app.spec.schema import Pipeline, Spec


def paths(pipeline: Pipeline) -> Iterator[tuple[str, ...]]:
    """Every chain of steps from one that needs no other to the last one."""

    def back(step: str) -> Iterator[tuple[str, ...]]:
        before = [name for name in pipeline.steps[step].takes.values() if name in pipeline.steps]
        if not before:
            yield (step,)
        for name in before:
            for path in back(name):
                yield (*path, step)

    yield from back(list(pipeline.steps)[-1])


def models_on(spec: Spec, pipeline: Pipeline, path: tuple[str, ...]) -> list[str]:
    """The models that the stages on a path use, in order."""
    return [model for step in path for model in spec.stages[pipeline.steps[step].call.split(".")[0]].models]


def budget(spec: Spec, models: list[str]) -> timedelta:
    return sum((spec.models[model].latency_budget for model in models), timedelta())


def queue_timeout(spec: Spec, model: str) -> timedelta:
    """How long a request may wait in this model's queue and still be answered in time.

    The SLA less the latency budgets of the longest path through the model, since those are what the rest of the path
    needs; of several pipelines, the most that any of them allows. A model that no pipeline uses gets the service's SLA
    less its own budget.
    """
    slack = [
        spec.sla(name) - max(longest)
        for name, pipeline in spec.pipelines.items()
        if (
            longest := [
                budget(spec, used) for path in paths(pipeline) if model in (used := models_on(spec, pipeline, path))
            ]
        )
    ]
    return max(slack, default=spec.service.sla - spec.models[model].latency_budget)
