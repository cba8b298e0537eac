"""Ray Serve's account of what runs; the real one is compared in tests/service/test_drift.py."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from serve_app.drift.of_ray import ray_drift
from serve_app.render.ray_serve import serve_config
from serve_app.spec import Spec
from tests.rules.case import patched

CONFIG = serve_config(Spec.model_validate(patched({})))


def running(config: dict[str, Any]) -> dict[str, Any]:
    """What Ray Serve says when it runs exactly this."""
    (application,) = config["applications"]
    deployments = {
        each["name"]: {
            "status": "HEALTHY",
            "message": "",
            "target_num_replicas": 1,
            "replicas": [{"state": "RUNNING"}],
        }
        for each in application["deployments"]
    }
    return {
        "proxy_location": config["proxy_location"],
        "applications": {
            application["name"]: {
                "status": "RUNNING",
                "message": "",
                "deployed_app_config": copy.deepcopy(application),
                "deployments": deployments,
            }
        },
    }


def drift(change: Any) -> list[tuple[str, str, str, str, str | None]]:
    details = running(CONFIG)
    change(details, details["applications"]["small"])
    return [(each.part, each.what, each.running, each.wanted, each.effect) for each in ray_drift(CONFIG, details)]


def deployed(application: dict[str, Any], index: int = -1) -> dict[str, Any]:
    found: dict[str, Any] = application["deployed_app_config"]["deployments"][index]
    return found


def gone(details: dict[str, Any], application: dict[str, Any]) -> None:
    del details["applications"]["small"]


def another(details: dict[str, Any], application: dict[str, Any]) -> None:
    details["applications"]["other"] = application


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (gone, ("small", "application", "not deployed", "deployed", "restarts the application")),
        (another, ("other", "application", "deployed", "nothing", "restarts the application")),
        (
            lambda d, a: a.update(deployed_app_config=None),
            ("small", "source", "code (serve run)", "serve_config.yaml", None),
        ),
        (lambda d, a: a.update(status="DEPLOYING"), ("small", "status", "deploying", "running", None)),
        (
            lambda d, a: d.update(proxy_location="EveryNode"),
            ("Ray Serve", "proxy_location", "EveryNode", "Disabled", "needs a new start of Serve"),
        ),
        (
            lambda d, a: d.update(target_capacity=50.0),
            ("Ray Serve", "target_capacity", "50", "nothing", "in place"),
        ),
        (
            lambda d, a: a["deployed_app_config"].update(logging_config={"log_level": "DEBUG"}),
            ("small", "logging_config", "given", "nothing", "in place"),
        ),
        (
            lambda d, a: deployed(a)["user_config"].update(max_ongoing_requests=7),
            ("Ingress", "user_config.max_ongoing_requests", "7", "8", "in place"),
        ),
        (
            lambda d, a: deployed(a).update(max_replicas_per_node=1),
            ("Ingress", "max_replicas_per_node", "1", "nothing", "restarts the application"),
        ),
        (
            lambda d, a: deployed(a)["ray_actor_options"].update(num_cpus=1),
            ("Ingress", "ray_actor_options.num_cpus", "1", "0.1", "restarts the deployment"),
        ),
        (
            lambda d, a: a["deployed_app_config"]["deployments"].append({"name": "old"}),
            ("old", "deployment", "deployed", "nothing", "restarts the application"),
        ),
        (
            lambda d, a: a["deployed_app_config"].update(args={**a["deployed_app_config"]["args"], "spec": "abc"}),
            ("small", "args.spec", "abc", CONFIG["applications"][0]["args"]["spec"], "restarts the application"),
        ),
        (
            lambda d, a: a["deployments"]["Ingress"].update(status="UPDATING"),
            ("Ingress", "status", "updating", "healthy", None),
        ),
        (
            lambda d, a: a["deployments"]["Triton"].update(replicas=[], target_num_replicas=1),
            ("Triton", "replicas that run", "0", "1", None),
        ),
        (
            lambda d, a: a["deployments"]["Triton"].update(target_num_replicas=0),
            ("Triton", "num_replicas that Ray keeps", "0", "1", "in place"),
        ),
    ],
)
def test_a_difference_is_told_with_what_a_redeploy_does(change: Any, expected: tuple[str, ...]) -> None:
    assert drift(change) == [expected]


def test_what_runs_as_it_was_rendered_does_not_differ() -> None:
    assert drift(lambda details, application: None) == []


def test_the_clusters_logging_is_where_ray_serve_keeps_it() -> None:
    """Its controller writes the cluster's logging into an application that has none (`apply_config`, 2.60)."""

    def differences(wanted: dict[str, Any], kept: dict[str, Any]) -> list[tuple[str, str, str]]:
        config = serve_config(Spec.model_validate(patched({"ray": wanted})))
        details = running(config)
        details["applications"]["small"]["deployed_app_config"]["logging_config"] = kept
        return [(each.what, each.running, each.wanted) for each in ray_drift(config, details)]

    info, debug = {"log_level": "INFO"}, {"log_level": "DEBUG"}
    assert differences({"logging": {"level": "info"}}, info) == []
    assert differences({"logging": {"level": "info"}}, debug) == [("logging_config.log_level", "DEBUG", "INFO")]
    both = {"logging": {"level": "debug"}, "application_logging": {"level": "info"}}
    assert differences(both, info) == []
    assert differences(both, debug) == [("logging_config.log_level", "DEBUG", "INFO")]


def test_where_serve_was_never_started_only_the_application_is_missing() -> None:
    nothing: dict[str, Any] = {"applications": {}}
    assert [(each.part, each.running) for each in ray_drift(CONFIG, nothing)] == [("small", "not deployed")]
