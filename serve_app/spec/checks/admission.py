"""Which requests the ingress takes: floors and bounds of tiers, and the time that requests have, against each other."""

from __future__ import annotations

from collections.abc import Iterator

from serve_app.spec.checks.registry import of_each_pipeline, of_the_spec
from serve_app.spec.findings import Faults, Place, error, warning
from serve_app.spec.paths import longest_path
from serve_app.spec.pipeline import Pipeline
from serve_app.spec.schema import Spec, Tier
from serve_app.spec.units import show_duration

FLOORS = error(
    "P003", "Floors of all work or more", "nothing is left for the most urgent tier",
    "lower them until they leave it most of the work",
)  # fmt: skip
UNUSED_FLOOR = warning(
    "P004", "A floor that changes nothing", "the tier gets what it would get without it",
    "leave it out, or give it to a tier that waits behind others",
)  # fmt: skip
UNUSED_BOUND = warning(
    "P005", "A tier's bound above the ingress's", "it is never reached", "make it less, or leave it out"
)
LONG_QUEUE = warning(
    "P006", "A queue whose last requests cannot be in time",
    "they are refused or late, although so many may wait", "shorten it, or lengthen the SLA",
)  # fmt: skip
SMALL_SHARE = warning(
    "P007", "A work_share of less than the latency budgets",
    "ever fewer requests are worked on at a time, down to one, although each is as quick as it should be",
    "make it more, or leave it out",
)  # fmt: skip
UNUSED_SHARE = warning(
    "P008", "A work_share that nothing depends on", "as many requests are worked on at a time in any case",
    "leave it out, or adaptive: false",
)  # fmt: skip


@of_the_spec
def floors(spec: Spec) -> Faults:
    given = {name: tier.floor for name, tier in spec.tiers.items() if tier.floor is not None}
    if sum(given.values()) >= 100:
        each = " + ".join(f"{name} {floor:g}%" for name, floor in given.items())
        yield FLOORS.at(("tiers",), f"the floors are {sum(given.values()):g}% together ({each})")


@of_the_spec
def unused_floor(spec: Spec) -> Faults:
    for name, tier in spec.tiers.items():
        if tier.floor is None:
            continue
        place: Place = ("tiers", name, "floor")
        share = 100 * _bound(spec, tier, "max_ongoing_requests") / spec.ingress.max_ongoing_requests
        if tier.priority == min(each.priority for each in spec.tiers.values()):
            yield UNUSED_FLOOR.at(place, f"no tier is served before {name}")
        elif tier.max_queued_requests == 0:
            yield UNUSED_FLOOR.at(place, f"no request of {name} waits, by its max_queued_requests")
        elif not spec.service.admission.adaptive and share < tier.floor:
            yield UNUSED_FLOOR.at(
                place,
                f"it is {tier.floor:g}%, and {name} gets {share:.3g}% of the places at the most",
                remedy="raise the tier's max_ongoing_requests, or lower its floor",
            )


@of_the_spec
def unused_bound(spec: Spec) -> Faults:
    for name, tier in spec.tiers.items():
        for key in ("max_ongoing_requests", "max_queued_requests"):
            own, whole = getattr(tier, key), getattr(spec.ingress, key)
            if own is not None and own > whole:
                yield UNUSED_BOUND.at(("tiers", name, key), f"it is {own}, and the ingress's {whole}")


@of_the_spec
def long_queue(spec: Spec) -> Faults:
    """By the latency budgets alone: were each request as quick, and as many worked on at a time as may be.

    Said of the pipeline whose requests could wait longest, and not where its budgets let none wait for another.
    """
    paths = {name: longest_path(spec, pipeline) for name, pipeline in spec.pipelines.items()}
    turns = {name: spec.sla(name) / path[0] for name, path in paths.items() if path is not None and path[0]}
    if not turns or len(turns) < len(paths) or max(turns.values()) < 2:
        return
    name = max(turns, key=lambda name: turns[name])
    for place, queued, at_once in _queues(spec):
        if (needed := 1 + queued / at_once) > turns[name]:
            time = show_duration(spec.sla(name) * (needed / turns[name]))
            yield LONG_QUEUE.at(
                place,
                f"{queued} may wait for {at_once} at a time, and of {name} the last would be answered after {time}, "
                f"where its SLA is {show_duration(spec.sla(name))}",
            )


def _queues(spec: Spec) -> Iterator[tuple[Place, int, int]]:
    """Where it is said how many may wait, and how many are worked on at a time at the most."""
    ingress = spec.ingress
    yield ("ingress", "max_queued_requests"), ingress.max_queued_requests, ingress.max_ongoing_requests
    for name, tier in spec.tiers.items():
        if tier.max_queued_requests is not None or tier.max_ongoing_requests is not None:
            key = "max_ongoing_requests" if tier.max_queued_requests is None else "max_queued_requests"
            bounds = _bound(spec, tier, "max_queued_requests"), _bound(spec, tier, "max_ongoing_requests")
            yield ("tiers", name, key), *bounds


def _bound(spec: Spec, tier: Tier, key: str) -> int:
    """The tier's own, or else the ingress's."""
    own: int | None = getattr(tier, key)
    whole: int = getattr(spec.ingress, key)
    return whole if own is None else own


@of_each_pipeline
def small_share(spec: Spec, name: str, pipeline: Pipeline) -> Faults:
    admission, path = spec.service.admission, longest_path(spec, pipeline)
    if not admission.adaptive or admission.work_share is None or path is None:
        return
    may = spec.sla(name) * admission.work_share / 100
    if may < path[0] <= spec.sla(name):
        yield SMALL_SHARE.at(
            ("service", "admission", "work_share"),
            f"it is {show_duration(may)} of the SLA of {name}, and the budgets along {' → '.join(path[1])} are "
            f"{show_duration(path[0])}",
        )


@of_the_spec
def unused_share(spec: Spec) -> Faults:
    if spec.service.admission.work_share is not None and not spec.service.admission.adaptive:
        yield UNUSED_SHARE.at(("service", "admission", "work_share"), "adaptive is false")
