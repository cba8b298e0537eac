"""What `tandem up` verifies and says at the end, by what the spec serves; the real one is in tests/service."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from serve_app.cluster import up as module
from serve_app.cluster.head import Head, home
from serve_app.cluster.sample import why_no_sample
from serve_app.project import Project
from serve_app.spec import Spec
from tests.rules.case import merged

SHIPPED = Path(__file__).parents[2] / "cluster" / "spec.yaml"
HEAD = Head("mark", 0, 0.0, 6379, "http://127.0.0.1:8265", "http://127.0.0.1:8000", "secret")


def shipped() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(SHIPPED.read_text(encoding="utf-8"))
    return found


def alone(data: dict[str, Any]) -> dict[str, Any]:
    """The spec with its models and nothing else, as `tandem import` writes one."""
    return {key: value for key, value in data.items() if key not in ("stages", "pipelines", "accept")}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Project]:
    """A project in which nothing is started; what is verified is recorded as progress."""
    monkeypatch.setattr(module, "check_machine", lambda *given: None)
    monkeypatch.setattr(module, "prepare_all", lambda *given: None)
    monkeypatch.setattr(module, "start_head", lambda *given: HEAD)
    monkeypatch.setattr(module, "deploy", lambda *given: None)
    monkeypatch.setattr(module, "fetch_photos", lambda progress: Path("photos"))
    monkeypatch.setattr(module, "verify_sample", lambda url, photos: f"verified at {url}")
    project = Project(tmp_path / "project")
    project.spec_file.parent.mkdir(parents=True)
    yield project
    shutil.rmtree(home(project))


def up(project: Project, data: dict[str, Any], *, sample: bool = True) -> list[str]:
    project.spec_file.write_text(yaml.safe_dump(data, sort_keys=False), encoding="utf-8")
    said: list[str] = []
    module.up(project, "embedded", said.append, sample=sample)
    return said


def test_the_shipped_spec_verifies_the_sample_and_names_every_route(project: Project) -> None:
    said = up(project, shipped())
    assert "  verified at http://127.0.0.1:8000" in said
    end = said.index("up and running; end it with `tandem down`") + 1
    routes = [each["route"] for each in shipped()["pipelines"].values()]
    assert [line.split()[-1] for line in said[end : end + len(routes)]] == [f"{HEAD.url}{route}" for route in routes]
    assert said[end] == "  API        http://127.0.0.1:8000/v1/verify"
    assert said[end + len(routes)] == "  API docs   http://127.0.0.1:8000/docs"


def test_a_service_of_models_alone_comes_up_without_a_sample_and_names_no_route_that_is_not_there(
    project: Project,
) -> None:
    said = up(project, alone(shipped()))
    assert "no sample identity is verified: no pipeline of the spec has the route /v1/verify" in said
    assert not [line for line in said if "verified at" in line]
    end = said.index("up and running; end it with `tandem down`") + 1
    assert [line.split()[0] for line in said[end:]] == ["API", "protocol", "dashboard", "logs"]
    assert said[end:][:2] == [
        "  API docs   http://127.0.0.1:8000/docs",
        "  protocol   http://127.0.0.1:8000/v2, gRPC 127.0.0.1:9000",
    ]


def test_who_wants_no_sample_is_not_told_why_there_is_none(project: Project) -> None:
    assert not [line for line in up(project, alone(shipped()), sample=False) if "sample" in line]


@pytest.mark.parametrize(
    ("pipelines", "reason"),
    [
        ({}, None),
        ({"verify": {"inputs": {"scan": "image"}}}, "/v1/verify takes document, scan, selfie"),
        ({"verify": {"route": "/v3/verify"}}, "no pipeline of the spec has the route /v1/verify"),
    ],
)
def test_a_sample_is_for_a_pipeline_that_takes_what_it_is(pipelines: dict[str, Any], reason: str | None) -> None:
    found = why_no_sample(Spec.model_validate(merged(shipped(), {"pipelines": pipelines})))
    assert (found is None) == (reason is None)
    assert reason is None or (found is not None and reason in found)


def test_a_service_whose_spec_was_broken_since_can_be_ended_all_the_same(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    given: list[float] = []
    monkeypatch.setattr(module, "find_head", lambda project: HEAD)
    monkeypatch.setattr(module, "processes", lambda head: ["one"])
    monkeypatch.setattr(module, "stop_head", lambda head: [])
    monkeypatch.setattr(module, "remove_orphans", lambda: None)
    monkeypatch.setattr(Head, "is_running", lambda self: True)
    monkeypatch.setattr(module, "undeploy", lambda head, seconds: given.append(seconds) or True)
    project.spec_file.write_text("service: {")
    module.down(project, said.append)
    assert given == [60.0 + module.STOP_GRACE_S]
    assert "tandem validate" in said[1]
    assert said[-1] == "down"
