"""A check ends, and leaves nothing of itself, whatever the models do and whenever it is interrupted."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from tests.live.conftest import ECHO, Checked, make_project, traces
from tests.live.test_tried import before_answer

Check = Callable[..., Checked]
SHORT = {
    "service": {"sla": "4s"},
    "profiles": {"embedded": {"triton": {"startup_timeout": "5s", "exit_timeout": "5s"}}},
}
WAITS = "import pathlib, time; pathlib.Path({here!r}).touch(); time.sleep(600)"
# A child of its own session that writes its process id, and then without end.
LEAVES_A_WRITER = """
    def initialize(self, args):
        import os, pathlib, subprocess, sys
        code = "import os; open({here!r}, 'w').write(str(os.getpid()))\\nwhile True: os.write(1, b'still here' * 100)"
        subprocess.Popen([sys.executable, "-c", code], start_new_session=True)
        while not pathlib.Path({here!r}).exists() or not pathlib.Path({here!r}).read_text():
            pass
"""


def hangs_in(method: str, here: Path) -> str:
    """A model that waits for ever in a method, after it has made the file `here`."""
    if method == "execute":
        return before_answer(WAITS.format(here=str(here)))
    arguments = "self, args" if method == "initialize" else "self"
    return f"{ECHO}\n    def {method}({arguments}):\n        {WAITS.format(here=str(here))}\n"


def left_by(owner: int) -> list[str]:
    """What there is of the servers that a process has started."""
    found = [name for name in traces() if f"-{owner}-" in name]
    for process in psutil.process_iter(["cmdline"]):
        command = " ".join(process.info["cmdline"] or [])
        if "tandem-triton-" in command and f"-{owner}-" in command:
            found.append(command)
    return found


@contextmanager
def validating(root: Path) -> Iterator[subprocess.Popen[str]]:
    command = [str(Path(sys.executable).parent / "tandem"), "--project", str(root), "validate", "--live"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as validate:
        yield validate


@pytest.mark.parametrize(
    ("method", "number"),
    [
        ("initialize", signal.SIGTERM),
        ("execute", signal.SIGINT),
        ("execute", signal.SIGTERM),
        ("finalize", signal.SIGINT),
    ],
    ids=lambda value: value if isinstance(value, str) else value.name,
)
def test_an_interrupted_check_leaves_nothing_whatever_the_model_does(
    tmp_path: Path, method: str, number: signal.Signals
) -> None:
    here = tmp_path / "here"
    project = make_project(tmp_path / "project", {"m": hangs_in(method, here)}, {})
    folders = set(Path("/tmp").glob("python_env_*"))
    with validating(project.root) as validate:
        while not here.exists():
            assert validate.poll() is None
            time.sleep(0.05)
        assert left_by(validate.pid)
        validate.send_signal(number)
        validate.communicate(timeout=30)
    assert validate.returncode not in (0, None)
    assert left_by(validate.pid) == []
    assert set(Path("/tmp").glob("python_env_*")) <= folders


def test_two_checks_at_the_same_time_end_both_and_leave_nothing(tmp_path: Path) -> None:
    folders = set(Path("/tmp").glob("python_env_*"))
    codes = {"m": ECHO, "endless": hangs_in("execute", tmp_path / "here")}
    projects = [make_project(tmp_path / name, codes, SHORT) for name in ("first", "second")]
    with validating(projects[0].root) as first, validating(projects[1].root) as second:
        shown = [each.communicate(timeout=100)[0] for each in (first, second)]
    for each, text in zip((first, second), shown, strict=True):
        assert each.returncode == 1, text
        assert "L008" in text
        assert "models.m:" not in text
        assert left_by(each.pid) == []
    assert set(Path("/tmp").glob("python_env_*")) <= folders


def test_a_model_that_writes_without_end_is_one_that_does_not_answer(check: Check) -> None:
    checked = check({"m": before_answer("while True: print('x' * 200)"), "last": ECHO}, SHORT)
    assert checked.codes("m") == ["L008"]
    assert checked.of("last") == []


def test_a_child_of_a_model_ends_with_the_check_though_it_writes_without_end(check: Check, tmp_path: Path) -> None:
    here = tmp_path / "child"
    checked = check({"m": ECHO + LEAVES_A_WRITER.format(here=str(here))})
    assert checked.faults == []
    assert not psutil.pid_exists(int(here.read_text()))
