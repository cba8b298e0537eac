"""Which requests the ingress takes: floors and bounds of tiers, and the time that requests have, against each other."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from serve_app.spec.checks.registry import of_each_pipeline, of_the_spec
from serve_app.spec.findings import Faults, Place, error, warning
from serve_app.spec.paths import longest_path
from serve_app.spec.pipeline import Pipeline
from serve_app.spec.ray import DEFAULT_WORK_SHARE
from serve_app.spec.schema import Spec
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
    "P007", "Budgets longer than the work on a request may take",
    "ever fewer requests are worked on at a time, down to one",
    "raise service.admission.work_share, shorten a budget or lengthen the SLA",
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
        share = (
            100 * (tier.max_ongoing_requests or spec.ingress.max_ongoing_requests) / spec.ingress.max_ongoing_requests
        )
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
    """By the latency budgets alone: were each request as quick, and as many worked on at a time as may be."""
    times = {name: longest_path(spec, pipeline) for name, pipeline in spec.pipelines.items()}
    for place, queued, at_once in _queues(spec):
        said = []
        for name, path in times.items():
            needs = timedelta() if path is None else path[0] * (1 + queued / at_once)
            if needs <= spec.sla(name):
                break
            said.append(f"{show_duration(needs)} for {name}, whose SLA is {show_duration(spec.sla(name))}")
        else:
            if said:
                what = f"{queued} may wait for {at_once} at a time, and the last would be answered after {said[0]}"
                yield LONG_QUEUE.at(place, what)


def _queues(spec: Spec) -> Iterator[tuple[Place, int, int]]:
    """Where it is said how many may wait, and how many are worked on at a time at the most."""
    ingress = spec.ingress
    yield ("ingress", "max_queued_requests"), ingress.max_queued_requests, ingress.max_ongoing_requests
    for name, tier in spec.tiers.items():
        queued = ingress.max_queued_requests if tier.max_queued_requests is None else tier.max_queued_requests
        at_once = ingress.max_ongoing_requests if tier.max_ongoing_requests is None else tier.max_ongoing_requests
        if tier.max_queued_requests is not None or tier.max_ongoing_requests is not None:
            key = "max_ongoing_requests" if tier.max_queued_requests is None else "max_queued_requests"
            yield ("tiers", name, key), queued, at_once


@of_each_pipeline
def small_share(spec: Spec, name: str, pipeline: Pipeline) -> Faults:
    admission, path = spec.service.admission, longest_path(spec, pipeline)
    share = admission.work_share or DEFAULT_WORK_SHARE
    may = spec.sla(name) * share / 100
    if admission.adaptive and path is not None and may < path[0] < spec.sla(name):
        yield SMALL_SHARE.at(
            ("pipelines", name),
            f"the budgets along {' → '.join(path[1])} are {show_duration(path[0])}, and {share:g}% of the SLA "
            f"{show_duration(may)}",
        )


@of_the_spec
def unused_share(spec: Spec) -> Faults:
    if spec.service.admission.work_share is not None and not spec.service.admission.adaptive:
        yield UNUSED_SHARE.at(("service", "admission", "work_share"), "adaptive is false")
