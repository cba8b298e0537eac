"""A model's queues: timeouts, sizes, and what becomes of a request's own deadline."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta

from serve_app.spec.batching import QueuePolicy
from serve_app.spec.checks.batching import LONG_DELAY, SHORT_DELAY
from serve_app.spec.checks.registry import of_each_model_in_each_profile
from serve_app.spec.checks.slack import SHORTEST_TIMEOUT, follows
from serve_app.spec.findings import Faults, Place, error, warning
from serve_app.spec.paths import longest_path, stages_of
from serve_app.spec.resolved import Resolved
from serve_app.spec.units import show_duration

LONELY_TIMEOUT = error(
    "T102", "A queue delay not shorter than the queue timeout", "a lone request will always fail",
    "make the delay shorter, or the timeout longer",
)  # fmt: skip
SHORT_QUEUE = warning(
    "T103", "A queue shorter than a batch", "requests are refused while a batch has room for them",
    "make the queue at least as long as a batch",
)  # fmt: skip
ORDERED_DELAY = error(
    "T113", "Answers in the order of arrival, and late requests served last", "Triton refuses to load the model",
    "write on_timeout: reject, or remove preserve_ordering",
)  # fmt: skip
NO_TIMEOUT = error(
    "T114", "What happens at a timeout that there is not", "it has no effect", "give the queue a timeout, or remove it"
)
DEADLINE_IGNORED = warning(
    "T115", "A stage's model that ignores deadlines", "a request whose deadline has passed in the queue still runs, "
    "unless its caller has hung up", "give the queue a timeout and leave allow_override out",
)  # fmt: skip
ASLEEP = warning(
    "T116", "Priorities or a queue policy without Tandem's wake-ups",
    "Triton's batcher may sleep for half a second while requests wait, and under overload it does so after every batch",
    "write priorities: tiers, for which the clients wake it, or leave the policy out",
)  # fmt: skip
STARVED = warning(
    "T117", "Lower priorities that may wait for ever", "the first level is always served first; under steady load of "
    "it the others never run", "give the lower levels a timeout",
)  # fmt: skip


@dataclass(frozen=True)
class Queue:
    """One queue policy: where it is written, as it is written, and with every field given."""

    place: Place
    written: QueuePolicy
    whole: QueuePolicy

    @property
    def name(self) -> str | None:
        """The tier or level, where the policy is of one."""
        return str(self.place[-1]) if self.place[-2] == "queues" else None

    def place_of(self, field: str) -> Place:
        return (*self.place, field) if getattr(self.written, field) is not None else self.place


def queues_of(found: Resolved) -> Iterator[Queue]:
    """The policies that requests can meet; `queue` only where a tier or level has none of its own."""
    batching = found.batching
    if batching is None:
        return
    place = ("models", found.name, "batching")
    own = batching.queues if found.levels else {}
    if len(own) < max(1, found.levels):
        yield Queue((*place, "queue"), batching.queue, found.default_queue)
    for name, policy in own.items():
        yield Queue((*place, "queues", name), policy, found.queue(name))


@of_each_model_in_each_profile
def lonely_timeout(found: Resolved) -> Faults:
    for queue in queues_of(found):
        timeout = queue.whole.timeout or timedelta()
        if follows(found, queue.written.timeout):
            continue
        if queue.whole.on_timeout == "reject" and timedelta() < timeout <= found.queue_delay:
            of_level = f" of {queue.name}" if queue.name else ""
            yield LONELY_TIMEOUT.at(
                found.place("queue_delay"),
                f"the delay of {show_duration(found.queue_delay)} is not shorter than the queue timeout{of_level}, "
                f"{show_duration(timeout)}",
                consequence=f"a lone request will {'always' if timeout < found.queue_delay else 'often'} fail after "
                f"{show_duration(timeout)}",
            )


@of_each_model_in_each_profile
def short_queue(found: Resolved) -> Faults:
    for queue in queues_of(found):
        if 0 < (queue.whole.size or 0) < found.max_batch:
            yield SHORT_QUEUE.at(
                queue.place_of("size"),
                f"a queue of {queue.whole.size} can never fill a batch of {found.max_batch} from single requests",
            )


@of_each_model_in_each_profile
def ordered_delay(found: Resolved) -> Faults:
    if found.batching is None or not found.batching.preserve_ordering:
        return
    for queue in queues_of(found):
        if queue.whole.on_timeout == "delay" and queue.whole.timeout:
            yield ORDERED_DELAY.at(queue.place_of("on_timeout"), "on_timeout is delay, and preserve_ordering true")


@of_each_model_in_each_profile
def no_timeout(found: Resolved) -> Faults:
    for queue in queues_of(found):
        if queue.whole.timeout or follows(found, queue.written.timeout):
            continue
        if queue.written.allow_override:
            yield NO_TIMEOUT.at(
                queue.place_of("allow_override"),
                "a request may shorten the timeout, and there is none",
                consequence="Triton ignores the deadlines of requests",
            )
        if queue.written.on_timeout == "delay":
            yield NO_TIMEOUT.at(queue.place_of("on_timeout"), "on_timeout is delay, and there is no timeout")


@of_each_model_in_each_profile
def deadline_ignored(found: Resolved) -> Faults:
    if not stages_of(found.spec, found.name):
        return
    if found.model.unscheduled:
        yield DEADLINE_IGNORED.at(
            ("models", found.name, "unscheduled"),
            f"{found.name} is unscheduled, and stages call it",
            consequence="Triton ignores their requests' priorities and deadlines",
            remedy="remove it, for batching by the tiers' priorities",
        )
    for queue in queues_of(found):
        if follows(found, queue.written.timeout):
            continue
        if not queue.whole.timeout:
            yield DEADLINE_IGNORED.at(
                queue.place_of("timeout"), "the queue has no timeout that a deadline could shorten"
            )
        elif not queue.whole.allow_override:
            yield DEADLINE_IGNORED.at(queue.place_of("allow_override"), "requests may not shorten the queue's timeout")


@of_each_model_in_each_profile
def asleep(found: Resolved) -> Faults:
    if found.batching is None or found.by_tiers:
        return
    place = ("models", found.name, "batching")
    if found.levels:
        yield ASLEEP.at((*place, "priorities"), f"{found.name} has priority levels of its own")
        return
    policy = found.default_queue
    if policy.timeout or policy.allow_override or policy.size:
        yield ASLEEP.at((*place, "queue"), f"{found.name} has a queue policy and no priorities")


@of_each_model_in_each_profile
def starved(found: Resolved) -> Faults:
    if found.batching is None or found.levels < 2:
        return
    lower = [name for name in found.batching.queues if found.level(name) > 1]
    for queue in queues_of(found):
        of_lower = queue.name in lower if queue.name else len(lower) < found.levels - 1
        if not of_lower or (queue.whole.timeout and queue.whole.on_timeout == "reject"):
            continue
        if follows(found, queue.written.timeout):
            continue
        whose = queue.name or "the levels below the first"
        if not queue.whole.timeout:
            yield STARVED.at(queue.place_of("timeout"), f"the queue of {whose} has no timeout")
        else:
            yield STARVED.at(
                queue.place_of("on_timeout"),
                f"late requests of {whose} are only served last",
                remedy="write on_timeout: reject",
            )


@of_each_model_in_each_profile
def unlikely_timeout(found: Resolved) -> Faults:
    pipelines = found.spec.pipelines.items()
    slas = [found.spec.sla(name) for name, pipeline in pipelines if longest_path(found.spec, pipeline, found.name)]
    longest = max(slas, default=found.spec.longest_sla)
    for queue in queues_of(found):
        timeout = queue.written.timeout
        if not timeout:
            continue
        if timeout < SHORTEST_TIMEOUT:
            yield SHORT_DELAY.at(
                queue.place_of("timeout"),
                f"the timeout is {show_duration(timeout)}",
                consequence="nearly every request that finds the instances busy fails",
            )
        # What the rest of a pipeline's path leaves for `queue` is checked with the pipelines.
        if timeout > longest and (queue.name or not slas):
            yield LONG_DELAY.at(
                queue.place_of("timeout"),
                f"the timeout of {show_duration(timeout)} is longer than the longest SLA that reaches {found.name}, "
                f"{show_duration(longest)}",
                consequence="requests are kept that nobody waits for",
                remedy=f"write at most {show_duration(longest)}",
            )
