"""A project of a measurement's own: a copy on free ports, with the measurement's models, of which nothing is left."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from serve_app.cluster.head import home
from serve_app.cluster.up import down, up
from serve_app.importing.yaml_text import yaml_lines
from serve_app.project import Project
from serve_app.signals import undisturbed
from serve_app.spec.document import read_document
from serve_app.triton.launch import free_port
from serve_app.weights.errors import Progress


@dataclass(frozen=True)
class AddedModel:
    """A model that the copy has besides: its entry in the spec, and the file with its code for the python backend."""

    entry: Mapping[str, Any]
    code: Path


def copy_project(source: Project, root: Path, models: Mapping[str, AddedModel]) -> Project:
    """The project's files in the folder `root`, which is made, with these models more, on ports that are free now.

    It is for this machine alone: it listens on the loopback interface, in plain text.

    SpecError where the spec cannot be used.
    """
    source.spec()
    shutil.copytree(source.spec_file.parent, root / "cluster")
    shutil.copytree(source.repository, root / "model_repository")
    project = Project(root)
    for name, model in models.items():
        folder = project.repository / name / "1"
        folder.mkdir(parents=True)
        shutil.copy(model.code, folder / "model.py")
    spec = dict(read_document(source.spec_file.read_text(encoding="utf-8-sig")).data or {})
    spec["models"] = {**spec["models"], **{name: dict(model.entry) for name, model in models.items()}}
    spec["service"] = {**spec["service"], "host": "127.0.0.1", "port": free_port()}
    spec["service"].pop("tls", None)
    spec["service"]["grpc"] = {**spec["service"].get("grpc", {}), "port": free_port()}
    spec["ray"] = {**spec.get("ray", {}), "port": free_port(), "dashboard_port": free_port()}
    project.spec_file.write_text("\n".join(yaml_lines(spec)) + "\n", encoding="utf-8")
    return project


@contextmanager
def copied(source: Project, models: Mapping[str, AddedModel]) -> Iterator[Project]:
    """Such a copy within the block, in a temporary folder."""
    with tempfile.TemporaryDirectory(prefix="tandem-bench-") as folder:
        yield copy_project(source, Path(folder) / "project", models)


@contextmanager
def running(project: Project, progress: Progress) -> Iterator[None]:
    """The copy is up within the block; everything of it is ended after that, whatever happens."""
    try:
        up(project, "embedded", progress, sample=False)
        yield
    finally:
        with undisturbed():
            down(project, progress)
            shutil.rmtree(home(project), ignore_errors=True)


@contextmanager
def deployed(source: Project, models: Mapping[str, AddedModel], progress: Progress) -> Iterator[Project]:
    """A copy that is up within the block, and of which nothing is left after it."""
    with copied(source, models) as project, running(project, progress):
        yield project
