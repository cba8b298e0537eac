"""A measurement's copy of a project: what is in it, and that the project itself is left alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from serve_app.bench.scratch import AddedModel, copy_project
from serve_app.project import Project, left_over, write_files
from serve_app.spec import SpecError

CHECKOUT = Project(Path(__file__).parents[2])


@pytest.fixture
def added(tmp_path: Path) -> AddedModel:
    code = tmp_path / "code.py"
    code.write_text("class TritonPythonModel: ...\n")
    entry = {
        "backend": "python",
        "inputs": {"IN": "float32[1]"},
        "outputs": {"OUT": "float32[1]"},
        "max_batch": 4,
        "latency_budget": "10ms",
    }
    return AddedModel(entry, code)


def test_a_copy_is_the_project_with_more_models_on_ports_of_its_own(added: AddedModel, tmp_path: Path) -> None:
    ours, before = CHECKOUT.spec(), CHECKOUT.spec_file.read_bytes()
    copy = copy_project(CHECKOUT, tmp_path / "copy", {"more": added})
    theirs = copy.spec()
    assert theirs.models.keys() == {*ours.models, "more"}
    assert {name: theirs.models[name] for name in ours.models} == ours.models
    assert (theirs.pipelines, theirs.stages, theirs.tiers) == (ours.pipelines, ours.stages, ours.tiers)
    assert (copy.repository / "more" / "1" / "model.py").read_text() == added.code.read_text()
    ports = {theirs.service.port, theirs.service.grpc.port, theirs.ray.port, theirs.ray.dashboard_port}
    assert len(ports) == 4
    assert not ports & {ours.service.port, ours.service.grpc.port, ours.ray.port, ours.ray.dashboard_port}
    assert theirs.service.model_copy(update={"port": ours.service.port, "grpc": ours.service.grpc}) == ours.service
    write_files(copy, theirs)
    assert left_over(copy, theirs) == []
    assert CHECKOUT.spec_file.read_bytes() == before


def test_a_spec_that_cannot_be_used_is_not_copied(tmp_path: Path) -> None:
    (tmp_path / "cluster").mkdir()
    (tmp_path / "cluster" / "spec.yaml").write_text("application: a\n")
    with pytest.raises(SpecError):
        copy_project(Project(tmp_path), tmp_path / "copy", {})
    assert not (tmp_path / "copy").exists()


def test_a_copy_of_what_is_public_is_reached_from_this_machine_alone(added: AddedModel, tmp_path: Path) -> None:
    public = copy_project(CHECKOUT, tmp_path / "public", {})
    text = public.spec_file.read_text()
    tls = "host: 0.0.0.0\n  tls: {certificate: /etc/tandem/tls.crt, key: /etc/tandem/tls.key}"
    assert "host: 127.0.0.1" in text
    public.spec_file.write_text(text.replace("host: 127.0.0.1", tls))
    assert public.spec().service.tls is not None
    service = copy_project(public, tmp_path / "copy", {"more": added}).spec().service
    assert (service.host, service.tls) == ("127.0.0.1", None)
