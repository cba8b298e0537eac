"""What a changed spec does to a service that runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from serve_app.cluster.deploy import deploy, details
from serve_app.cluster.head import find_head
from serve_app.project import write_files
from tests.service.conftest import Service, eventually

DEPLOY_S = 120


@pytest.fixture
def changeable(service: Service) -> Iterator[Service]:
    """The service, whose spec is as it was after the test."""
    before = service.project.spec_file.read_text()
    yield service
    service.project.spec_file.write_text(before)
    redeploy(service)


def change(service: Service, part: str, old: str, new: str) -> None:
    """Write `new` for the first `old` after the name of the ingress or a stage, and deploy what follows."""
    text = service.project.spec_file.read_text()
    head, name, tail = text.partition("\ningress:\n" if part == "ingress" else f"\n  {part}:\n    code:")
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
    change(changeable, "documents", "max_replicas: 2", "max_replicas: 3")
    assert replicas(changeable) == before
    assert changeable.triton_processes() == triton


def test_other_limits_of_the_ingress_hold_at_once_and_leave_every_process_running(
    changeable: Service, photos: dict[str, bytes]
) -> None:
    def answers() -> set[tuple[int, str | None]]:
        with ThreadPoolExecutor(6) as pool:
            asked = [pool.submit(changeable.post, "/v1/faces/embed", image=photos["person_a_1"]) for _ in range(6)]
            return {(answer.result().status_code, answer.result().json().get("code")) for answer in asked}

    before = replicas(changeable)
    assert answers() == {(200, None)}
    limits = """max_ongoing_requests: {0}
  max_queued_requests: {1}
  autoscaling: {{min_replicas: 1, max_replicas: {2}, target_ongoing_requests: {3}}}"""
    change(changeable, "ingress", limits.format(64, 64, 2, 64), limits.format(1, 1, 1, 1))
    eventually(lambda: answers() == {(200, None), (429, "service_full")}, 30)
    assert replicas(changeable) == before


def test_an_ingress_that_is_replaced_answers_what_it_has(
    changeable: Service, photos: dict[str, bytes], document: Callable[[str], bytes]
) -> None:
    papers, before = document("person_a_2"), replicas(changeable)
    with ThreadPoolExecutor(4) as pool:
        asked = [
            pool.submit(changeable.post, "/v1/verify", selfie=photos["person_a_1"], document=papers) for _ in range(4)
        ]
        eventually(lambda: all(each.running() for each in asked), 5)
        change(changeable, "ingress", "cpus: 0.2", "cpus: 0.25")
        answers = [each.result() for each in asked]
    assert [answer.status_code for answer in answers] == [200] * 4
    after = replicas(changeable)
    assert before["Ingress"].isdisjoint(after["Ingress"])
    assert {name for name in before if before[name] != after[name]} == {"Ingress"}


def test_other_cpus_restart_that_stage_alone(changeable: Service) -> None:
    before, triton = replicas(changeable), changeable.triton_processes()
    change(changeable, "documents", "cpus: 0.1", "cpus: 0.15")
    after = replicas(changeable)
    assert before["documents"].isdisjoint(after["documents"])
    assert {name for name in before if before[name] != after[name]} == {"documents"}
    assert changeable.triton_processes() == triton
