"""What the cluster is told to be, apart from the application; the real one is asked in tests/service/test_drift.py."""

from __future__ import annotations

import json
from typing import Any

import pytest

from serve_app.drift.difference import Drift
from serve_app.drift.of_cluster import cluster_drift, not_compared, port_drift
from serve_app.drift.report import render_json, render_text
from serve_app.render.ray_serve import serve_config
from serve_app.spec import Spec
from tests.rules.case import patched

OFF = {"enabled": False, "exporter_import_path": "", "sampling_ratio": 0.01}
ON = {**OFF, "enabled": True}
UNTOLD = "not compared, since Ray does not tell it: ray.controller_environment"


def drift(ray: dict[str, Any], **told: Any) -> list[Drift]:
    spec = Spec.model_validate(patched({"ray": ray}))
    return list(cluster_drift(spec, serve_config(spec), {"object_stores": {}, **told}))


def test_a_node_with_less_room_for_objects_than_the_spec_says_is_told() -> None:
    sizes = {"10.0.0.1": 64 * 2**20, "10.0.0.2": 128 * 2**20, "10.0.0.3": 2**30}
    (found,) = drift({}, object_stores=sizes)
    assert (found.part, found.running, found.wanted) == ("node 10.0.0.1", "64MiB", "128MiB or more")
    assert (found.effect, found.remedy) == (None, "no redeploy changes it: start the node anew")


@pytest.mark.parametrize(
    ("ray", "told", "expected"),
    [
        ({}, None, []),
        ({}, OFF, []),
        ({}, {**OFF, "sampling_ratio": 0.5}, []),
        ({}, ON, [("tracing_config.enabled", "True", "False")]),
        ({"tracing": {}}, ON, []),
        ({"tracing": {}}, None, [("tracing_config.enabled", "False", "True")]),
        ({"tracing": {"sampling": "50%"}}, ON, [("tracing_config.sampling_ratio", "0.01", "0.5")]),
    ],
)
def test_tracing_is_compared_as_ray_serve_was_told_of_it(ray: Any, told: Any, expected: list[tuple[str, ...]]) -> None:
    found = drift(ray, tracing=told)
    assert [(each.what, each.running, each.wanted) for each in found] == expected
    assert {each.effect for each in found} <= {"needs a new start of Serve"}


def test_a_ray_that_does_not_tell_of_tracing_is_no_difference() -> None:
    assert drift({"tracing": {}}) == []


def test_what_ray_tells_nobody_is_said_where_the_spec_gives_it() -> None:
    def places(ray: dict[str, Any]) -> list[str]:
        return not_compared(Spec.model_validate(patched({"ray": ray})), knows_ports=True)

    level = {"level": "debug"}
    assert places({"logging": level}) == []
    assert places({"application_logging": level}) == []
    assert places({"logging": level, "application_logging": level}) == ["ray.logging"]
    assert places({"controller_environment": {"A": "1"}}) == ["ray.controller_environment"]


def test_the_ports_of_a_head_node_of_tandem_up_are_compared() -> None:
    spec = Spec.model_validate(patched({"ray": {"port": 7001, "dashboard_port": 7002}}))
    assert list(port_drift(spec, "http://127.0.0.1:7002", 7001)) == []
    remedy = "no redeploy changes it: `tandem down`, then `tandem up`"
    assert list(port_drift(spec, "http://127.0.0.1:8265", 6379)) == [
        Drift("head node", "ray.port", "6379", "7001", None, remedy),
        Drift("head node", "ray.dashboard_port", "8265", "7002", None, remedy),
    ]


def test_the_ports_of_another_cluster_are_said_not_to_be_compared() -> None:
    spec = Spec.model_validate(patched({}))
    assert not_compared(spec, knows_ports=False) == ["ray.port", "ray.dashboard_port"]


def test_people_and_scripts_are_told_what_was_not_compared() -> None:
    difference = Drift("Ingress", "num_replicas", "1", "2", "in place")
    untold = ["ray.controller_environment"]
    assert render_text("D", [], untold) == f"what runs at D is what the spec says\n{UNTOLD}\n"
    assert render_text("D", [difference], untold).endswith(f"change 1 in place\n{UNTOLD}\n")
    assert render_text("D", [], []) == "what runs at D is what the spec says\n"
    assert json.loads(render_json("D", [], untold))["not_compared"] == untold
