"""The way a request takes through a pipeline and its ensembles, and the time each model has on it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta

from serve_app.spec.model import Ensemble
from serve_app.spec.part import UNKNOWN, Unknown, known
from serve_app.spec.pipeline import Pipeline
from serve_app.spec.schema import Spec

Chain = tuple[timedelta, tuple[str, ...]]
Weight = Callable[[str], timedelta]
_FOR_EVER = timedelta(days=1_000_000)


def longest_path(spec: Spec, pipeline: Pipeline, through: str | None = None) -> Chain | None:
    """The chain of steps to the last one whose models' latency budgets add up to most, and that time.

    With `through`, of the chains only in which a stage uses that model, itself or in an ensemble; None where there is
    none. Unknown where a step takes from a later one, or a name leads nowhere.
    """
    return spec.remembered(
        ("longest_path", id(pipeline), through),
        lambda: _longest_path(spec, pipeline, through, lambda name: budget(spec, [name])),
    )


def heaviest_path(spec: Spec, pipeline: Pipeline, weight: Weight) -> Chain:
    """The same by another time than the latency budgets: `weight` of a model or ensemble."""
    path = _longest_path(spec, pipeline, None, weight)
    assert path is not None
    return path


def _longest_path(spec: Spec, pipeline: Pipeline, through: str | None, weight: Weight) -> Chain | None:
    order = {name: index for index, name in enumerate(pipeline.steps)}
    any_way: dict[str, Chain] = {}
    marked: dict[str, Chain] = {}
    for name, step in pipeline.steps.items():
        before = [source for source in step.takes.values() if source in order]
        if any(order[source] >= order[name] for source in before):
            raise Unknown
        models = models_of(spec, pipeline, name)
        own = total(*map(weight, models))
        any_way[name] = _after([any_way[source] for source in before], own, name)
        if through is not None and any(through in reached(spec, model) for model in models):
            marked[name] = any_way[name]
        elif ways := [marked[source] for source in before if source in marked]:
            marked[name] = _after(ways, own, name)
    last = list(pipeline.steps)[-1]
    return any_way[last] if through is None else marked.get(last)


def _after(chains: Sequence[Chain], own: timedelta, name: str) -> Chain:
    """The longest of the chains, and `name` after it."""
    time, names = max(chains, default=(timedelta(), ()))
    return total(time, own), (*names, name)


def models_of(spec: Spec, pipeline: Pipeline, step: str) -> list[str]:
    """The models and ensembles that a step's stage uses. Unknown where there is no such stage."""
    stage = spec.stages.get(pipeline.steps[step].stage)
    if stage is None:
        raise Unknown
    return list(stage.models)


def _inside_out(spec: Spec, name: str) -> list[str]:
    """`name` and all models and ensembles in it, each once and after those that it is made of.

    Unknown where a name leads nowhere or ensembles go in a circle.
    """
    found: dict[str, None] = {}
    within: set[str] = set()
    left = [name]
    while left:
        each = left[-1]
        served = spec.served(each)
        if each in found or each in within or not isinstance(served, Ensemble):
            within.discard(each)
            found.setdefault(left.pop())
            continue
        within.add(each)
        missing = [part for part in dict.fromkeys(step.model for step in served.steps) if part not in found]
        if within.intersection(missing):
            raise Unknown
        left.extend(reversed(missing))
    return list(found)


def reached(spec: Spec, name: str) -> list[str]:
    """The models that a request to the model or ensemble `name` runs in, each once; BLS is not counted.

    Unknown where a name leads nowhere or ensembles go in a circle.
    """
    return spec.remembered(
        ("reached", name),
        lambda: [each for each in _inside_out(spec, name) if not isinstance(spec.served(each), Ensemble)],
    )


def stages_of(spec: Spec, model: str) -> list[str]:
    """The stages that name a model; where none does, those whose requests reach it in an ensemble.

    Unknown where a stage's models are not known, or an ensemble's steps where they must be looked at.
    """
    stages = {name: known(stage.models) for name, stage in spec.stages.items() if stage is not UNKNOWN}
    named = [name for name, models in stages.items() if model in models]
    return named or [
        name
        for name, models in stages.items()
        if any(each in spec.ensembles and model in reached(spec, each) for each in models)
    ]


def longest_chain(spec: Spec, name: str, weight: Weight) -> Chain:
    """The models that a request to `name` runs through one after the other, by the heaviest way, and their weight.

    A model that comes several times is named once. A model is such a chain by itself. Unknown where an ensemble's
    steps, or ensembles, go in a circle.
    """
    chains: dict[str, Chain] = {}
    for each in _inside_out(spec, name):
        served = spec.served(each)
        chains[each] = _through(served, chains) if isinstance(served, Ensemble) else (weight(each), (each,))
    return chains[name]


def _through(ensemble: Ensemble, chains: Mapping[str, Chain]) -> Chain:
    """The longest chain of an ensemble's steps, given those of the models in them."""
    takers: dict[str, set[int]] = {}
    for index, step in enumerate(ensemble.steps):
        for tensor in step.takes.values():
            takers.setdefault(tensor, set()).add(index)
    after = [{taker for tensor in step.gives.values() for taker in takers.get(tensor, ())} for step in ensemble.steps]
    waits = Counter(taker for them in after for taker in them)
    sources: dict[int, Chain] = {}
    ends: list[Chain] = []
    ready = [index for index in range(len(after)) if not waits[index]]
    while ready:
        index = ready.pop()
        before, own = sources.get(index, (timedelta(), ())), chains[ensemble.steps[index].model]
        ends.append((total(before[0], own[0]), tuple(dict.fromkeys((*before[1], *own[1])))))
        for taker in after[index]:
            sources[taker] = max(ends[-1], sources.get(taker, ends[-1]))
            waits[taker] -= 1
            if not waits[taker]:
                ready.append(taker)
    if len(ends) < len(after):
        raise Unknown
    return max(ends)


def total(*times: timedelta) -> timedelta:
    """Their sum. Ensembles of ensembles multiply: more than a few thousand years are as good as those."""
    found = timedelta()
    for time in times:
        found = min(found + time, _FOR_EVER)
    return found


def budget(spec: Spec, names: Sequence[str]) -> timedelta:
    """The latency budgets of models and ensembles, one after the other. Unknown where a model has none."""

    def own(model: str) -> timedelta:
        given = spec.models[model].latency_budget
        if given is None:
            raise Unknown
        return given

    def found(name: str) -> timedelta:
        return spec.remembered(("budget", name), lambda: longest_chain(spec, name, own)[0])

    return total(*map(found, names))


def queue_timeout(spec: Spec, model: str) -> timedelta:
    """How long a request may wait in this model's queue and still be answered in time.

    The SLA less the latency budgets of the longest path through the model, since those are what the rest of the path
    needs; of several pipelines, the most that any of them allows. A model that no pipeline uses gets the service's SLA
    less its own budget.
    """
    return spec.remembered(("queue_timeout", model), lambda: _queue_timeout(spec, model))


def _queue_timeout(spec: Spec, model: str) -> timedelta:
    through = {name: longest_path(spec, pipeline, model) for name, pipeline in spec.pipelines.items()}
    slack = [spec.sla(name) - path[0] for name, path in through.items() if path is not None]
    return max(slack, default=spec.service.sla - (spec.models[model].latency_budget or timedelta()))
