"""The paths a request takes through a pipeline and its ensembles, and the time each model has on them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta

from serve_app.spec.model import Ensemble
from serve_app.spec.part import Unknown
from serve_app.spec.pipeline import Pipeline
from serve_app.spec.schema import Spec


def paths(pipeline: Pipeline) -> Iterator[tuple[str, ...]]:
    """Every chain of steps from one that needs no other to the last. Unknown where a step takes from a later one."""
    order = {name: index for index, name in enumerate(pipeline.steps)}

    def back(step: str) -> Iterator[tuple[str, ...]]:
        before = [name for name in pipeline.steps[step].takes.values() if name in order]
        if any(order[name] >= order[step] for name in before):
            raise Unknown
        if not before:
            yield (step,)
        for name in dict.fromkeys(before):
            for path in back(name):
                yield (*path, step)

    yield from back(list(pipeline.steps)[-1])


def models_on(spec: Spec, pipeline: Pipeline, path: Sequence[str]) -> list[str]:
    """The models and ensembles that the stages on a path use, in order. Unknown where there is no such stage."""
    found: list[str] = []
    for step in path:
        stage = spec.stages.get(pipeline.steps[step].stage)
        if stage is None:
            raise Unknown
        found.extend(stage.models)
    return found


def chains(spec: Spec, name: str, within: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Every chain of models that a request to `name` runs through: itself, or the steps of the ensemble it is.

    Unknown where an ensemble's steps, or ensembles, go in a circle.
    """
    served = spec.served(name)
    if not isinstance(served, Ensemble):
        yield (name,)
        return
    if name in within:
        raise Unknown

    def back(index: int, after: tuple[int, ...]) -> Iterator[tuple[str, ...]]:
        if index in after:
            raise Unknown
        step = served.steps[index]
        needed = set(step.takes.values())
        before = [number for number, other in enumerate(served.steps) if needed & set(other.gives.values())]
        for own in chains(spec, step.model, (*within, name)):
            if not before:
                yield own
            for number in before:
                for path in back(number, (*after, index)):
                    yield (*path, *own)

    for index in range(len(served.steps)):
        yield from back(index, ())


def reached(spec: Spec, name: str) -> list[str]:
    """The models that a request to the model or ensemble `name` runs in, each once; BLS is not counted."""
    return list(dict.fromkeys(model for chain in chains(spec, name) for model in chain))


def budget(spec: Spec, names: Sequence[str]) -> timedelta:
    """The latency budgets of models and ensembles, one after the other. Unknown where a model has none."""
    return sum((_budget(spec, name) for name in names), timedelta())


def _budget(spec: Spec, name: str) -> timedelta:
    return max(sum((_own(spec, model) for model in chain), timedelta()) for chain in chains(spec, name))


def _own(spec: Spec, model: str) -> timedelta:
    given = spec.models[model].latency_budget
    if given is None:
        raise Unknown
    return given


def queue_timeout(spec: Spec, model: str) -> timedelta:
    """How long a request may wait in this model's queue and still be answered in time.

    The SLA less the latency budgets of the longest path through the model, since those are what the rest of the path
    needs; of several pipelines, the most that any of them allows. A model that no pipeline uses gets the service's SLA
    less its own budget.
    """
    slack = []
    for name, pipeline in spec.pipelines.items():
        used = [models_on(spec, pipeline, path) for path in paths(pipeline)]
        through = [budget(spec, names) for names in used if any(model in reached(spec, name) for name in names)]
        if through:
            slack.append(spec.sla(name) - max(through))
    own = spec.models[model].latency_budget or timedelta()
    return max(slack, default=spec.service.sla - own)
