"""Ray's own schema, and what Ray would find only while it deploys."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import ray

from serve_app.live import ray_schema
from serve_app.live.ray_schema import schema_faults
from serve_app.spec import Spec
from tests.rules.case import patched

Faults = list[tuple[str, str, str]]
AUTOSCALING = {"min_replicas": 3, "max_replicas": 2, "target_ongoing_requests": 4.0}


@pytest.fixture
def faults(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[dict[str, Any]], object]], Faults]:
    """What is found in the smallest spec's configuration after a change to it, as if it had been rendered so."""
    spec = Spec.model_validate(patched({}))
    real = ray_schema.serve_config

    def faults(change: Callable[[dict[str, Any]], object]) -> Faults:
        config = real(spec)
        change(config)
        monkeypatch.setattr(ray_schema, "serve_config", lambda spec: config)
        return [(fault.rule.code, ".".join(map(str, fault.place)), fault.what) for fault in schema_faults(spec)]

    return faults


def triton(config: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = config["applications"][0]["deployments"][0]
    return found


def ingress(config: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = config["applications"][0]["deployments"][-1]
    return found


def test_what_the_spec_renders_to_is_sound(faults: Any) -> None:
    assert faults(lambda config: None) == []


def test_another_ray_than_the_profiles_is_said() -> None:
    spec = Spec.model_validate(patched({"profiles": {"embedded": {"ray_version": "2.59.0"}}}))
    (fault,) = [fault for fault in schema_faults(spec) if fault.rule.code == "L013"]
    assert fault.place == ("profiles", "embedded", "ray_version")
    assert fault.what == f"{ray.__version__} is installed, not 2.59.0"


@pytest.mark.parametrize(
    ("change", "code", "place", "says"),
    [
        (lambda c: ingress(c).update(max_ongoing_requests=0), "L014", "ingress", "greater than 0"),
        (lambda c: ingress(c).update(autoscaling_config=AUTOSCALING), "L014", "ingress", "autoscaling_config: "),
        (
            lambda c: ingress(c).update(request_router_config={"backoff_multiplier": -1}),
            "L014",
            "ingress",
            "backoff_multiplier",
        ),
        (lambda c: triton(c).update(placement_group_strategy="PACK"), "L014", "profiles.embedded.triton", "bundles"),
        (lambda c: triton(c).update(max_concurrent_queries=3), "L015", "profiles.embedded.triton", "max_concurrent"),
        (
            lambda c: triton(c)["ray_actor_options"].update(num_gpu=1),
            "L015",
            "profiles.embedded.triton",
            "num_gpu",
        ),
        (
            lambda c: ingress(c)["autoscaling_config"].update(target_num_ongoing_requests_per_replica=2),
            "L015",
            "ingress",
            "target_num_ongoing",
        ),
        (lambda c: c.update(http_option={}), "L015", "ray", "http_option"),
        (lambda c: c["applications"][0].update(route="/"), "L015", "ray", "route"),
    ],
)
def test_what_ray_refuses_or_passes_over_is_found(faults: Any, change: Any, code: str, place: str, says: str) -> None:
    found = faults(change)
    assert [(each[0], each[1]) for each in found if says in each[2]] == [(code, place)], found
