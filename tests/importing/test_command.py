from __future__ import annotations

import json
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from serve_app.cli import main
from serve_app.project import Project, write_files
from serve_app.spec import load_spec
from tests.importing.conftest import PYTHON, Repository

OWN = Path(__file__).parents[2] / "model_repository"


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


def test_only_a_projects_own_spec_names_the_schema_which_rendering_puts_beside_it(
    repository: Repository, project: Project
) -> None:
    repository.add("m", PYTHON, "1/model.py")
    assert not tandem(repository.folder, "--output", "-").stdout.startswith("# yaml-language-server")
    tandem(repository.folder, "--output", "other.yaml")
    assert not Path("other.yaml").read_text().startswith("# yaml-language-server")
    tandem(repository.folder)
    first = project.spec_file.read_text().splitlines()[0]
    assert first == "# yaml-language-server: $schema=spec.schema.json"
    assert CliRunner().invoke(main, ["render"]).exit_code == 0
    assert (project.spec_file.parent / first.partition("=")[2]).is_file()


def test_what_is_next_works_whatever_the_project_is_called_and_wherever_it_is(
    repository: Repository, project: Project, tmp_path: Path
) -> None:
    repository.add("m", PYTHON, "1/model.py")
    (repository.folder / "m/1/model.py").write_text("class TritonPythonModel:\n    def execute(self, requests): ...\n")
    (tmp_path / "it's mine").mkdir()
    result = CliRunner().invoke(main, ["--project", "../it's mine", "import", f"../{repository.folder.name}"])
    copy, validate, render = (line.partition("   #")[0].strip() for line in result.stderr.splitlines()[-3:])
    subprocess.run(["sh", "-ec", copy], check=True, cwd="/")
    assert (tmp_path / "it's mine/model_repository/m/1/model.py").is_file()
    for line in (validate, render):
        program, *arguments = shlex.split(line)
        assert program == "tandem"
        assert CliRunner().invoke(main, arguments).exit_code == 0


def test_what_is_next_for_a_spec_elsewhere_is_to_check_that(repository: Repository, project: Project) -> None:
    repository.add("m", PYTHON, "1/model.py")
    shown = tandem(repository.folder, "--output", "new/my spec.yaml").stderr
    assert shown.splitlines()[-1] == "  tandem validate 'new/my spec.yaml'"


def test_the_project_is_the_one_that_other_commands_take(
    repository: Repository, project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TANDEM_PROJECT", str(tmp_path / "named"))
    repository.add("m", PYTHON, "1/model.py")
    shown = tandem(repository.folder).stderr
    assert (tmp_path / "named/cluster/spec.yaml").is_file()
    assert shown.splitlines()[-2] == "  tandem validate"


def test_models_are_counted_with_those_that_are_renamed_or_carried_in_part(
    repository: Repository, project: Project
) -> None:
    repository.add("folder", f'name: "original" {PYTHON}', "1/model.py")
    repository.add("varied", PYTHON, "1/model.py", "configs/large.pbtxt")
    repository.add("bad", "nonsense")
    lines = tandem(repository.folder).stderr.splitlines()
    assert lines[:3] == [
        "cluster/spec.yaml: 2 of 3 models, 1 renamed, 1 in part",
        "the folder's name is the model's:",
        "  folder: folder/config.pbtxt calls it 'original'",
    ]


def test_a_name_alone_is_no_loss(repository: Repository, project: Project) -> None:
    repository.add("folder", f'name: "original" {PYTHON}', "1/model.py")
    assert tandem(repository.folder).exit_code == 0


def test_findings_look_as_those_of_the_check(repository: Repository, project: Project) -> None:
    repository.add("m", f"{PYTHON} dynamic_batching {{ preferred_batch_size: [16] }}", "1/model.py")
    result = tandem(repository.folder)
    assert result.exit_code == 1
    checked = CliRunner().invoke(main, ["validate", "cluster/spec.yaml"]).stdout
    shown = checked.partition("\n\n")[0]
    assert "cluster/spec.yaml:" in shown
    assert shown in result.stderr
    assert CliRunner().invoke(main, ["render"]).stderr == checked


def test_findings_in_a_spec_that_is_printed_are_placed_in_standard_output(
    repository: Repository, project: Project
) -> None:
    repository.add("m", f"{PYTHON} dynamic_batching {{ preferred_batch_size: [16] }}", "1/model.py")
    result = tandem(repository.folder, "--output", "-")
    (finding,) = (line for line in result.stderr.splitlines() if " error " in line)
    file, line, _ = finding.split(":", 2)
    assert file == "<stdout>"
    assert "preferred_sizes: [16]" in result.stdout.splitlines()[int(line) - 1]


def test_files_that_go_wrong_have_another_heading_than_those_that_are_missing(
    repository: Repository, project: Project
) -> None:
    for name in ("lacking", "misread"):
        repository.add(name, PYTHON, "1/nothing")
    code = "class TritonPythonModel:\n    def execute(self, requests): requests[0].as_numpy()\n"
    (repository.folder / "misread/1/model.py").write_text(code)
    lines = tandem(repository.folder).stderr.splitlines()
    missing = lines.index(f"files in {repository.folder} that are missing or unfit:")
    assert lines[missing + 1] == "  lacking/1/model.py is missing"
    assert lines[missing + 2] == f"files in {repository.folder} with which the models load, and then go wrong:"
    assert lines[missing + 3].startswith("  misread/1/model.py calls as_numpy() in line 2: ")


def test_every_port_is_written(repository: Repository, project: Project) -> None:
    repository.add("m", PYTHON, "1/model.py")
    tandem(repository.folder)
    written = yaml.safe_load(project.spec_file.read_text())
    assert written["service"]["grpc"] == {"port": project.spec().service.grpc.port}


def test_tandems_own_repository_renders_and_validates_but_for_what_is_not_carried(project: Project) -> None:
    """Its ONNX models have become python models, whose code Tandem rendered and would not write back."""
    shutil.copytree(OWN, project.repository, ignore=shutil.ignore_patterns("*.onnx*", "labels.txt", "__pycache__"))
    for code in project.repository.glob("*/1/model.py"):
        (code.parent / "model.onnx").touch()
    (project.repository / "paddleocr_rec/labels.txt").write_text("a\n")
    shown = tandem("model_repository").stderr
    code = {path: path.read_text() for path in project.repository.glob("*/1/model.py")}
    variants = sorted(path.relative_to(project.root) for path in project.repository.glob("*/configs/*.pbtxt"))
    rendered = CliRunner().invoke(main, ["render"])
    left = [line for line in rendered.stdout.splitlines() if line.startswith("left over")]
    assert left == [f"left over: {path}: the spec asks for it no more; remove it" for path in variants]
    for path in variants:
        assert f"  {path.parts[1]}: configs/{path.name}: a variant of the configuration" in shown
        path.unlink()
    assert CliRunner().invoke(main, ["render", "--check"]).exit_code == 0
    assert {path: path.read_text() for path in code} == code
    validated = CliRunner().invoke(main, ["validate", "--format", "json"])
    assert validated.exit_code == 0
    accepted = {each.code for each in load_spec(OWN.parent / "cluster/spec.yaml").accept}
    assert {each["code"] for each in json.loads(validated.stdout)["findings"]} <= accepted


def test_what_the_code_may_call_is_the_users_to_say(repository: Repository, project: Project) -> None:
    repository.add("m", PYTHON, "1/model.py")
    (repository.folder / "m/1/model.py").write_text("pb_utils.InferenceRequest(model_name=name)\n")
    assert (
        "yours to say, under `calls` of the model:\n"
        "  m: m/1/model.py:1 calls a model whose name is known only when it runs (name)\n"
    ) in tandem(repository.folder).stderr


def test_models_that_were_copied_already_are_not_copied_again(repository: Repository, project: Project) -> None:
    for name in ("old", "changed", "new"):
        repository.add(name, PYTHON, "1/model.py")
    for name in ("old", "changed"):
        shutil.copytree(repository.folder / name, project.repository / name)
    (project.repository / "old/config.pbtxt").write_text("rendered anew")
    (repository.folder / "changed/1/model.py").write_text("more")
    (copy,) = (line for line in tandem(repository.folder).stderr.splitlines() if "cp -R" in line)
    assert [Path(word).name for word in shlex.split(copy)[6:-1]] == ["changed", "new"]


def test_models_that_are_in_place_are_not_copied(repository: Repository, project: Project) -> None:
    repository.add("m", PYTHON, "1/model.py")
    shutil.copytree(repository.folder, project.repository)
    assert "cp -R" not in tandem("model_repository").stderr


def test_a_folder_that_is_no_repository_is_said_to_be_none(project: Project) -> None:
    result = tandem(project.root)
    assert result.exit_code == 1
    assert "there is no model in" in result.stderr
