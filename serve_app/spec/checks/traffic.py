"""How many requests the stages can bring to a model at a time, against its batches, its queue and its priorities."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from math import ceil

from serve_app.spec.batching import QueuePolicy
from serve_app.spec.checks.registry import of_each_model, of_each_model_in_each_profile
from serve_app.spec.findings import Faults, Place, warning
from serve_app.spec.model import Model
from serve_app.spec.part import UNKNOWN
from serve_app.spec.paths import longest_path, reached
from serve_app.spec.pipeline import Stage
from serve_app.spec.resolved import Resolved
from serve_app.spec.schema import Spec
from serve_app.spec.units import show_duration

NEVER_FULL = warning(
    "P120", "Stages that can never fill a model's batch", "the largest batches are never run, and its memory is held",
    "lower max_batch, raise max_ongoing_requests or the replicas of its stages, or say in the stage's `models` how "
    "many items one request brings",
)  # fmt: skip
MORE_THAN_WAIT = warning(
    "P121", "Stages that bring more requests than may wait", "what Ray Serve has accepted, Triton refuses with 503",
    "raise the queue's size, or lower max_ongoing_requests or the replicas of its stages",
)  # fmt: skip
TOO_FEW_LEVELS = warning(
    "P122", "A tier below a model's lowest priority level", "Triton takes its requests for ones of the default level",
    "give the model as many levels as there are tiers, or priorities: tiers",
)  # fmt: skip
NO_LEVELS = warning(
    "P123", "Tiers at a model without priorities", "urgent requests wait behind all that came before",
    "write priorities: tiers, or leave priorities out",
)  # fmt: skip
TOO_LATE = warning(
    "P124", "A queue timeout that leaves the rest of the path too little time",
    "a request that waits so long is answered after its deadline", "shorten the timeout, or leave it out",
)  # fmt: skip


def _callers(spec: Spec, model: str) -> Iterator[tuple[Stage, int]]:
    """The stages whose requests reach a model, and how many items one request brings at the most."""
    for stage in spec.stages.values():
        if stage is UNKNOWN:
            continue
        for name, items in stage.models.items():
            if model in reached(spec, name):
                yield stage, items


def _at_a_time(spec: Spec, stage: Stage) -> int:
    """The requests that all replicas of a stage work on at a time."""
    replicas = spec.ingress if stage.replicas is None else stage.replicas
    return replicas.max_ongoing_requests * replicas.most


@of_each_model_in_each_profile
def never_full(found: Resolved) -> Faults:
    callers = list(_callers(found.spec, found.name))
    items = sum(_at_a_time(found.spec, stage) * each for stage, each in callers)
    if callers and items < found.max_batch:
        yield NEVER_FULL.at(
            found.place("max_batch"), f"at most {items} items come at a time, and a batch has {found.max_batch}"
        )


@of_each_model_in_each_profile
def more_than_wait(found: Resolved) -> Faults:
    if found.batching is None or not found.default_queue.size:
        return
    size = max(found.max_batch, 1)
    calls = sum(_at_a_time(found.spec, stage) * ceil(items / size) for stage, items in _callers(found.spec, found.name))
    places = found.default_queue.size + found.instance_count * size
    if calls > places:
        yield MORE_THAN_WAIT.at(
            ("models", found.name, "batching", "queue", "size"),
            f"{calls} requests can come at a time, and {places} can wait or run",
        )


@of_each_model
def levels(spec: Spec, name: str, model: Model) -> Faults:
    if model.batching is None or not any(_callers(spec, name)):
        return
    priorities = model.batching.priorities
    place = ("models", name, "batching", "priorities")
    if priorities.use == "none" and len(spec.tiers) > 1:
        yield NO_LEVELS.at(place, f"{name} has no priorities, and the spec {len(spec.tiers)} tiers")
    for tier, entry in spec.tiers.items():
        if priorities.use == "levels" and entry.priority > (priorities.levels or 0):
            yield TOO_FEW_LEVELS.at(
                place, f"tier {tier} has priority {entry.priority}, and {name} {priorities.levels} levels"
            )


@of_each_model
def too_late(spec: Spec, name: str, model: Model) -> Faults:
    if model.batching is None:
        return
    policies: dict[Place, QueuePolicy] = {("queue",): model.batching.queue}
    policies |= {("queues", key): policy for key, policy in model.batching.queues.items()}
    timeouts = {place: policy.timeout for place, policy in policies.items() if policy.timeout}
    for pipeline_name, pipeline in spec.pipelines.items() if timeouts else ():
        path = longest_path(spec, pipeline, name)
        left = timedelta.max if path is None else spec.sla(pipeline_name) - path[0]
        for place, timeout in timeouts.items():
            if timeout > left:
                yield TOO_LATE.at(
                    ("models", name, "batching", *place, "timeout"),
                    f"pipeline {pipeline_name} leaves {show_duration(left)} of its SLA beside the budgets of its path, "
                    f"and the timeout is {show_duration(timeout)}",
                )
