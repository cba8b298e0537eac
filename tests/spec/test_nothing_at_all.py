"""Durations and sizes of nothing are refused where they cannot work, and taken where they mean something."""

from __future__ import annotations

from typing import Any

import pytest

from tests.rules.case import report
from tests.rules.pipeline_cases import served

TRITON = ("profiles", "embedded", "triton")
REFUSED: dict[tuple[str, ...], str] = {
    ("service", "sla"): "0s",
    ("service", "upload_limit"): "0B",
    ("service", "request_limit"): "0MiB",
    ("service", "retry_after"): "0s",
    ("service", "http", "keep_alive"): "0s",
    ("ray", "object_store"): "0B",
    (*TRITON, "memory"): "0B",
    (*TRITON, "device_memory"): "0GiB",
    (*TRITON, "shared_memory"): "0B",
    (*TRITON, "startup_timeout"): "0s",
    ("ingress", "memory"): "0B",
    ("ingress", "backpressure", "retry_after"): "0s",
    ("models", "m", "latency_budget"): "0ms",
    ("pipelines", "echo", "sla"): "0s",
}
TAKEN: dict[tuple[str, ...], str] = {
    ("ingress", "drain_wait"): "0s",
    ("ingress", "autoscaling", "upscale_delay"): "0s",
    ("models", "m", "batching", "queue_delay"): "0s",
    ("models", "m", "memory"): "0B",
}


def written(place: tuple[str, ...], value: str) -> dict[str, Any]:
    patch: Any = value
    for key in reversed(place):
        patch = {key: patch}
    return served(patch) if place[0] == "pipelines" else dict(patch)


@pytest.mark.parametrize(("place", "value"), REFUSED.items(), ids=map(".".join, REFUSED))
def test_nothing_is_refused_where_it_cannot_work(place: tuple[str, ...], value: str) -> None:
    (found,) = report(written(place, value)).findings
    assert (found.code, found.place) == ("Y013", ".".join(place))
    assert found.message == "it is nothing at all: the engines would refuse or misread it; write more than 0"


@pytest.mark.parametrize(("place", "value"), TAKEN.items(), ids=map(".".join, TAKEN))
def test_nothing_is_taken_where_it_means_something(place: tuple[str, ...], value: str) -> None:
    assert report(written(place, value)).findings == []


@pytest.mark.parametrize("sla", ["100ms", "101ms", "101999us"])
@pytest.mark.parametrize("queue", [{}, {"timeout": "50ms"}, {"allow_override": True}], ids=str)
def test_budgets_of_all_of_an_sla_are_one_finding(sla: str, queue: dict[str, Any]) -> None:
    """Nothing is said of the timeouts that follow from it, nor of those that cannot be right beside it."""
    patch = {"pipelines": {"echo": {"sla": sla}}, "models": {"m": {"batching": {"queue": queue}}}}
    found = [(each.code, each.place) for each in report(served(patch)).findings]
    assert found == [("P115", "pipelines.echo")]


def test_time_to_wait_beside_the_budgets_is_fine() -> None:
    assert report(served({"pipelines": {"echo": {"sla": "102ms"}}})).findings == []
