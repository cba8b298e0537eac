"""Models whose code calls other models (BLS): who exists, who waits for whom, and what a call leaves behind."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from serve_app.spec.checks.ensembles import steps_of
from serve_app.spec.checks.registry import of_each_model, of_each_model_in_each_profile, of_the_spec
from serve_app.spec.circles import on_circles, reachable
from serve_app.spec.findings import Faults, error, warning
from serve_app.spec.model import Model
from serve_app.spec.part import UNKNOWN, Unknown
from serve_app.spec.paths import budget, reached, total
from serve_app.spec.resolved import Resolved
from serve_app.spec.schema import Spec
from serve_app.spec.spelling import did_you_mean
from serve_app.spec.units import show_duration

NO_MODEL = error(
    "T330", "A call of a model that does not exist", "the call fails, and the request with it",
    "correct the name, or add the model",
)  # fmt: skip
CIRCLE = error(
    "T331", "Models that call each other",
    "a request waits for an instance that waits for this request, and both are lost", "break the circle",
)  # fmt: skip
NO_CODE = warning(
    "T332", "Calls of a model without code to call", "it has no effect: this backend calls no models",
    "remove calls, or write backend: python",
)  # fmt: skip
NO_PRIORITY = warning(
    "T333", "A call of a model with priorities",
    "Triton's calls from a model carry none, and urgent requests wait among all others of the default level",
    "write priorities: none, with no queue policy, or unscheduled: true for the model that is called",
)  # fmt: skip
NO_WAKE_UP = warning(
    "T334", "A call of a model with a queue policy",
    "nothing wakes its queue as the stages' calls do, and under load it stands still for up to 500 ms",
    "write priorities: none, with no queue policy, or unscheduled: true for the model that is called",
)  # fmt: skip
FEW_CALLERS = warning(
    "T335", "Fewer callers than a batch has places",
    "no batch is ever full, and most are of 1, unless the code calls asynchronously or for a whole batch",
    "give the caller more instances, or lower the max_batch of the model that is called",
)  # fmt: skip
OVER_BUDGET = error(
    "T336", "A call that takes longer than the caller may", "the caller breaks its budget whenever it calls",
    "raise the caller's latency_budget, or lower that of the model that is called",
)  # fmt: skip
TOGETHER_OVER_BUDGET = warning(
    "T337", "Calls that together take longer than the caller may",
    "the caller breaks its budget unless it calls at the same time, or not all of them",
    "raise the caller's latency_budget, or lower those of the models that are called",
)  # fmt: skip

_WITHOUT_CODE = ("onnxruntime", "tensorrt", "pytorch", "tensorflow", "openvino", "fil")


@of_each_model
def models_exist(spec: Spec, name: str, model: Model) -> Faults:
    there_is = [*spec.models, *spec.ensembles]
    for called in model.calls:
        if called not in there_is:
            known = ", ".join(there_is)
            yield NO_MODEL.at(
                ("models", name, "calls"),
                f"there is no model {called!r}; there is {known}",
                remedy=did_you_mean(called, there_is),
            )


@of_the_spec
def circle(spec: Spec) -> Faults:
    uses = {name: model.calls for name, model in spec.models.items() if model is not UNKNOWN}
    for name, ensemble in spec.ensembles.items():
        if ensemble is not UNKNOWN and ensemble.steps is not UNKNOWN and name not in uses:
            uses[name] = [step.model for _, step in steps_of(name, ensemble)]
    uses = {name: names for name, names in uses.items() if names is not UNKNOWN}
    for name in on_circles(uses):
        for called in uses[name] if name in spec.models else ():
            if name in reachable(uses, called):
                back = "itself" if called == name else f"{called}, which comes back to {name}"
                yield CIRCLE.at(("models", name, "calls"), f"{name} calls {back}")


@of_each_model_in_each_profile
def no_code(found: Resolved) -> Faults:
    if found.model.calls and (found.has_tandems_code or found.backend in _WITHOUT_CODE):
        backend = "Tandem's ONNX code" if found.has_tandems_code else f"the {found.backend} backend"
        yield NO_CODE.at(("models", found.name, "calls"), f"{found.name} runs in {backend} in profile {found.profile}")


def _called(found: Resolved) -> Iterator[Resolved]:
    """The models that its calls run in, in the same profile."""
    for called in found.model.calls:
        for model in reached(found.spec, called):
            yield Resolved(found.spec, model, found.profile)


@of_each_model_in_each_profile
def no_priority(found: Resolved) -> Faults:
    for called in _called(found):
        batching = called.batching
        if batching is None:
            continue
        levels = len(found.spec.tiers) if called.by_tiers else batching.priorities.levels or 0
        if batching.priorities.use != "none" and levels > 1:
            level = f"tier {found.spec.default_tier}'s" if called.by_tiers else f"level {batching.priorities.default}"
            yield NO_PRIORITY.at(
                ("models", found.name, "calls"), f"{called.name} has {levels} levels, and gets calls at {level} only"
            )


@of_each_model_in_each_profile
def no_wake_up(found: Resolved) -> Faults:
    for called in _called(found):
        if _has_policy(called):
            yield NO_WAKE_UP.at(("models", found.name, "calls"), f"{called.name} has a queue policy")


def _has_policy(found: Resolved) -> bool:
    """Whether Triton's prefetching is off for the model, which is when its queue needs waking."""
    batching = found.batching
    if batching is None:
        return False
    if batching.priorities.use != "none" or batching.queues:
        return True
    queue = batching.queue
    return bool(queue.timeout or queue.size or queue.allow_override)


@of_each_model_in_each_profile
def few_callers(found: Resolved) -> Faults:
    for called in _called(found):
        if called.batching is None or called.max_batch < 2 or _is_used_directly(found.spec, called.name):
            continue
        callers, instances = _callers(called)
        if instances < called.max_batch:
            have = f"{instances} instance{'s' if instances > 1 else ''}"
            yield FEW_CALLERS.at(
                ("models", found.name, "calls"),
                f"{have} of {' and '.join(callers)} call {called.name}, whose batches have "
                f"{called.max_batch} places, in profile {found.profile}",
            )


def _callers(called: Resolved) -> tuple[list[str], int]:
    """The models whose code calls this one, and how many instances they have together."""
    spec = called.spec

    def find() -> tuple[list[str], int]:
        names = [
            name
            for name, model in spec.models.items()
            if any(called.name in reached(spec, used) for used in model.calls)
        ]
        return names, sum(Resolved(spec, name, called.profile).instance_count for name in names)

    return spec.remembered(("callers", called.name, called.profile), find)


def _is_used_directly(spec: Spec, model: str) -> bool:
    used = {name for stage in spec.stages.values() for name in stage.models}
    return any(model in reached(spec, name) for name in used)


@of_each_model
def over_budget(spec: Spec, name: str, model: Model) -> Faults:
    if model.latency_budget is None:
        return
    own = f"{name} has {show_duration(model.latency_budget)}"
    budgets: dict[str, timedelta] = {}
    for called in dict.fromkeys(model.calls):
        try:
            budgets[called] = budget(spec, [called])
        except Unknown:  # it has none, or a finding of its own
            continue
        if budgets[called] > model.latency_budget:
            what = f"{called} has a latency budget of {show_duration(budgets[called])}, and {own}"
            yield OVER_BUDGET.at(("models", name, "calls"), what)
    together = total(*budgets.values())
    if budgets and together > model.latency_budget >= max(budgets.values()):
        parts = " + ".join(f"{called} {show_duration(each)}" for called, each in budgets.items())
        yield TOGETHER_OVER_BUDGET.at(
            ("models", name, "calls"), f"the budgets are {show_duration(together)} ({parts}), and {own}"
        )
