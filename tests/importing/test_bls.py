"""The calls of other models that a model's code makes become the spec's `calls`."""

from __future__ import annotations

import pytest

from tests.importing.conftest import PYTHON, Repository

CODE = """
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        wanted = ["y"]
        return [{call}]
"""


def add(repository: Repository, call: str) -> None:
    """A model `m` whose code, if it ran, would end this process, and a model `double`."""
    repository.add("double", PYTHON, "1/model.py")
    repository.add("m", PYTHON, "1/model.py")
    (repository.folder / "m/1/model.py").write_text(f"raise SystemExit\n{CODE.format(call=call)}", encoding="utf-8")


@pytest.mark.parametrize(
    "call",
    [
        'pb_utils.InferenceRequest(model_name="double", requested_output_names=wanted, inputs=[])',
        'pb_utils.InferenceRequest("id", 0, [], wanted, "double").exec()',
        "asyncio.gather(*(pb_utils.InferenceRequest(model_name='double') for _ in range(2)))",
    ],
)
def test_a_model_that_is_named_in_the_code_is_called(call: str, repository: Repository) -> None:
    add(repository, call)
    assert repository.spec().models["m"].calls == ["double"]
    assert repository.imported().unclear == []


def test_a_request_is_known_by_another_name_and_in_another_file(repository: Repository) -> None:
    add(repository, "None")
    path = repository.folder / "m/1/parts/calls.py"
    path.parent.mkdir()
    path.write_text("from triton_python_backend_utils import InferenceRequest as Ask\nAsk(model_name='double')\n")
    assert repository.spec().models["m"].calls == ["double"]


def test_the_rules_of_calls_apply(repository: Repository) -> None:
    add(repository, 'pb_utils.InferenceRequest(model_name="m")')
    assert [finding.code for finding in repository.imported().report.errors] == ["T331"]


@pytest.mark.parametrize(
    ("call", "says"),
    [
        ("pb_utils.InferenceRequest(model_name=self.target)", "known only when it runs (self.target)"),
        ('pb_utils.InferenceRequest(model_name=f"{self.size}_double")', "known only when it runs (f"),
        ("pb_utils.InferenceRequest(**self.request)", "known only when it runs"),
        ("pb_utils.InferenceRequest(*self.request)", "known only when it runs"),
        (f"pb_utils.InferenceRequest(model_name={'size+' * 900}size)", "known only when it runs (…)"),
        ("pb_utils.InferenceRequest(model_name='treble')", "calls 'treble', and the repository has no such model"),
    ],
)
def test_what_the_code_does_not_say_is_left_to_the_user(call: str, says: str, repository: Repository) -> None:
    add(repository, call)
    imported = repository.imported()
    (line,) = imported.unclear
    assert line.startswith("m: m/1/model.py:8 calls ")
    assert says in line
    assert "  # Yours, under `calls`: m/1/model.py:8 calls " in imported.text
    assert repository.spec().models["m"].calls == []


@pytest.mark.parametrize("content", [b"print 'old'\n", b"x = 1\0", b"x = '\xff'\n"])
def test_code_that_is_no_python_of_today_is_listed(content: bytes, repository: Repository) -> None:
    add(repository, "None")
    (repository.folder / "m/1/old.py").write_bytes(content)
    (line,) = repository.imported().unclear
    assert line.startswith("m: m/1/old.py ")
    assert line.endswith("which models does it call?")


@pytest.mark.parametrize("code", [f"x = {'1+' * 100000}1\n", f"x = {'-' * 200000}1\n"], ids=["a long sum", "signs"])
def test_code_that_is_nested_too_deeply_is_listed(code: str, repository: Repository) -> None:
    add(repository, "None")
    (repository.folder / "m/1/model.py").write_text(code)
    assert repository.imported().unclear == [
        "m: m/1/model.py cannot be read (it is nested too deeply): which models does it call?"
    ]
