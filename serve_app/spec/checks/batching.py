"""Dynamic batching: sizes, the delay for company, and how they fit the model's batch and budget."""

from __future__ import annotations

from datetime import timedelta

from serve_app.spec.batching import Batching
from serve_app.spec.checks.registry import of_each_model_in_each_profile
from serve_app.spec.findings import Faults, error, warning
from serve_app.spec.paths import stages_of
from serve_app.spec.resolved import QUEUE_DELAY_SHARE, Resolved
from serve_app.spec.units import show_duration

SHORTEST_DELAY = timedelta(microseconds=100)

SLOW_DELAY = error(
    "T101", "A queue delay longer than the latency budget", "a lone request always breaks the budget",
    "make the delay shorter",
)  # fmt: skip
NO_DELAY = error(
    "T139", "Batching with neither a queue delay nor a latency budget",
    "nothing says how long a request waits for company, and the model cannot be rendered",
    "add latency_budget to the model, or queue_delay to its batching",
)  # fmt: skip
NO_SUCH_BATCH = error(
    "T104", "A preferred size that no batch can have", "Triton refuses to load the model",
    "write sizes from 1 to max_batch",
)  # fmt: skip
ALONE_PREFERRED = warning(
    "T105", "A preferred size of 1", "a lone request runs at once whatever the delay, and the few that wait for an "
    "instance run one by one", "remove the 1",
)  # fmt: skip
PREFERRED_TWICE = warning(
    "T106", "A preferred size that is there twice", "Triton counts it once; another size may have been meant",
    "keep one of the two",
)  # fmt: skip
LARGEST_UNREACHED = warning(
    "T107", "A largest batch that is never put together", "Triton cuts what waits into batches of the preferred sizes",
    "add max_batch to the preferred sizes, or lower it",
)  # fmt: skip
NOTHING_TO_BATCH = warning(
    "T108", "Batching of a model that runs one request at a time", "it has no effect: every request runs alone",
    "raise max_batch, or leave it out",
)  # fmt: skip
SHORT_DELAY = warning(
    "T118", "A queue delay or timeout too short to be meant", "it is over before another request is likely to come",
    "check the unit: 1ms is 1000us",
)  # fmt: skip
LONG_DELAY = warning(
    "T119", "A queue delay or timeout longer than its purpose", "little time is left for the rest", "make it shorter"
)


def _max_batch(found: Resolved) -> str:
    return "max_batch" if found.override.max_batch is None else f"max_batch of profile {found.profile}"


@of_each_model_in_each_profile
def no_delay(found: Resolved) -> Faults:
    delays = (found.override.queue_delay, (found.batching or Batching()).queue_delay, found.model.latency_budget)
    if found.batching is None or any(given is not None for given in delays) or found.max_batch <= 1:
        return
    if not stages_of(found.spec, found.name):  # whose models want a budget anyway
        what = f"{found.name} has no latency_budget, and its batching no queue_delay"
        yield NO_DELAY.at(("models", found.name), what)


@of_each_model_in_each_profile
def slow_delay(found: Resolved) -> Faults:
    budget = found.model.latency_budget
    if found.batching is None or budget is None:
        return
    delay = found.queue_delay
    if delay > budget:
        yield SLOW_DELAY.at(
            found.place("queue_delay"), f"the delay is {show_duration(delay)} and the budget {show_duration(budget)}"
        )
    elif delay > budget * QUEUE_DELAY_SHARE:
        yield LONG_DELAY.at(
            found.place("queue_delay"),
            f"the delay of {show_duration(delay)} is more than a quarter of the latency budget, "
            f"{show_duration(budget)}",
            consequence="little of the budget is left for waiting behind other batches and for inference",
            remedy="make the delay shorter, or leave it out for a quarter of the budget",
        )


@of_each_model_in_each_profile
def short_delay(found: Resolved) -> Faults:
    if found.batching is not None and timedelta() < found.queue_delay < SHORTEST_DELAY:
        yield SHORT_DELAY.at(found.place("queue_delay"), f"the delay is {show_duration(found.queue_delay)}")


@of_each_model_in_each_profile
def no_such_batch(found: Resolved) -> Faults:
    if found.batching is None:
        return
    place = found.place("preferred_sizes")
    for index, size in enumerate(found.preferred_sizes):
        if size < 1:
            yield NO_SUCH_BATCH.at((*place, index), f"{size} is no size of a batch")
        elif size > found.max_batch:
            yield NO_SUCH_BATCH.at(
                (*place, index), f"preferred size {size} is larger than {_max_batch(found)}, {found.max_batch}"
            )


@of_each_model_in_each_profile
def doubtful_sizes(found: Resolved) -> Faults:
    if found.batching is None or found.max_batch <= 1:
        return
    place = found.place("preferred_sizes")
    sizes = found.preferred_sizes
    for index, size in enumerate(sizes):
        if size in sizes[:index]:
            yield PREFERRED_TWICE.at((*place, index), f"{size} is there twice")
        elif size == 1:
            yield ALONE_PREFERRED.at((*place, index), "1 is a preferred size")


@of_each_model_in_each_profile
def largest_unreached(found: Resolved) -> Faults:
    # With a delay, requests that have waited for it are batched up to max_batch whatever the preferred sizes.
    if found.batching is None or not found.preferred_sizes or found.queue_delay:
        return
    largest = max(found.preferred_sizes)
    if 1 <= largest < found.max_batch:
        yield LARGEST_UNREACHED.at(
            found.place("preferred_sizes"),
            f"the largest preferred size, {largest}, is less than {_max_batch(found)}, {found.max_batch}, "
            "and there is no queue delay",
            remedy=f"add {found.max_batch} to the preferred sizes, or lower max_batch to {largest}",
        )


@of_each_model_in_each_profile
def nothing_to_batch(found: Resolved) -> Faults:
    if found.batching is None or found.max_batch > 1:
        return
    one_everywhere = all(Resolved(found.spec, found.name, profile).max_batch <= 1 for profile in found.spec.profiles)
    only_one = found.max_batch == 1 and found.preferred_sizes == [1]
    given = {"queue_delay": bool(found.queue_delay), "preferred_sizes": only_one}
    # What is said for all profiles has its effect in another one.
    idle = [
        field for field, there in given.items()
        if there and (one_everywhere or getattr(found.override, field) is not None)
    ]  # fmt: skip
    for field in idle:
        yield NOTHING_TO_BATCH.at(found.place(field), f"{field} is given, and {_max_batch(found)} is {found.max_batch}")
    # Queues, priorities and the order of answers count without batches too.
    written = set() if found.model.batching is None else found.model.batching.model_fields_set
    if found.model.batching is not None and written <= set(given) and one_everywhere and not idle:
        yield NOTHING_TO_BATCH.at(
            ("models", found.name, "batching"),
            f"batching is given, and {_max_batch(found)} is {found.max_batch}",
            remedy="leave it out, as the tiers' priorities and queues are there without it, or raise max_batch",
        )
