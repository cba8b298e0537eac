"""Repositories with files in odd states: nothing is waited for, and what cannot be carried is said."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from serve_app.cli import main
from serve_app.importing.error import RepositoryError
from serve_app.importing.repository import read_repository
from serve_app.spec.load import examine_file
from tests.importing.conftest import PYTHON, Repository, lost
from tests.test_files import ODD

ODD_FILES = [odd for odd in ODD if odd != "nothing"]


def tandem(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["import", *map(str, arguments)])


@pytest.mark.parametrize("odd", ODD_FILES)
def test_a_configuration_in_an_odd_state_is_not_carried(repository: Repository, odd: str) -> None:
    repository.add("m", None, "1/model.py")
    make, says = ODD[odd]
    make(repository.folder / "m/config.pbtxt")
    what = "is a link to gone, which does not exist" if odd == "a link to nothing" else f"cannot be read: {says}"
    assert lost(repository.imported()) == [f"m: m/config.pbtxt {what}"]


def test_a_huge_configuration_is_not_read(repository: Repository) -> None:
    repository.add("m", PYTHON, "1/model.py")
    with (repository.folder / "m/config.pbtxt").open("wb") as file:
        file.truncate(2**42)
    assert lost(repository.imported()) == ["m: m/config.pbtxt cannot be read: it has more than 64 MiB"]


@pytest.mark.parametrize("odd", [odd for odd in ODD_FILES if odd != "a folder"])
def test_code_in_an_odd_state_is_for_its_author_to_look_at(repository: Repository, odd: str) -> None:
    repository.add("m", PYTHON, "1/model.py")
    make, says = ODD[odd]
    make(repository.folder / "m/1/more.py")
    assert repository.imported().unclear == [f"m: m/1/more.py cannot be read ({says}): which models does it call?"]


@pytest.mark.parametrize("odd", [odd for odd in ODD_FILES if odd != "a folder"])
def test_a_graph_in_an_odd_state_completes_nothing(repository: Repository, odd: str) -> None:
    repository.add("m", 'backend: "onnxruntime"', "1/nothing")
    make, says = ODD[odd]
    make(repository.folder / "m/1/model.onnx")
    (line,) = lost(repository.imported())
    if odd == "a link to nothing":
        assert line == "m: it names no tensors, and m/1/model.onnx, which does, is not there"
    else:
        assert line.endswith(f"m/1/model.onnx, which does, is no ONNX model that can be read ({says})")


def test_a_label_file_in_an_odd_state_is_unfit(repository: Repository) -> None:
    labelled = PYTHON.replace('name: "y"', 'name: "y" label_filename: "labels.txt"')
    repository.add("m", labelled, "1/model.py")
    (repository.folder / "m/1/model.py").write_text("class TritonPythonModel:\n    def execute(self, requests): ...\n")
    os.mkfifo(repository.folder / "m/labels.txt")
    assert repository.imported().unfit == ["m/labels.txt cannot be read: it is a FIFO, no file"]


def test_an_environment_elsewhere_is_named_as_it_is(repository: Repository) -> None:
    environment = 'parameters { key: "EXECUTION_ENV_PATH" value { string_value: "/no/such.tar.gz" } }'
    repository.add("m", f"{PYTHON} {environment}", "1/model.py")
    (repository.folder / "m/1/model.py").write_text("class TritonPythonModel:\n    def execute(self, requests): ...\n")
    assert repository.imported().unfit == ["/no/such.tar.gz is missing"]


def test_a_version_that_is_a_file_is_none(repository: Repository) -> None:
    repository.add("m", PYTHON, "1")
    assert repository.imported().unfit == ["m holds no version"]


def test_a_name_that_is_no_text_is_not_carried_and_shown(
    repository: Repository, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    repository.add("m", PYTHON, "1/model.py")
    (repository.folder / "m/1" / os.fsdecode(b"\xff.py")).write_text("(")
    repository.add(os.fsdecode(b"\xff"), PYTHON, "1/model.py")
    whole = repository.folder.rename(tmp_path / os.fsdecode(b"models\xff"))
    result = tandem(whole)
    assert result.exit_code == 1
    assert r"\udcff: the folder's name is not UTF-8 text, which a spec is" in result.stderr
    assert r"m: m/1/\udcff.py is no Python that can be read" in result.stderr
    assert r"models\udcff" in Path("cluster/spec.yaml").read_text(encoding="utf-8")


def test_something_else_than_a_repository(tmp_path: Path) -> None:
    path = tmp_path / "models"
    os.mkfifo(path)
    result = tandem(path, "--output", "-")
    assert (result.exit_code, result.stderr) == (1, f"Error: {path} is a FIFO, where a folder belongs\n")


def test_a_models_folder_that_nobody_may_read_is_not_carried(unprivileged: Path) -> None:
    for name, mode in (("listed", 0o000), ("inside", 0o700)):
        (unprivileged / name / "1").mkdir(parents=True)
        (unprivileged / name / "config.pbtxt").write_text(PYTHON)
        (unprivileged / name / "1").chmod(0o000)
        (unprivileged / name).chmod(mode)
    _, losses = read_repository(unprivileged)
    for name in ("listed", "inside"):
        (unprivileged / name).chmod(0o700)
        (unprivileged / name / "1").chmod(0o700)
    assert [str(loss) for loss in losses] == [
        "inside: inside/1 cannot be read: Permission denied",
        "listed: listed cannot be read: Permission denied",
    ]
    with pytest.raises(RepositoryError, match="there is no model in"):
        read_repository(unprivileged / "inside/1")


# -- the spec that is written


def test_a_spec_that_cannot_be_written_leaves_the_one_that_is_there(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository.add("m", PYTHON, "1/model.py")
    path = tmp_path / "spec.yaml"
    path.write_text("mine")

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fdopen", full)
    result = tandem(repository.folder, "--output", path, "--force")
    assert (result.exit_code, result.stderr) == (1, f"Error: {path} cannot be written: No space left on device\n")
    assert path.read_text() == "mine"
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["my models.v2", "spec.yaml"]


def test_a_spec_that_is_a_link_is_written_where_it_leads(repository: Repository, tmp_path: Path) -> None:
    repository.add("m", PYTHON, "1/model.py")
    (tmp_path / "spec.yaml").symlink_to("real.yaml")
    assert tandem(repository.folder, "--output", tmp_path / "spec.yaml", "--force").exit_code == 0
    assert (tmp_path / "spec.yaml").is_symlink()
    assert "models:" in (tmp_path / "real.yaml").read_text()


@pytest.mark.parametrize("odd", ["a FIFO", "a socket"])
def test_a_spec_does_not_replace_what_is_no_file(repository: Repository, tmp_path: Path, odd: str) -> None:
    repository.add("m", PYTHON, "1/model.py")
    make, _ = ODD[odd]
    path = tmp_path / "spec.yaml"
    make(path)
    result = tandem(repository.folder, "--output", path, "--force")
    assert result.exit_code == 1
    assert f"{path} is no file, and stands where a generated one belongs" in result.stderr


def test_a_folder_of_the_spec_that_is_a_file_is_told(repository: Repository, tmp_path: Path) -> None:
    repository.add("m", PYTHON, "1/model.py")
    (tmp_path / "cluster").touch()
    result = tandem(repository.folder, "--output", tmp_path / "cluster/spec.yaml")
    assert result.exit_code == 1
    assert result.stderr.startswith(f"Error: {tmp_path / 'cluster/spec.yaml'} cannot be written: ")


def test_a_spec_that_is_larger_than_one_may_be_is_said_to_be(repository: Repository, tmp_path: Path) -> None:
    entries = "".join(f'parameters {{ key: "k{index}" value {{ string_value: "v" }} }} ' for index in range(25_000))
    repository.add("m", PYTHON + entries, "1/model.py")
    result = tandem(repository.folder, "--output", tmp_path / "spec.yaml")
    assert result.exit_code == 1
    assert "m: the spec cannot be read as it is" in result.stderr
    assert " bytes, more than 262144" in result.stderr
    assert [finding.code for finding in examine_file(tmp_path / "spec.yaml").findings] == ["Y007"]


def test_a_name_with_a_line_break_breaks_no_line(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    repository.add("a\nb's", PYTHON.replace("max_batch_size", 'name: "c\\nd" max_batch_size'), "1/labels.txt")
    repository.add("e\nf", "nonsense")
    result = tandem(repository.folder, "--output", tmp_path / "spec.yaml")
    lines = result.stderr.splitlines()
    assert result.exit_code == 1
    assert r"  a\u000ab's: a\u000ab's/config.pbtxt calls it 'c\nd'" in lines
    assert any(line.startswith(r"  e\u000af: e\u000af/config.pbtxt:1: ") for line in lines)
    assert r"  a\u000ab's/1/model.py is missing" in lines
    (copy,) = (line for line in lines if "cp -R" in line)
    subprocess.run(["bash", "-c", copy], check=True)
    assert (tmp_path / "project/model_repository/a\nb's/config.pbtxt").is_file()
