"""A project with small models, and the live check of it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest
import yaml

from serve_app.live.check import live_faults
from serve_app.project import Project, write_files
from serve_app.spec.findings import Fault, show_place
from serve_app.spec.load import examine_file
from tests.rules.case import merged, patched

WHEEL = {
    "requirement": "nvidia-pytriton==0.7.0",
    "sha256": "21f063ff93bb426d0c06b7a55e7eb9efcfe62c0dddd9a908e9877e18710128df",
}
# Answers x as y.
ECHO = """
import triton_python_backend_utils as pb_utils
from serve_app.triton.backend.tensors import read, write

class TritonPythonModel:
    def execute(self, requests):
        return [pb_utils.InferenceResponse([write("y", read(request, "x"))]) for request in requests]
"""
MODEL = {
    "backend": "python",
    "inputs": {"x": "float32[4]"},
    "outputs": {"y": "float32[4]"},
    "max_batch": 8,
    "latency_budget": "100ms",
    "batching": {"queue_delay": "1ms"},
}


@dataclass(frozen=True)
class Checked:
    """A project that was checked live, and what was found."""

    project: Project
    faults: list[Fault]

    def of(self, name: str) -> list[Fault]:
        return [fault for fault in self.faults if fault.place[1:2] == (name,)]

    def codes(self, name: str) -> list[str]:
        return [fault.rule.code for fault in self.of(name)]

    def only(self, name: str) -> Fault:
        found = self.of(name)
        assert len(found) == 1, found
        return found[0]

    def show(self) -> list[str]:
        return [f"{fault.rule.code} {show_place(fault.place)}: {fault.message}" for fault in self.faults]


def make_project(root: Path, codes: Mapping[str, str], patch: Mapping[str, Any]) -> Project:
    """A project with a python model for each of the codes, as MODEL unless the patch says otherwise."""
    models = dict.fromkeys(codes, MODEL)
    triton = {"profiles": {"embedded": {"triton": WHEEL}}}
    data = json.loads(json.dumps(merged({**patched(triton), "models": models}, patch)))  # no part is there twice
    (root / "cluster").mkdir(parents=True)
    (root / "cluster" / "spec.yaml").write_text(yaml.safe_dump(data, sort_keys=False))
    project = Project(root)
    for name, code in codes.items():
        version = root / "model_repository" / name / "1"
        version.mkdir(parents=True)
        (version / "model.py").write_text(code)
    return project


def traces() -> set[str]:
    """What checks have left on this machine: whose owner is dead, or is this process or one that it started."""
    own = {os.getpid(), *(child.pid for child in psutil.Process().children(recursive=True))}
    left = set()
    for folder in (Path("/tmp"), Path("/dev/shm")):
        for entry in folder.glob("tandem-triton-*"):
            owner = int(entry.name.split("-")[3])
            if owner in own or not psutil.pid_exists(owner):
                left.add(entry.name)
    return left


@pytest.fixture
def check(tmp_path: Path) -> Iterator[Callable[..., Checked]]:
    """Checks a project of these codes live; afterwards nothing of it is left."""
    before = traces()

    def check(codes: Mapping[str, str], patch: Mapping[str, Any] | None = None) -> Checked:
        project = make_project(tmp_path / "project", codes, patch or {})
        report = examine_file(project.spec_file)
        assert report.spec is not None, report.findings
        write_files(project, report.spec)
        return Checked(project, live_faults(project, report.spec, lambda text: None))

    yield check
    assert traces() <= before
