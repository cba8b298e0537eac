"""What admission keeps to, as the spec says it and as serve_config.yaml hands it to the ingress."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from functools import cached_property
from typing import Any

from serve_app.spec import Spec
from serve_app.spec.paths import longest_path
from serve_app.spec.ray import DEFAULT_WORK_SHARE

# The kind of requests to models, whose SLA is the service's; a pipeline's kind is its route.
MODELS = "/v2"


@dataclass(frozen=True)
class TierLimits:
    """What a tier has of its own; `floor` is the share of the work (0 to 1) that it always gets."""

    priority: int
    max_ongoing_requests: int | None = None
    max_queued_requests: int | None = None
    floor: float | None = None


@dataclass(frozen=True)
class AdmissionLimits:
    """`user_config` of the ingress in serve_config.yaml: Ray Serve hands a change of it to replicas that run.

    `status_code` and at least `retry_after_s` are what a client is told who is refused. `work_within_s`: while the work
    on requests of a kind takes longer than that, fewer are worked on at a time; where it is empty, always
    `max_ongoing_requests` are. Without `refuse_late`, deadlines are left to those who wait.
    """

    max_ongoing_requests: int
    max_queued_requests: int
    status_code: int
    retry_after_s: float
    refuse_late: bool = True
    work_within_s: Mapping[str, float] = field(default_factory=dict)
    tiers: Sequence[TierLimits] = ()

    @classmethod
    def of(cls, spec: Spec) -> AdmissionLimits:
        ingress, admission = spec.ingress, spec.service.admission
        retry_after = ingress.backpressure.retry_after or spec.service.retry_after
        return cls(
            ingress.max_ongoing_requests,
            ingress.max_queued_requests,
            ingress.backpressure.status,
            retry_after.total_seconds(),
            admission.refuse_late,
            _work_within(spec) if admission.adaptive else {},
            [
                TierLimits(
                    tier.priority,
                    tier.max_ongoing_requests,
                    tier.max_queued_requests,
                    None if tier.floor is None else tier.floor / 100,
                )
                for tier in sorted(spec.tiers.values(), key=lambda tier: tier.priority)
            ],
        )

    @classmethod
    def of_config(cls, user_config: Mapping[str, Any]) -> AdmissionLimits:
        """As the ingress gets it from Ray Serve."""
        return cls(**{**user_config, "tiers": [TierLimits(**tier) for tier in user_config["tiers"]]})

    def config(self) -> dict[str, Any]:
        """As serve_config.yaml has it, without what a tier does not say."""
        tiers = [{key: value for key, value in asdict(tier).items() if value is not None} for tier in self.tiers]
        return {**asdict(self), "tiers": tiers}

    @property
    def floors(self) -> dict[int, float]:
        """Of the tiers that have one, by priority."""
        return {tier.priority: tier.floor for tier in self.tiers if tier.floor}

    def max_ongoing(self, priority: int) -> int:
        """Of a tier."""
        own = self._tier(priority).max_ongoing_requests
        return self.max_ongoing_requests if own is None else own

    def max_queued(self, priority: int) -> int:
        """Of a tier."""
        own = self._tier(priority).max_queued_requests
        return self.max_queued_requests if own is None else own

    @cached_property
    def kept(self) -> Mapping[int, int]:
        """Places to wait that are kept for tiers with a floor, by priority: who never waits gets no share either."""
        kept: dict[int, int] = {}
        for priority, floor in self.floors.items():
            left = self.max_queued_requests - sum(kept.values()) - 1  # one place is anybody's
            share = max(1, int(floor * self.max_queued_requests))
            kept[priority] = max(0, min(share, self.max_queued(priority), left))
        return kept

    def work_within(self, kind: str) -> float | None:
        """Seconds that the work on a request of this kind may take; None where nothing depends on it."""
        return self.work_within_s.get(kind, self.work_within_s.get(MODELS))

    def _tier(self, priority: int) -> TierLimits:
        return self._by_priority.get(priority, _ANY_TIER)

    @cached_property
    def _by_priority(self) -> Mapping[int, TierLimits]:
        return {tier.priority: tier for tier in self.tiers}


_ANY_TIER = TierLimits(0)


def _work_within(spec: Spec) -> dict[str, float]:
    given = spec.service.admission.work_share
    share = (given or DEFAULT_WORK_SHARE) / 100
    within = {MODELS: spec.service.sla * share}
    for name, pipeline in spec.pipelines.items():
        path = None if given else longest_path(spec, pipeline)
        within[pipeline.route] = max(spec.sla(name) * share, timedelta() if path is None else path[0])
    return {kind: time.total_seconds() for kind, time in within.items()}
