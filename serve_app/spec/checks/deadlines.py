"""How long requests may wait in queues on their way through a pipeline, against its SLA."""

from __future__ import annotations

from datetime import timedelta

from serve_app.spec.batching import QueuePolicy
from serve_app.spec.checks.ensemble_limits import timeouts as timeouts_of_an_ensemble
from serve_app.spec.checks.registry import of_each_model, of_each_pipeline
from serve_app.spec.checks.slack import least_wait, left
from serve_app.spec.findings import Faults, Place, warning
from serve_app.spec.model import Model
from serve_app.spec.paths import budget, heaviest_path, longest_chain, longest_path, models_of, reached, total
from serve_app.spec.pipeline import Pipeline
from serve_app.spec.resolved import Resolved
from serve_app.spec.schema import Spec
from serve_app.spec.units import show_duration

TOO_LATE = warning(
    "P124", "A queue timeout that leaves the rest of the path too little time",
    "a request that waits so long is answered after its deadline", "shorten the timeout, or leave it out",
)  # fmt: skip
TOO_LATE_TOGETHER = warning(
    "P125", "Queue timeouts of a path that together leave its models too little time",
    "a request that waits so long in each queue comes late, and what ran for it before was for nothing",
    "shorten them until they fit",
)  # fmt: skip


@of_each_model
def too_late(spec: Spec, name: str, model: Model) -> Faults:
    if model.batching is None:
        return
    policies: dict[Place, QueuePolicy] = {("queue",): model.batching.queue}
    policies |= {("queues", key): policy for key, policy in model.batching.queues.items()}
    timeouts = {place: policy.timeout for place, policy in policies.items() if policy.timeout}
    for pipeline_name in spec.pipelines if timeouts else ():
        rest = left(spec, pipeline_name, name)
        if rest < least_wait(spec, name):
            continue  # whatever the timeout is: `slack` says so
        for place, timeout in timeouts.items():
            if timeout > rest:
                yield TOO_LATE.at(
                    ("models", name, "batching", *place, "timeout"),
                    f"pipeline {pipeline_name} leaves {show_duration(rest)} of its SLA beside the budgets of its path, "
                    f"and the timeout is {show_duration(timeout)}",
                )


@of_each_pipeline
def too_late_together(spec: Spec, name: str, pipeline: Pipeline) -> Faults:
    budgets = longest_path(spec, pipeline)
    if budgets is not None and budgets[0] <= spec.sla(name):
        for tier in spec.tiers:
            yield from _together(spec, name, pipeline, tier)


def _together(spec: Spec, name: str, pipeline: Pipeline, tier: str) -> Faults:
    used = [model for step in pipeline.steps for model in models_of(spec, pipeline, step)]
    on_the_way = {model for each in used for model in reached(spec, each)}
    waits = {model: wait for model in on_the_way if (wait := _written_timeout(spec, model, tier)[0])}
    if not waits:
        return

    def time(model: str) -> timedelta:
        return total(waits.get(model, timedelta()), budget(spec, [model]))

    longest, steps = heaviest_path(spec, pipeline, lambda served: longest_chain(spec, served, time)[0])
    if longest <= spec.sla(name):
        return
    served = [model for step in steps for model in models_of(spec, pipeline, step)]
    models = [model for each in served for model in longest_chain(spec, each, time)[1] if model in waits]
    alone = any(waits[model] > left(spec, name, model) for model in models)
    within = (each for each in served if each in spec.ensembles)
    if alone or any(any(timeouts_of_an_ensemble(spec, each, spec.ensembles[each])) for each in within):
        return  # said by rules of their own
    parts = " + ".join(f"{model} {show_duration(waits[model])}{_whose(spec, model, tier)}" for model in models)
    yield TOO_LATE_TOGETHER.at(
        ("pipelines", name),
        f"the queue timeouts ({parts}) and latency budgets along {' → '.join(steps)} are {show_duration(longest)}, "
        f"and the SLA is {show_duration(spec.sla(name))}",
    )


def _whose(spec: Spec, model: str, tier: str) -> str:
    return f" for tier {tier}" if _written_timeout(spec, model, tier)[1] else ""


def _written_timeout(spec: Spec, model: str, tier: str) -> tuple[timedelta, bool]:
    """How long a tier's requests may wait by what is written, and whether that is of the tier's queue; else nothing.

    Tandem's own timeout is no part of it: it lets a request wait for what is left of its deadline. Timeouts are the
    same in all profiles.
    """
    found = Resolved(spec, model, spec.primary_profile)
    if found.batching is None:
        return timedelta(), False
    for key, policy in found.batching.queues.items():
        if policy.timeout is not None and found.level(key) == found.level_of(tier):
            return policy.timeout, True
    return found.batching.queue.timeout or timedelta(), False
