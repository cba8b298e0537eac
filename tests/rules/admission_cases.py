"""Which requests the ingress takes: floors, bounds, and the time that requests have."""

from __future__ import annotations

from typing import Any

from tests.rules.case import Case
from tests.rules.pipeline_cases import served


def second(**changes: Any) -> dict[str, Any]:
    return {"tiers": {"second": changes}}


CASES = {
    "floors of all work": Case(
        "P003",
        {"tiers": {"second": {"floor": "60%"}, "third": {"priority": 3, "floor": "40%"}}},
        "tiers",
        "the floors are 100% together (second 60% + third 40%): nothing is left for the most urgent tier",
    ),
    "a floor of the most urgent tier": Case(
        "P004", {"tiers": {"first": {"floor": "10%"}}}, "tiers.first.floor", "no tier is served before first"
    ),
    "a floor of a tier that never waits": Case(
        "P004", second(floor="10%", max_queued_requests=0), "tiers.second.floor", "no request of second waits"
    ),
    "a floor that the tier's places do not allow": Case(
        "P004",
        {**second(floor="20%", max_ongoing_requests=1), "service": {"admission": {"adaptive": False}}},
        "tiers.second.floor",
        "it is 20%, and second gets 12.5% of the places at the most",
    ),
    "a tier that may work on more than the ingress": Case(
        "P005",
        second(max_ongoing_requests=9),
        "tiers.second.max_ongoing_requests",
        "it is 9, and the ingress's 8: it is never reached",
    ),
    "a tier of which more may wait than in the ingress": Case(
        "P005", second(max_queued_requests=9), "tiers.second.max_queued_requests", "it is 9, and the ingress's 8"
    ),
    "a queue longer than the SLA": Case(
        "P006",
        served({"ingress": {"max_ongoing_requests": 4, "max_queued_requests": 400}}),
        "ingress.max_queued_requests",
        "400 may wait for 4 at a time, and of echo the last would be answered after 10100ms, where its SLA is 8s",
    ),
    "a tier's queue longer than the SLA": Case(
        "P006",
        served(
            {
                "ingress": {"max_ongoing_requests": 8, "max_queued_requests": 400},
                **second(max_ongoing_requests=1, max_queued_requests=100),
            }
        ),
        "tiers.second.max_queued_requests",
        "100 may wait for 1 at a time, and of echo the last would be answered after 10100ms",
    ),
    "few places for a tier whose queue is the ingress's": Case(
        "P006",
        served({"ingress": {"max_queued_requests": 400}, **second(max_ongoing_requests=1)}),
        "tiers.second.max_ongoing_requests",
        "400 may wait for 1 at a time",
    ),
    "a share of the SLA that is too little": Case(
        "P007",
        served({"service": {"admission": {"work_share": "1%"}}}),
        "service.admission.work_share",
        "it is 80ms of the SLA of echo, and the budgets along answer are 100ms",
    ),
    "a share that nothing depends on": Case(
        "P008",
        {"service": {"admission": {"adaptive": False, "work_share": "50%"}}},
        "service.admission.work_share",
        "adaptive is false",
    ),
}
