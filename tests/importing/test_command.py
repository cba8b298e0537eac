from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from serve_app.cli import main
from serve_app.project import Project, write_files
from tests.importing.conftest import PYTHON, Repository


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    return Project(tmp_path / "project")


def tandem(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["import", *map(str, arguments)])


def test_a_repository_becomes_a_project_that_renders(repository: Repository, project: Project) -> None:
    repository.add("m", PYTHON, "1/model.py")
    result = tandem(repository.folder)
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr.splitlines()[0] == "cluster/spec.yaml: 1 of 1 models"
    (copy,) = (line for line in result.stderr.splitlines() if "cp -R" in line)
    subprocess.run(["sh", "-c", copy], check=True)
    assert "model_repository/m/config.pbtxt" in write_files(project, project.spec())
    assert (project.repository / "m/1/model.py").is_file()


def test_the_spec_is_written_and_1_is_the_status_where_something_is_lost(
    repository: Repository, project: Project
) -> None:
    repository.add("good", PYTHON, "1/model.py")
    repository.add("bad", "nonsense")
    result = tandem(repository.folder)
    assert result.exit_code == 1
    assert "not carried:\n  bad: bad/config.pbtxt:1: " in result.stderr
    assert list(project.spec().models) == ["good"]


def test_a_spec_that_is_there_is_overwritten_by_force_only(repository: Repository, project: Project) -> None:
    repository.add("m", PYTHON, "1/model.py")
    project.spec_file.parent.mkdir()
    project.spec_file.write_text("mine")
    result = tandem(repository.folder)
    assert result.exit_code == 2
    assert "cluster/spec.yaml exists" in result.stderr
    assert project.spec_file.read_text() == "mine"
    assert tandem(repository.folder, "--force").exit_code == 0
    assert list(project.spec().models) == ["m"]


def test_the_spec_can_go_elsewhere(repository: Repository, project: Project) -> None:
    repository.add("m", PYTHON, "1/model.py")
    assert tandem(repository.folder, "--output", "new/other.yaml").exit_code == 0
    shown = tandem(repository.folder, "--output", "-")
    assert shown.stdout == Path("new/other.yaml").read_text()
    assert not project.spec_file.exists()


def test_models_that_are_in_place_are_not_copied(repository: Repository, project: Project) -> None:
    repository.add("m", PYTHON, "1/model.py")
    shutil.copytree(repository.folder, project.repository)
    assert "cp -R" not in tandem("model_repository").stderr


def test_a_folder_that_is_no_repository_is_said_to_be_none(project: Project) -> None:
    result = tandem(project.root)
    assert result.exit_code == 1
    assert "there is no model in" in result.stderr
