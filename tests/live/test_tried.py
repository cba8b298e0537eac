"""What models are tried with, in one real Triton: warm-ups, each version, with and without optional inputs."""

from __future__ import annotations

import pytest

from serve_app.live.check import live_faults
from serve_app.project import write_files
from serve_app.spec import load_spec
from tests.live.conftest import ECHO, Checked, make_project, traces


def before_answer(*lines: str) -> str:
    """ECHO that does something first."""
    first = "".join(f"{line}\n        " for line in lines)
    return ECHO.replace("return [pb_utils", f"{first}return [pb_utils")


# Takes three sevens only, as a detector takes pictures of its own size only.
PARTICULAR = """
import triton_python_backend_utils as pb_utils
from serve_app.triton.backend.tensors import read, write

class TritonPythonModel:
    def execute(self, requests):
        for request in requests:
            if set(read(request, "x").reshape(-1)) != {7} or read(request, "x").shape[1:] != (3,):
                raise ValueError("three sevens are wanted")
        return [pb_utils.InferenceResponse([write("y", read(request, "x"))]) for request in requests]
"""
RAISES = before_answer("self.fail()") + "\n    def fail(self):\n        raise ValueError('no such thing')\n"
RAISES_LINE = RAISES.splitlines().index("        raise ValueError('no such thing')") + 1
NEEDS_Z = before_answer("[pb_utils.get_input_tensor_by_name(request, 'z').shape() for request in requests]")
REFUSES = "pb_utils.InferenceResponse(error=pb_utils.TritonError('{}', pb_utils.TritonError.INVALID_ARG))"
ASKS_FOR_Z = before_answer(
    "if any(pb_utils.get_input_tensor_by_name(request, 'z') is None for request in requests):",
    f"    return [{REFUSES.format('give z')} for _ in requests]",
)
DISLIKES_Z = before_answer(
    "if any(pb_utils.get_input_tensor_by_name(request, 'z') is not None for request in requests):",
    f"    return [{REFUSES.format('no z')} for _ in requests]",
)
FAILS_WITH_Z = before_answer(
    "if any(pb_utils.get_input_tensor_by_name(request, 'z') is not None for request in requests):",
    "    raise ValueError('no z')",
)
CODES = {
    "particular": PARTICULAR,
    "warned": RAISES,
    "raises": RAISES,
    "takes_both": ECHO,
    "needs_z": NEEDS_Z,
    "asks_for_z": ASKS_FOR_Z,
    "dislikes_z": DISLIKES_Z,
    "fails_with_z": FAILS_WITH_Z,
    "old_fails": RAISES,
    "both_served": ECHO,
    "kills": before_answer("import os, signal", "os.kill(os.getppid(), signal.SIGKILL)"),
    "old_not_served": RAISES,
}
WITH_Z = {"inputs": {"x": "float32[4]", "z": {"tensor": "float32[2]", "optional": True}}}
VARIES = {"inputs": {"x": "float32[-1]"}, "outputs": {"y": "float32[-1]"}}
STEP = {"model": "particular", "takes": {"x": "picture"}, "gives": {"y": "y"}}
PATCH = {
    "service": {"sla": "4s"},
    "profiles": {"embedded": {"triton": {"startup_timeout": "10s", "exit_timeout": "5s"}}},
    "models": {
        "particular": {
            **VARIES,
            "warmup": [{"name": "usual", "inputs": {"x": {"file": "sevens", "tensor": "float32[3]"}}}],
        },
        "warned": {"warmup": [{"name": "usual", "inputs": {"x": {"fill": "zeros"}}}]},
        "takes_both": WITH_Z,
        "needs_z": WITH_Z,
        "asks_for_z": WITH_Z,
        "dislikes_z": WITH_Z,
        "fails_with_z": WITH_Z,
        "old_fails": {"versions": {"all": True}},
        "both_served": {"versions": {"all": True}},
        "kills": {"versions": {"latest": 2}},
        "old_not_served": {"versions": {"only": [2]}},
    },
    "ensembles": {
        "around": {
            "inputs": {"picture": "float32[-1]"}, "outputs": {"y": "float32[-1]"}, "max_batch": 8, "steps": [STEP]
        },
    },
}  # fmt: skip
LATER = {"old_fails": ECHO, "both_served": ECHO, "kills": ECHO, "old_not_served": ECHO}


@pytest.fixture(scope="module")
def checked(tmp_path_factory: pytest.TempPathFactory) -> Checked:
    before = traces()
    project = make_project(tmp_path_factory.mktemp("tried") / "project", CODES, PATCH)
    for name, code in LATER.items():
        folder = project.repository / name / "2"
        folder.mkdir()
        (folder / "model.py").write_text(code)
    sevens = project.repository / "particular" / "warmup" / "sevens"
    sevens.parent.mkdir()
    sevens.write_bytes(b"\0\0\xe0\x40" * 3)
    spec = load_spec(project.spec_file)
    write_files(project, spec)
    faults = live_faults(project, spec, lambda text: None)
    assert traces() <= before
    return Checked(project, faults)


@pytest.mark.parametrize("name", ["particular", "around", "takes_both", "both_served", "old_not_served"])
def test_a_model_that_takes_what_its_spec_says_has_no_finding(checked: Checked, name: str) -> None:
    assert checked.of(name) == []


@pytest.mark.parametrize(
    ("name", "code", "place", "says"),
    [
        ("needs_z", "L018", "models.needs_z.inputs", "to a request without z with a batch of 1, it says: Attribute"),
        ("asks_for_z", "L019", "models.asks_for_z.inputs", "to a request without z with a batch of 1, it says: give z"),
        ("dislikes_z", "L007", "models.dislikes_z", "to a request with a batch of 1, it says: no z"),
        ("fails_with_z", "L006", "models.fails_with_z", "it says: ValueError: no z"),
        ("old_fails", "L006", "models.old_fails", "to a request to version 1 with a batch of 1, it says: ValueError"),
        ("kills", "L010", "models.kills", "at a request to version 1 with a batch of 1, Triton was killed by SIGKILL"),
        ("warned", "L017", "models.warned.warmup.0", "to the warm-up usual, it says: ValueError: no such thing"),
    ],
)
def test_what_it_does_not_take_is_told_with_what_it_was_tried_with(
    checked: Checked, name: str, code: str, place: str, says: str
) -> None:
    fault = checked.only(name)
    assert (fault.rule.code, ".".join(map(str, fault.place))) == (code, place), fault.what
    assert says in fault.what


@pytest.mark.parametrize("name", ["raises", "warned"])
def test_an_exception_is_told_with_its_line_in_the_models_code_and_no_stack(checked: Checked, name: str) -> None:
    what = checked.only(name).what
    assert what.endswith(
        f"it says: ValueError: no such thing (model_repository/{name}/1/model.py, line {RAISES_LINE})"
    ), what


def test_no_finding_shows_a_stack(checked: Checked) -> None:
    assert [text for text in checked.show() if "# 0x" in text or "At:" in text or "/tmp" in text] == []
