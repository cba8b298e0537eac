"""What of the spec gets to the ingress, and back out of serve_config.yaml."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from serve_app.admission import AdmissionLimits, TierLimits
from serve_app.spec import Spec
from tests.rules.case import patched
from tests.rules.pipeline_cases import served


def limits(patch: dict[str, Any]) -> AdmissionLimits:
    return AdmissionLimits.of(Spec.model_validate(patched(patch)))


def test_a_tier_has_the_bounds_of_the_ingress_where_it_has_none_of_its_own() -> None:
    own = {"max_ongoing_requests": 2, "max_queued_requests": 0, "floor": "5%"}
    found = limits({"tiers": {"second": own}})
    assert found.tiers == [TierLimits(1), TierLimits(2, 2, 0, 0.05)]
    assert [(found.max_ongoing(priority), found.max_queued(priority)) for priority in (1, 2)] == [(8, 8), (2, 0)]
    assert found.floors == {2: 0.05}


@pytest.mark.parametrize(
    ("queued", "tiers", "kept"),
    [
        (64, [TierLimits(1), TierLimits(2, floor=0.2), TierLimits(3, floor=0.05)], {2: 12, 3: 3}),
        (8, [TierLimits(1), TierLimits(2, floor=0.05)], {2: 1}),
        (8, [TierLimits(1), TierLimits(2, max_queued_requests=2, floor=0.5)], {2: 2}),
        (2, [TierLimits(1), TierLimits(2, floor=0.6), TierLimits(3, floor=0.3)], {2: 1, 3: 0}),
        (1, [TierLimits(1), TierLimits(2, floor=0.9)], {2: 0}),
        (64, [TierLimits(1), TierLimits(2)], {}),
    ],
)
def test_a_floor_keeps_its_share_of_the_places_to_wait_but_never_all(
    queued: int, tiers: list[TierLimits], kept: dict[int, int]
) -> None:
    assert AdmissionLimits(8, queued, 429, 1.0, tiers=tiers).kept == kept


@pytest.mark.parametrize(
    ("admission", "sla", "within"),
    [
        ({}, "8s", {"/v2": 2.64, "/v1/echo": 2.64}),
        ({}, "200ms", {"/v2": 2.64, "/v1/echo": 0.1}),  # the latency budget
        ({"work_share": "25%"}, "200ms", {"/v2": 2.0, "/v1/echo": 0.05}),
        ({"adaptive": False}, "8s", {}),
    ],
)
def test_the_work_may_take_a_share_of_the_sla_or_the_budgets(
    admission: dict[str, Any], sla: str, within: dict[str, float]
) -> None:
    found = limits(served({"service": {"admission": admission}, "pipelines": {"echo": {"sla": sla}}}))
    assert found.work_within_s == within
    assert found.work_within("m") == within.get("/v2")


def test_what_is_written_to_the_config_is_what_the_ingress_gets() -> None:
    found = limits(served({"tiers": {"second": {"floor": "5%"}}, "service": {"admission": {"refuse_late": False}}}))
    assert AdmissionLimits.of_config(yaml.safe_load(yaml.safe_dump(found.config()))) == found
