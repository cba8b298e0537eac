"""What a changed spec does to a service that runs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from serve_app.cluster.deploy import deploy, details
from serve_app.cluster.head import find_head
from serve_app.project import write_files
from tests.service.conftest import Service

DEPLOY_S = 120


@pytest.fixture
def changeable(service: Service) -> Iterator[Service]:
    """The service, whose spec is as it was after the test."""
    before = service.project.spec_file.read_text()
    yield service
    service.project.spec_file.write_text(before)
    redeploy(service)


def change(service: Service, stage: str, old: str, new: str) -> None:
    """Write `new` for the first `old` after the name of the stage, and deploy what follows."""
    text = service.project.spec_file.read_text()
    head, name, tail = text.partition(f"\n  {stage}:\n    code:")
    assert old in tail
    service.project.spec_file.write_text(head + name + tail.replace(old, new, 1))
    redeploy(service)


def redeploy(service: Service) -> None:
    head = find_head(service.project)
    assert head is not None
    write_files(service.project, service.project.spec())
    deploy(service.project, head, DEPLOY_S, lambda _: None)


def replicas(service: Service) -> dict[str, set[str]]:
    """The replicas of each deployment that run or start."""
    head = find_head(service.project)
    assert head is not None
    deployments = details(head).json()["applications"]["kyc"]["deployments"]
    return {
        name: {each["replica_id"] for each in deployment["replicas"] if each["state"] != "STOPPING"}
        for name, deployment in deployments.items()
    }


def test_other_bounds_of_autoscaling_leave_every_process_running(changeable: Service) -> None:
    before, triton = replicas(changeable), changeable.triton_processes()
    change(changeable, "faces", "max_replicas: 2", "max_replicas: 3")
    assert replicas(changeable) == before
    assert changeable.triton_processes() == triton


def test_other_cpus_restart_that_stage_alone(changeable: Service) -> None:
    before, triton = replicas(changeable), changeable.triton_processes()
    change(changeable, "faces", "cpus: 0.1", "cpus: 0.15")
    after = replicas(changeable)
    assert before["faces"].isdisjoint(after["faces"])
    assert {name for name in before if before[name] != after[name]} == {"faces"}
    assert changeable.triton_processes() == triton
