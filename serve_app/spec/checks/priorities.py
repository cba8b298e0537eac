"""A model's priority levels, the queues that are named by them, and the order of answers."""

from __future__ import annotations

import re

from serve_app.spec.checks.registry import of_each_model, of_each_model_in_each_profile
from serve_app.spec.findings import Faults, error
from serve_app.spec.model import Model
from serve_app.spec.resolved import Resolved
from serve_app.spec.schema import Spec
from serve_app.spec.spelling import did_you_mean

NO_LEVEL = error(
    "T109", "Priority levels that do not say which, or name one that is not there", "Triton refuses to load the model",
    "write both, as {levels: 3, default: 2}",
)  # fmt: skip
UNUSED_LEVELS = error(
    "T110", "Priority levels beside other priorities", "it would have no effect", "write use: levels, or remove it"
)
NO_SUCH_QUEUE = error(
    "T111", "A queue of a tier or level that does not exist", "no request would ever wait in it",
    "name a tier, or a level from 1 where the model has its own",
)  # fmt: skip
ORDERED_PRIORITIES = error(
    "T112", "Answers in the order of arrival, and priorities", "Triton refuses to load the model",
    "write priorities: none, or remove preserve_ordering",
)  # fmt: skip


@of_each_model
def levels(spec: Spec, name: str, model: Model) -> Faults:
    if model.batching is None:
        return
    given = model.batching.priorities
    place = ("models", name, "batching", "priorities")
    if given.use != "levels":
        for field in ("levels", "default"):
            if getattr(given, field) is not None:
                yield UNUSED_LEVELS.at((*place, field), f"{field} is given, and the priorities are {given.use}")
    elif given.levels is None:
        yield NO_LEVEL.at(place, "how many levels there are is missing", consequence="all requests would be equal")
    elif given.default is None:
        yield NO_LEVEL.at(place, "the level of a request that names none is missing")
    elif given.default > given.levels:
        yield NO_LEVEL.at((*place, "default"), f"the default is level {given.default} of {given.levels}")


@of_each_model
def no_such_queue(spec: Spec, name: str, model: Model) -> Faults:
    if model.batching is None:
        return
    given = model.batching.priorities
    for queue in model.batching.queues:
        place = ("models", name, "batching", "queues", queue)
        if given.use == "tiers" and queue not in spec.tiers:
            yield NO_SUCH_QUEUE.at(
                place,
                f"there is no tier {queue!r}; there is {', '.join(spec.tiers)}",
                remedy=did_you_mean(queue, spec.tiers),
            )
        elif given.use == "none":
            yield NO_SUCH_QUEUE.at(place, f"{name} has no priorities, so there is no {queue!r}")
        elif given.use == "levels" and given.levels is not None and not _is_level(queue, given.levels):
            yield NO_SUCH_QUEUE.at(place, f"{queue!r} is none of the levels 1 to {given.levels}")


def _is_level(name: str, levels: int) -> bool:
    return re.fullmatch(r"[1-9]\d{0,9}", name, re.ASCII) is not None and int(name) <= levels


@of_each_model_in_each_profile
def ordered_priorities(found: Resolved) -> Faults:
    if found.batching is None or not found.batching.preserve_ordering:
        return
    place = ("models", found.name, "batching", "preserve_ordering")
    if found.by_tiers:
        yield ORDERED_PRIORITIES.at(place, f"{found.name} has the tiers' priorities")
    elif found.levels > 1:
        yield ORDERED_PRIORITIES.at(place, f"{found.name} has {found.levels} priority levels")
