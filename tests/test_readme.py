"""The README keeps up with the code: its commands, routes, codes and tables are the real ones."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from serve_app.cli import main
from serve_app.kyc import antifraud
from serve_app.kyc.decision import Reason
from serve_app.spec.document import read_document
from serve_app.spec.load import examine
from serve_app.spec.schema import Spec

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
FENCES = re.findall(r"^```(\w+)\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)
INLINE = re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```$", "", README, flags=re.DOTALL | re.MULTILINE))
SPEC = yaml.safe_load((ROOT / "cluster" / "spec.yaml").read_text(encoding="utf-8"))
NOT_A_CODE = "problem.py"  # where the class itself copies and rebuilds problems, whatever their code


def problem_codes(tree: ast.Module) -> Iterator[tuple[int, set[str]]]:
    """The line of each call of Problem, and the codes that it can be given."""
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    for function in functions:
        assigned = {
            target.id: node.value
            for node in ast.walk(function)
            if isinstance(node, ast.Assign)
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        for call in ast.walk(function):
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "Problem":
                code = call.args[1]
                yield call.lineno, strings(assigned.get(code.id, code) if isinstance(code, ast.Name) else code)


def strings(expression: ast.expr) -> set[str]:
    return {
        node.value for node in ast.walk(expression) if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }


def sources() -> list[Path]:
    return [path for path in sorted((ROOT / "serve_app").rglob("*.py")) if path.name != NOT_A_CODE]


def codes() -> set[str]:
    found = [codes for path in sources() for _, codes in problem_codes(ast.parse(path.read_text(encoding="utf-8")))]
    return set().union(*found)


def documented() -> set[str]:
    """The codes in the README's table of errors."""
    section = README.partition("\n### Errors\n")[2].partition("\n### ")[0]
    rows = [line for line in section.splitlines() if re.match(r"\| \d{3}", line)]
    return {code for row in rows for code in re.findall(r"`([a-z]+(?:_[a-z]+)+)`", row)}


def test_the_two_commands_are_the_ones_that_ci_runs() -> None:
    shell = [text.strip() for language, text in FENCES if language == "sh"]
    first, second = shell[0], shell[1]
    assert first == "python3 -m venv .venv && .venv/bin/pip install -c constraints.txt -e . && .venv/bin/tandem up"
    assert second == ".venv/bin/pip install -c constraints.txt -e '.[dev]' && .venv/bin/pytest"
    ci = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    for command in (first, *second.split(" && ")):
        assert command in ci


VOCABULARY = README.partition("\n## What Triton can schedule\n")[2].partition("\n## ")[0]
YAML = [text for language, text in FENCES if language == "yaml" and "…" not in text and text not in VOCABULARY]


def merged(base: Any, more: Any) -> Any:
    if isinstance(base, list) and isinstance(more, list):
        return [*base, *(item for item in more if item not in base)]
    if not (isinstance(base, dict) and isinstance(more, dict)):
        return more
    return {**base, **{key: merged(base.get(key), value) for key, value in more.items()}}


def test_every_piece_of_a_spec_fits_the_projects_own() -> None:
    together = SPEC
    for text in YAML:
        together = merged(together, yaml.safe_load(text))
    spec = Spec.model_validate(together)
    assert {"spectacles", "exposure"} <= set(spec.models)
    assert "quality" in spec.pipelines
    # Their code is the reader's to write.
    report = examine(yaml.safe_dump(together, sort_keys=False))
    assert [each for each in report.findings if not each.code.startswith("C")] == []


def test_the_vocabulary_shown_is_the_specs() -> None:
    """Only its words: the models that it names have no files, and some need another server."""
    (block,) = re.findall(r"^```yaml\n(.*?)^```$", VOCABULARY, re.DOTALL | re.MULTILINE)
    spec = Spec.model_validate(merged(SPEC, read_document(block).data))
    assert {"own_priorities", "running_sum"} <= set(spec.models)
    assert list(spec.ensembles) == ["both"]


@pytest.mark.parametrize("route", sorted(entry["route"] for entry in SPEC["pipelines"].values()))
def test_every_route_is_described(route: str) -> None:
    assert f"| `POST {route}` |" in README


@pytest.mark.parametrize("reason", Reason, ids=lambda reason: reason.name)
def test_every_reason_of_a_decision_is_described(reason: Reason) -> None:
    assert f"| `{reason.name}` | {reason.severity} | {reason.meaning} |" in README


def test_every_problem_names_a_code_that_can_be_found() -> None:
    for path in sources():
        for line, found in problem_codes(ast.parse(path.read_text(encoding="utf-8"))):
            assert found, f"{path}:{line}: no code can be read off this call"


@pytest.mark.parametrize("code", sorted(codes()))
def test_every_code_of_an_error_is_described(code: str) -> None:
    assert code in documented()


def test_no_error_is_described_that_the_service_cannot_answer() -> None:
    assert documented() <= codes()


def test_the_scorecard_is_the_real_one() -> None:
    assert antifraud.markdown() in README


def named_commands() -> list[str]:
    texts = [text for _, text in FENCES] + INLINE
    return sorted(
        {
            found
            for text in texts
            for found in re.findall(r"\btandem ([a-z]+(?: (?:pull|target|overload|chaos)\b)?)", text)
        }
    )


@pytest.mark.parametrize("named", named_commands())
def test_every_command_that_is_named_exists(named: str) -> None:
    command: click.Command = main
    for word in named.split():
        assert isinstance(command, click.Group)
        assert word in command.commands
        command = command.commands[word]
    assert command is main.commands["bench"] or not isinstance(command, click.Group)  # which measures by itself


def test_commands_are_named_at_all() -> None:
    assert {"up", "down", "status", "validate", "render", "models pull", "verify"} <= set(named_commands())


@pytest.mark.parametrize("link", sorted(set(re.findall(r"\]\(([^)#:]+)\)", README))))
def test_every_file_that_is_linked_exists(link: str) -> None:
    assert (ROOT / link).is_file()


def test_every_yaml_example_of_the_shipped_spec_is_still_in_it() -> None:
    """The blocks under "The spec by example"; their comments and omissions aside."""
    section = README.partition("\n## The spec by example\n")[2].partition("\n## ")[0]
    blocks = re.findall(r"^```yaml\n(.*?)^```$", section, re.DOTALL | re.MULTILINE)
    assert len(blocks) == 4
    for block in blocks:
        assert differences(yaml.safe_load(block), SPEC, "") == []


def differences(shown: object, real: object, place: str) -> list[str]:
    if isinstance(shown, dict) and isinstance(real, dict):
        return [
            problem
            for key, value in shown.items()
            for problem in (differences(value, real[key], f"{place}.{key}") if key in real else [f"{place}.{key}"])
        ]
    return [] if shown == real else [place]
