"""What counts as left behind."""

from __future__ import annotations

from dataclasses import replace

import pytest

from serve_app.bench.chaos.traces import (
    CONTROLLER,
    GUARD,
    MODEL,
    MORE_DESCRIPTORS,
    MORE_MEMORY,
    RAYLET,
    REST,
    TRITON,
    Traces,
    left,
    role_of,
)

ROLES = (TRITON, GUARD, CONTROLLER, RAYLET, "Ingress", REST)
CALM = Traces(
    processes={**dict.fromkeys(ROLES, 1), MODEL: 4},
    descriptors=dict.fromkeys((*ROLES, MODEL), 100),
    ports=dict.fromkeys((*ROLES, MODEL), 2),
    memory=dict.fromkeys((*ROLES, MODEL), 2**28),
    segments={17: 4},
    dead=frozenset(),
)


@pytest.mark.parametrize(
    ("name", "command", "role"),
    [
        ("tritonserver", "/opt/tritonserver --id=x", TRITON),
        ("python3", "python3 -I -S /a/guard.py 1 log", GUARD),
        ("triton_python_b", "/a/triton_python_backend_stub /m/model.py", MODEL),
        ("ray::ServeRepli", "ray::ServeReplica:kyc:Ingress", "Ingress"),
        ("ray::ServeRepli", "ray::ServeReplica:kyc:documents.call", "documents"),
        ("ray::ServeContr", "ray::ServeController.listen_for_change", CONTROLLER),
        ("raylet", "/ray/raylet --a", RAYLET),
        ("ray::IDLE", "ray::IDLE", REST),
    ],
)
def test_processes_are_told_apart(name: str, command: str, role: str) -> None:
    assert role_of(name, command) == role


def test_another_server_in_the_place_of_the_first_leaves_nothing() -> None:
    assert left(CALM, replace(CALM, segments={18: 4})) == []


def test_a_second_server_is_left_behind() -> None:
    assert left(CALM, replace(CALM, processes={**CALM.processes, TRITON: 2})) == [
        "2 processes of tritonserver instead of 1"
    ]


def test_a_model_without_its_process_is_told() -> None:
    assert left(CALM, replace(CALM, processes={**CALM.processes, MODEL: 3})) == ["3 processes of model instead of 4"]


def test_a_second_replica_of_a_deployment_is_none_and_may_hold_as_much_again() -> None:
    doubled = {"processes": 2, "descriptors": 200, "ports": 4, "memory": 2**29}
    more = {key: {**getattr(CALM, key), "Ingress": value} for key, value in doubled.items()}
    assert left(CALM, replace(CALM, **more)) == []


@pytest.mark.parametrize(
    ("what", "allowed", "says"),
    [
        ("descriptors", MORE_DESCRIPTORS, "descriptors more in Ingress"),
        ("memory", MORE_MEMORY, "MiB more in Ingress"),
        ("ports", 0, "1 ports more in Ingress"),
    ],
)
def test_what_a_process_holds_more_is_told_beyond_what_is_usual(what: str, allowed: int, says: str) -> None:
    held = getattr(CALM, what)
    assert left(CALM, replace(CALM, **{what: {**held, "Ingress": held["Ingress"] + allowed}})) == []
    (found,) = left(CALM, replace(CALM, **{what: {**held, "Ingress": held["Ingress"] + allowed + 1}}))
    assert says in found


def test_rays_idle_workers_come_and_go() -> None:
    assert left(CALM, replace(CALM, processes={**CALM.processes, REST: 9}, memory={**CALM.memory, REST: 2**33})) == []


def test_shared_memory_of_a_dead_server_is_told_where_it_was_not_there_before() -> None:
    after = replace(CALM, segments={17: 4, 16: 4}, dead=frozenset({16}))
    assert left(CALM, after) == ["shared memory of 1 servers that are gone"]
    assert left(after, after) == []


def test_more_segments_of_a_living_server_are_told() -> None:
    assert left(CALM, replace(CALM, segments={17: 6})) == ["2 segments of shared memory more"]
