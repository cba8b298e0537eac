"""Whether an SLA leaves a request time to wait for a model, beside the latency budgets of its path.

What it leaves is the queue's timeout where the spec gives none, so that nothing of it can be right where this is not.
"""

from __future__ import annotations

from datetime import timedelta

from serve_app.spec.checks.registry import of_each_model, of_each_pipeline, of_the_spec
from serve_app.spec.findings import Fault, Faults, Place, error
from serve_app.spec.model import Model
from serve_app.spec.part import UNKNOWN
from serve_app.spec.paths import longest_path, models_of, queue_timeout, reached
from serve_app.spec.pipeline import Pipeline
from serve_app.spec.resolved import Resolved
from serve_app.spec.schema import Spec
from serve_app.spec.units import show_duration

SHORTEST_TIMEOUT = timedelta(milliseconds=1)
_SHORTEST_SLA = timedelta(milliseconds=1)

SHORT_SLA = error(
    "P114", "An SLA that no request can keep", "every request comes late", "write how long clients may wait, as 8s"
)
NO_SLACK = error(
    "P115", "Budgets that leave nothing of an SLA for waiting",
    "a queue's timeout is what they leave, and a timeout of nothing is none",
    "shorten a budget or the queue delay, or lengthen the SLA",
)  # fmt: skip


def left(spec: Spec, pipeline: str, model: str) -> timedelta:
    """What a pipeline's SLA leaves for waiting beside the budgets of its longest path through a model."""
    path = longest_path(spec, spec.pipelines[pipeline], model)
    return timedelta.max if path is None else spec.sla(pipeline) - path[0]


def least_wait(spec: Spec, model: str) -> timedelta:
    """The least that a queue's timeout has to be, for a lone request to live through the queue delay."""
    return max(Resolved(spec, model, profile).queue_delay for profile in spec.profiles) + SHORTEST_TIMEOUT


def follows(found: Resolved, model_timeout: timedelta | None) -> bool:
    """Whether a queue's timeout is what the SLA leaves, and this too little, for which there is a finding already.

    `model_timeout` is the one that the spec gives that queue.
    """
    given = model_timeout if found.batching is None or model_timeout is not None else found.batching.queue.timeout
    if not found.by_tiers or given is not None:
        return False
    return queue_timeout(found.spec, found.name) < least_wait(found.spec, found.name)


def _has_timeout(spec: Spec, name: str) -> bool:
    """Whether requests may wait for the model for a limited time only."""
    found = Resolved(spec, name, spec.primary_profile)
    if found.batching is None:
        return False
    given = [found.batching.queue.timeout, *(policy.timeout for policy in found.batching.queues.values())]
    return (found.by_tiers and given[0] is None) or any(given)


@of_the_spec
def short_sla(spec: Spec) -> Faults:
    slas: dict[Place, timedelta | None] = {("service", "sla"): spec.service.sla}
    for name, pipeline in spec.pipelines.items():
        if pipeline is not UNKNOWN:
            slas["pipelines", name, "sla"] = pipeline.sla
    for place, sla in slas.items():
        if sla is not UNKNOWN and sla is not None and sla < _SHORTEST_SLA:
            yield SHORT_SLA.at(place, f"it is {show_duration(sla)}, and Ray alone takes longer")


@of_each_pipeline
def no_slack(spec: Spec, name: str, pipeline: Pipeline) -> Faults:
    path, sla = longest_path(spec, pipeline), spec.sla(name)
    if path is None or path[0] > sla or sla < _SHORTEST_SLA:
        return  # said by rules of their own
    used = [model for step in pipeline.steps for model in models_of(spec, pipeline, step)]
    models = list(dict.fromkeys(model for each in used for model in reached(spec, each)))
    if any(_never(spec, spec.models[model]) for model in models):
        return
    for model in models:
        if _has_timeout(spec, model) and left(spec, name, model) < least_wait(spec, model):
            what = f"the budgets along {' → '.join(path[1])} are {show_duration(path[0])}, and the SLA"
            yield _fault(spec, ("pipelines", name), what, sla, left(spec, name, model), model)
            return


@of_each_model
def no_slack_alone(spec: Spec, name: str, model: Model) -> Faults:
    """Of a model that no pipeline uses, and whose requests have the service's SLA."""
    budget, sla = model.latency_budget, spec.service.sla
    if budget is None or _never(spec, model) or sla < _SHORTEST_SLA or not _has_timeout(spec, name):
        return
    used = any(longest_path(spec, pipeline, name) is not None for pipeline in spec.pipelines.values())
    if not used and sla - budget < least_wait(spec, name):
        what = f"it is {show_duration(budget)}, and the service's SLA"
        yield _fault(spec, ("models", name, "latency_budget"), what, sla, max(timedelta(), sla - budget), name)


def _never(spec: Spec, model: Model) -> bool:
    """Whether a model's budget leaves nothing of any SLA, which has a rule of its own."""
    return model.latency_budget is not None and model.latency_budget >= spec.longest_sla


def _fault(spec: Spec, place: Place, what: str, sla: timedelta, rest: timedelta, model: str) -> Fault:
    needs, delay = show_duration(SHORTEST_TIMEOUT), least_wait(spec, model) - SHORTEST_TIMEOUT
    if delay:
        needs = f"its queue delay of {show_duration(delay)} and {needs} more"
    often = "always" if rest < delay else "often"
    return NO_SLACK.at(
        place,
        f"{what} of {show_duration(sla)} leaves {show_duration(rest)} to wait for {model}, which needs {needs}",
        consequence=f"by no longer timeout than that a lone request will {often} fail" if rest else None,
    )
