"""How many ingresses there shall be, as Ray Serve's own autoscaling takes it."""

from __future__ import annotations

from typing import Any

import pytest
from ray.serve._private.common import DeploymentID, ReplicaID
from ray.serve.autoscaling_policy import _apply_autoscaling_config
from ray.serve.config import AutoscalingConfig, AutoscalingContext

from serve_app.http.scaling import by_requests

INGRESS = DeploymentID("Ingress", "kyc")


def decided(requests: list[float], running: int, **config: Any) -> int:
    """What Ray Serve makes of the policy, without delays and bounds, which are its own."""
    replicas = [ReplicaID(str(index), INGRESS) for index in range(running)]
    said = dict(zip(replicas, requests, strict=False))
    context = AutoscalingContext(
        deployment_id=INGRESS,
        deployment_name="Ingress",
        app_name="kyc",
        current_num_replicas=running,
        target_num_replicas=running,
        running_replicas=replicas,
        total_num_requests=0.0,
        total_queued_requests=0.0,
        aggregated_metrics={"requests": said} if said else {},
        raw_metrics={},
        capacity_adjusted_min_replicas=1,
        capacity_adjusted_max_replicas=10,
        policy_state={},
        last_scale_up_time=None,
        last_scale_down_time=None,
        current_time=0.0,
        config=AutoscalingConfig(
            min_replicas=1,
            max_replicas=10,
            target_ongoing_requests=16,
            upscale_delay_s=0,
            downscale_delay_s=0,
            **config,
        ),
    )
    return int(_apply_autoscaling_config(by_requests)(context)[0])


@pytest.mark.parametrize(
    ("requests", "wanted"),
    [([16], 1), ([17], 2), ([96], 6), ([16, 16], 2), ([30, 30], 4), ([8, 8], 1), ([0, 0], 1), ([0.5], 1)],
)
def test_there_are_as_many_as_the_requests_need(requests: list[float], wanted: int) -> None:
    assert decided(requests, len(requests)) == wanted


def test_before_any_has_said_how_many_it_has_nothing_changes() -> None:
    assert decided([], 2) == 2


def test_factors_of_the_spec_hold() -> None:
    assert decided([64], 1, upscaling_factor=0.5) == 3
