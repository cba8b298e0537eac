"""How many requests the stages can bring to a model at a time, against its batches, its queues and its priorities."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil

from serve_app.spec.checks.queues import Queue, queues_of
from serve_app.spec.checks.registry import of_each_model, of_each_model_in_each_profile
from serve_app.spec.findings import Faults, warning
from serve_app.spec.model import Model
from serve_app.spec.part import UNKNOWN
from serve_app.spec.paths import reached
from serve_app.spec.pipeline import Stage
from serve_app.spec.resolved import Resolved
from serve_app.spec.schema import Spec

NEVER_FULL = warning(
    "P120", "Stages that can never fill a model's batch", "the largest batches are never run, and its memory is held",
    "lower max_batch, raise max_ongoing_requests or the replicas of its stages, or say in the stage's `models` how "
    "many items one request brings",
)  # fmt: skip
MORE_THAN_WAIT = warning(
    "P121", "Stages that bring more requests than may wait",
    "requests that Ray Serve has accepted are answered 429 `queue_full`, as Triton refuses them",
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
    if any(stage is UNKNOWN for stage in found.spec.stages.values()):
        return  # as its requests may fill the batches
    callers = list(_callers(found.spec, found.name))
    items = sum(_at_a_time(found.spec, stage) * each for stage, each in callers)
    if callers and items < found.max_batch:
        yield NEVER_FULL.at(
            found.place("max_batch"), f"at most {items} items come at a time, and a batch has {found.max_batch}"
        )


@of_each_model_in_each_profile
def more_than_wait(found: Resolved) -> Faults:
    size = max(found.max_batch, 1)
    calls = sum(_at_a_time(found.spec, stage) * ceil(items / size) for stage, items in _callers(found.spec, found.name))
    for queue in _called(found) if calls else ():
        places = (queue.whole.size or 0) + found.instance_count * size
        if not queue.whole.size or calls <= places:
            continue
        if queue.name is None or queue.written.size is None:
            yield MORE_THAN_WAIT.at(
                ("models", found.name, "batching", "queue", "size"),
                f"{calls} requests can come at a time, and {places} can wait or run",
            )
        else:
            yield MORE_THAN_WAIT.at(
                queue.place_of("size"),
                f"{calls} requests can come at a time, and {places} of {'tier' if found.by_tiers else 'level'} "
                f"{queue.name} can wait or run",
                consequence="where they are all of it, what Ray Serve has accepted is answered 429 `queue_full`",
                remedy="raise its size, lower max_ongoing_requests or the replicas of the stages, or accept this where "
                "its requests are to be refused before others",
            )


def _called(found: Resolved) -> Iterator[Queue]:
    """The queues in which requests of stages can wait: each comes with its tier's level."""
    levels = {found.level_of(tier) for tier in found.spec.tiers}
    alone = {found.level(queue.name) for queue in queues_of(found) if queue.name is not None}
    for queue in queues_of(found):
        if levels - alone if queue.name is None else found.level(queue.name) in levels:
            yield queue


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
