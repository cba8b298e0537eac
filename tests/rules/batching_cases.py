"""Dynamic batching of a single model: sizes, delays, priorities, and what becomes of requests that wait."""

from __future__ import annotations

from typing import Any

from tests.rules.case import GONE, Case
from tests.rules.pipeline_cases import served

BATCHING = "models.m.batching"


def model(**fields: Any) -> dict[str, Any]:
    return {"models": {"m": fields}}


def batching(**fields: Any) -> dict[str, Any]:
    return model(batching=fields)


def called(**fields: Any) -> dict[str, Any]:
    """The model in a pipeline."""
    return served(batching(**fields))


SIZES = {
    "a preferred size above max_batch": Case(
        "T104",
        batching(preferred_sizes=[4, 16, 8]),
        f"{BATCHING}.preferred_sizes.1",
        "preferred size 16 is larger than max_batch, 8: Triton refuses to load the model; write sizes from 1",
        refused="dynamic batching preferred size must be <= max batch size",
    ),
    "a preferred size of a model without batches": Case(
        "T104",
        model(max_batch=0, batching={"preferred_sizes": [1], "queue_delay": "0s"}),
        f"{BATCHING}.preferred_sizes.0",
        "larger than max_batch, 0",
        refused="dynamic batching preferred size must be <= max batch size",
    ),
    "a preferred size above a profile's max_batch": Case(
        "T104",
        model(batching={"preferred_sizes": [8]}, profiles={"embedded": {"max_batch": 4}}),
        f"{BATCHING}.preferred_sizes.0",
        "larger than max_batch of profile embedded, 4",
        refused="dynamic batching preferred size must be <= max batch size",
    ),
    "a profile's preferred size above max_batch": Case(
        "T104",
        model(profiles={"embedded": {"preferred_sizes": [9]}}),
        "models.m.profiles.embedded.preferred_sizes.0",
        "preferred size 9 is larger than max_batch, 8",
        refused="dynamic batching preferred size must be <= max batch size",
    ),
    "a preferred size of nothing": Case(
        "T104",
        batching(preferred_sizes=[0]),
        f"{BATCHING}.preferred_sizes.0",
        "0 is no size",
        refused="dynamic batching preferred size must be positive",
    ),
    "a negative preferred size": Case(
        "T104",
        batching(preferred_sizes=[-4]),
        f"{BATCHING}.preferred_sizes.0",
        "-4 is no size",
        refused="dynamic batching preferred size must be positive",
    ),
    "a preferred size of 1": Case("T105", batching(preferred_sizes=[1, 8]), f"{BATCHING}.preferred_sizes.0"),
    "a preferred size twice": Case(
        "T106", batching(preferred_sizes=[4, 4, 8]), f"{BATCHING}.preferred_sizes.1", "4 is there twice", loads=True
    ),
    "a max_batch above the preferred sizes, without a delay": Case(
        "T107",
        batching(preferred_sizes=[2, 4], queue_delay="0s"),
        f"{BATCHING}.preferred_sizes",
        "add 8 to the preferred sizes, or lower max_batch to 4",
    ),
    "a delay of a model without batches": Case(
        "T108", model(max_batch=0), f"{BATCHING}.queue_delay", "queue_delay is given, and max_batch is 0"
    ),
    "a delay in a profile without batches": Case(
        "T108",
        model(profiles={"embedded": {"max_batch": 1, "queue_delay": "2ms"}}),
        "models.m.profiles.embedded.queue_delay",
        "max_batch of profile embedded is 1",
        loads=True,
    ),
    "the preferred size of a model without batches": Case(
        "T108",
        model(max_batch=1, batching={"preferred_sizes": [1], "queue_delay": "0s"}),
        f"{BATCHING}.preferred_sizes",
        loads=True,
    ),
    "batching of a model without batches": Case(
        "T108",
        model(max_batch=0, batching={"queue_delay": GONE}),
        BATCHING,
        "batching is given, and max_batch is 0",
        loads=True,
    ),
    "no delay of a model of single requests": Case(
        "T108",
        model(max_batch=1, batching={"queue_delay": "0s"}),
        BATCHING,
        "leave it out, as the tiers' priorities and queues are there without it",
        loads=True,
    ),
    "a queue delay longer than the latency budget": Case(
        "T101", batching(queue_delay="101ms"), f"{BATCHING}.queue_delay", loads=True
    ),
    "a queue delay of more than a quarter of the latency budget": Case(
        "T119", batching(queue_delay="26ms"), f"{BATCHING}.queue_delay", "more than a quarter", loads=True
    ),
    "a model with neither a budget nor a delay": Case(
        "T139", model(latency_budget=GONE, batching=GONE), "models.m", "m has no latency_budget, and its batching no"
    ),
    "a queue delay of microseconds": Case(
        "T118", batching(queue_delay="90us"), f"{BATCHING}.queue_delay", "the delay is 90us", loads=True
    ),
}

QUEUES = {
    "a queue delay longer than the queue timeout": Case(
        "T102",
        model(latency_budget="1s", batching={"queue_delay": "300ms", "queue": {"timeout": "100ms"}}),
        f"{BATCHING}.queue_delay",
        "a lone request will always fail after 100ms",
    ),
    "a queue delay as long as a tier's timeout": Case(
        "T102",
        batching(queue_delay="20ms", queues={"second": {"timeout": "20ms"}}),
        f"{BATCHING}.queue_delay",
        "not shorter than the queue timeout of second, 20ms",
        loads=True,
    ),
    "a queue shorter than a batch": Case(
        "T103", batching(queue={"size": 7}), f"{BATCHING}.queue.size", "a queue of 7 can never fill a batch of 8"
    ),
    "a tier's queue shorter than a batch": Case(
        "T103", batching(queues={"second": {"size": 4}}), f"{BATCHING}.queues.second.size", "a queue of 4", loads=True
    ),
    "a queue of no tier": Case(
        "T111",
        batching(queues={"third": {"size": 64}}),
        f"{BATCHING}.queues.third",
        "there is no tier 'third'; there is first, second",
    ),
    "a queue of a level above the last": Case(
        "T111",
        batching(priorities={"levels": 2, "default": 1}, queues={"3": {"size": 64}}),
        f"{BATCHING}.queues.3",
        "'3' is none of the levels 1 to 2",
        refused="priority queue policy must have priority level in range [1, 2]",
    ),
    "a queue of level 0": Case(
        "T111",
        batching(priorities={"levels": 2, "default": 1}, queues={"0": {"size": 64}}),
        f"{BATCHING}.queues.0",
        refused="priority queue policy must have priority level in range [1, 2]",
    ),
    "a queue of a level without levels": Case(
        "T111",
        batching(priorities="none", queues={"1": {"size": 64}}),
        f"{BATCHING}.queues.1",
        "m has no priorities",
    ),
    "a timeout to override that there is not": Case(
        "T114",
        batching(priorities="none", queue={"allow_override": True}),
        f"{BATCHING}.queue.allow_override",
        "Triton ignores the deadlines of requests",
    ),
    "a tier's timeout to override that there is not": Case(
        "T114",
        batching(queues={"second": {"timeout": "0s", "allow_override": True}}),
        f"{BATCHING}.queues.second.allow_override",
        loads=True,
    ),
    "a delay at a timeout that there is not": Case(
        "T114",
        batching(queue={"timeout": "0s", "on_timeout": "delay"}),
        f"{BATCHING}.queue.on_timeout",
        "there is no timeout",
        loads=True,
    ),
    "a deadline that the queue ignores": Case(
        "T115", called(queue={"allow_override": False}), f"{BATCHING}.queue.allow_override", "may not shorten"
    ),
    "a deadline without a timeout": Case(
        "T115", called(queue={"timeout": "0s"}), f"{BATCHING}.queue.timeout", "no timeout", loads=True
    ),
    "an unscheduled model of a stage": Case(
        "T115",
        served(model(batching=None, unscheduled=True)),
        "models.m.unscheduled",
        "Triton ignores their requests' priorities and deadlines",
    ),
    "a timeout of microseconds": Case(
        "T118", batching(queue={"timeout": "900us"}, queue_delay="0s"), f"{BATCHING}.queue.timeout", loads=True
    ),
    "a timeout longer than the SLA": Case(
        "T119", batching(queue={"timeout": "9s"}), f"{BATCHING}.queue.timeout", "the longest SLA that reaches m, 8s",
        loads=True,
    ),
    "a tier's timeout longer than the SLA of its pipelines": Case(
        "T119",
        served({"pipelines": {"echo": {"sla": "1s"}}, **batching(queues={"second": {"timeout": "2s"}})}),
        f"{BATCHING}.queues.second.timeout",
        "write at most 1s",
        loads=True,
    ),
}  # fmt: skip

PRIORITIES = {
    "levels without a default": Case(
        "T109",
        batching(priorities={"levels": 3}),
        f"{BATCHING}.priorities",
        "the level of a request that names none is missing",
        refused="default priority level must be in range [1, 3]",
    ),
    "a default level above the last": Case(
        "T109",
        batching(priorities={"levels": 3, "default": 4}),
        f"{BATCHING}.priorities.default",
        "the default is level 4 of 3",
        refused="default priority level must be in range [1, 3]",
    ),
    "a default level without levels": Case(
        "T109", batching(priorities={"default": 2}), f"{BATCHING}.priorities", "how many levels", loads=True
    ),
    "levels beside the tiers": Case(
        "T110",
        batching(priorities={"use": "tiers", "levels": 3}),
        f"{BATCHING}.priorities.levels",
        "levels is given, and the priorities are tiers",
        loads=True,
    ),
    "a default level beside no priorities": Case(
        "T110", batching(priorities={"use": "none", "default": 1}), f"{BATCHING}.priorities.default", loads=True
    ),
    "the order of arrival and tiers": Case(
        "T112",
        batching(preserve_ordering=True),
        f"{BATCHING}.preserve_ordering",
        "m has the tiers' priorities",
        refused="Only one priority level is allowed when 'preserve_ordering' is true",
    ),
    "the order of arrival and levels": Case(
        "T112",
        batching(preserve_ordering=True, priorities={"levels": 2, "default": 1}),
        f"{BATCHING}.preserve_ordering",
        "m has 2 priority levels",
        refused="Only one priority level is allowed when 'preserve_ordering' is true",
    ),
    "the order of arrival and late requests served last": Case(
        "T113",
        batching(preserve_ordering=True, priorities="none", queue={"timeout": "1s", "on_timeout": "delay"}),
        f"{BATCHING}.queue.on_timeout",
        refused="Queue policy can not have DELAY as timeout action when 'preserve_ordering' is true",
    ),
    "the order of arrival and a level's late requests served last": Case(
        "T113",
        batching(
            preserve_ordering=True,
            priorities={"levels": 1, "default": 1},
            queues={"1": {"timeout": "1s", "on_timeout": "delay"}},
        ),
        f"{BATCHING}.queues.1.on_timeout",
        refused="Queue policy can not have DELAY as timeout action when 'preserve_ordering' is true",
    ),
    "levels that nothing wakes": Case(
        "T116", batching(priorities={"levels": 2, "default": 1}), f"{BATCHING}.priorities", loads=True
    ),
    "a queue policy that nothing wakes": Case(
        "T116", batching(priorities="none", queue={"size": 64}), f"{BATCHING}.queue", loads=True
    ),
    "a lower level without a timeout": Case(
        "T117", batching(priorities={"levels": 2, "default": 1}), f"{BATCHING}.queue", "no timeout"
    ),
    "a lower tier without a timeout": Case(
        "T117",
        batching(queues={"second": {"timeout": "0s"}}),
        f"{BATCHING}.queues.second.timeout",
        "no timeout",
        loads=True,
    ),
    "a lower tier whose late requests are served last": Case(
        "T117", batching(queue={"on_timeout": "delay"}), f"{BATCHING}.queue.on_timeout", "only served last", loads=True
    ),
}

CASES = {**SIZES, **QUEUES, **PRIORITIES}
