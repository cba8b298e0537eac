"""`tandem validate` and `tandem explain`: what is printed where, and the exit status."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from serve_app.cli import main
from tests.rules.case import patched

ROOT = Path(__file__).parents[1]


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, [*map(str, arguments)])


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    path = tmp_path / "spec.yaml"
    path.write_text(yaml.safe_dump(patched({"service": {"sla": 8}, "ray": {"port": 1}}), sort_keys=False))
    return path


def test_a_fine_spec_exits_with_0_and_says_so() -> None:
    result = run("validate", ROOT / "cluster" / "spec.yaml")
    assert (result.exit_code, result.stderr) == (0, "")
    assert "fine" in result.stdout


def test_a_fine_spec_that_is_no_projects_own_says_what_was_not_looked_at(tmp_path: Path) -> None:
    path = tmp_path / "other.yaml"
    path.write_text(yaml.safe_dump(patched({}), sort_keys=False))
    result = run("validate", path)
    assert (result.exit_code, result.stdout) == (0, f"{path}: fine; its models' files were not looked for\n")
    assert json.loads(run("validate", "--format", "json", path).stdout)["findings"] == []
    assert "not looked for" not in run("validate", ROOT / "cluster" / "spec.yaml").stdout


def test_a_broken_spec_exits_with_1_and_shows_all_on_standard_output(broken: Path) -> None:
    result = run("validate", broken)
    assert (result.exit_code, result.stderr) == (1, "")
    assert "Y020" in result.stdout
    assert "Y013" in result.stdout
    assert result.stdout.endswith("2 errors\n")


@pytest.mark.parametrize("form", ["json", "sarif"])
def test_nothing_but_the_form_that_a_machine_asked_for_is_printed(broken: Path, form: str) -> None:
    result = run("validate", "--format", form, broken)
    assert (result.exit_code, result.stderr) == (1, "")
    assert json.loads(result.stdout)


def test_annotations_are_printed_for_github(broken: Path) -> None:
    result = run("validate", "--format", "github", broken)
    assert result.exit_code == 1
    assert [line.partition(" ")[0] for line in result.stdout.splitlines()] == ["::error", "::error"]


def test_warnings_fail_the_check_only_where_it_is_strict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "spec.yaml"
    path.write_text(yaml.safe_dump(patched(_warned()), sort_keys=False))
    relaxed, strict = run("validate", path), run("validate", "--strict", path)
    assert (relaxed.exit_code, strict.exit_code) == (0, 1)
    assert relaxed.stdout == strict.stdout
    assert relaxed.stdout.endswith("1 warning\n")


def _warned() -> dict[str, Any]:
    return {"models": {"m": {"batching": {"preferred_sizes": [8, 8]}}}}


def test_a_spec_below_the_current_folder_is_named_from_there(broken: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(broken.parent)
    (broken.parent / "cluster").mkdir()
    broken.rename(broken.parent / "cluster" / "spec.yaml")
    findings = json.loads(run("validate", "--format", "json").stdout)["findings"]
    assert {finding["file"] for finding in findings} == {"cluster/spec.yaml"}


@pytest.mark.parametrize(
    "arguments", [["nowhere.yaml"], ["/"], ["--format", "xml"]], ids=["missing", "folder", "format"]
)
def test_wrong_usage_exits_with_2_and_leaves_standard_output_empty(arguments: list[str]) -> None:
    result = run("validate", *arguments)
    assert (result.exit_code, result.stdout) == (2, "")


def test_a_code_is_explained_in_either_case() -> None:
    assert run("explain", "y020").stdout == run("explain", "Y020").stdout
    assert run("explain", "Y020").stdout.startswith("Y020 (error)")


def test_an_unknown_code_is_wrong_usage() -> None:
    result = run("explain", "Z999")
    assert result.exit_code == 2
    assert "no finding has the code Z999" in result.stderr


def test_without_a_code_the_whole_page_is_printed() -> None:
    assert run("explain").stdout == (ROOT / "docs" / "findings.md").read_text(encoding="utf-8")


def test_every_key_of_the_spec_is_printed_on_demand() -> None:
    assert run("explain", "--spec").stdout == (ROOT / "docs" / "spec.md").read_text(encoding="utf-8")
    assert run("explain", "--spec", "Y020").exit_code == 2
