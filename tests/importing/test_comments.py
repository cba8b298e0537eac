from __future__ import annotations

import pytest

from serve_app.project import Project, write_files
from serve_app.spec import load_spec
from tests.importing.conftest import PYTHON, Repository, lost


def test_comments_come_along_above_the_models_entry(repository: Repository) -> None:
    repository.add(
        "m",
        f"# Owner: vision team\n\n#\tsince 2023\n{PYTHON}\nversion_policy {{ all {{}} }} # of no use\n",
        "1/model.py",
    )
    assert (
        """
models:
  # Owner: vision team
  #       since 2023
  # version_policy { all {} }  # of no use
  m:
"""
        in repository.imported().text
    )


@pytest.mark.parametrize("text", ['"#1"', "'#1'", '"\\"#1"', "'it\\'s #1'"])
def test_a_text_in_quotes_is_no_comment(text: str, repository: Repository) -> None:
    repository.add("m", f'{PYTHON}\nmetric_tags {{ key: "t" value: {text} }} # x')
    (line,) = (line for line in repository.imported().text.splitlines() if line.endswith("# x"))
    assert line == f'  # metric_tags {{ key: "t" value: {text} }}  # x'


def test_comments_of_what_is_not_carried_stay_with_it(repository: Repository) -> None:
    repository.add("good", PYTHON)
    repository.add("undone", '# Owner: language team\nbackend: "vllm"')
    assert "  # Owner: language team\n  # undone is not carried: " in repository.imported().text


def test_a_comment_with_anything_in_it_leaves_the_spec_readable(repository: Repository) -> None:
    repository.add("m", f"# bell \a, separator \u2028, ключ\r\n{PYTHON}")
    imported = repository.imported()
    assert lost(imported) == []
    assert "  # bell \\u0007, separator \\u2028, ключ\n" in imported.text


def test_what_tandem_wrote_itself_is_no_comment(repository: Repository) -> None:
    repository.add("m", PYTHON, "1/model.py")
    project = Project(repository.folder.parent / "project")
    project.spec_file.parent.mkdir(parents=True)
    project.spec_file.write_text(repository.imported().text, encoding="utf-8")
    write_files(project, load_spec(project.spec_file))
    again = Repository(project.repository).imported().text
    assert "\nmodels:\n  m:\n" in again
