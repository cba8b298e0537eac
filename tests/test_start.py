"""What the commands load before they do anything: what most of their time goes into."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from serve_app.triton.launch import free_port
from tests.rules.case import patched

CHECKOUT = Path(__file__).parents[1]
# Each takes longer to load than a command that does without it takes to end.
OF_THE_SERVICE = {"ray", "fastapi", "starlette", "uvicorn", "onnxruntime", "hypothesis"}
OF_THE_STAGES = {"cv2"}
# Runs the command, and says at the end of standard error what it has loaded.
RUN = """
import atexit, sys
from serve_app.cli import main
atexit.register(lambda: print("LOADED", *sys.modules, file=sys.stderr))
main(sys.argv[1:])
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project whose spec names no code, on a port where no service of anybody's answers."""
    (tmp_path / "cluster").mkdir()
    spec = patched({"service": {"port": free_port()}})
    (tmp_path / "cluster" / "spec.yaml").write_text(yaml.safe_dump(spec, sort_keys=False))
    return tmp_path


def run(project: Path, *arguments: str) -> tuple[str, set[str]]:
    """What a command says, and which modules it has loaded."""
    command = [sys.executable, "-c", RUN, "--project", str(project), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, cwd=CHECKOUT)
    *said, loaded = done.stderr.splitlines()
    assert loaded.startswith("LOADED "), done.stderr
    return done.stdout + "\n".join(said), set(loaded.split())


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--help"], "Usage:"),
        (["explain", "T101"], "T101 (error)"),
        (["explain", "--spec"], "# The spec"),
        (["validate"], "cluster/spec.yaml"),
        (["validate", "--format", "json"], '"findings"'),
        (["render"], "wrote serve_config.yaml"),
        (["render", "--check"], "run `tandem render`"),
    ],
    ids=" ".join,
)
def test_a_command_that_needs_no_service_does_not_wait_for_ray_to_load(
    project: Path, arguments: list[str], says: str
) -> None:
    said, loaded = run(project, *arguments)
    assert says in said
    assert loaded & (OF_THE_SERVICE | OF_THE_STAGES) == set()


def test_the_status_is_shown_without_ray(project: Path) -> None:
    said, loaded = run(project, "status")
    assert "down" in said
    assert loaded & OF_THE_SERVICE == set()


def test_the_stages_that_come_with_tandem_are_checked_without_ray() -> None:
    said, loaded = run(CHECKOUT, "validate")
    assert "cluster/spec.yaml" in said
    assert "serve_app.kyc.face_stage" in loaded
    assert loaded & OF_THE_SERVICE == set()


def interrupted(folder: Path, *, ignored: bool = False) -> subprocess.CompletedProcess[str]:
    """The command, interrupted while it loads click."""
    (folder / "click.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGINT)\nprint('goes on')\n")
    ignore = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN); " if ignored else ""
    code = f"import sys; sys.path.insert(0, {str(folder)!r}); {ignore}from serve_app.command import main; main()"
    command = [sys.executable, "-c", code]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, cwd=CHECKOUT)


def test_an_interrupt_while_the_command_is_loaded_ends_it_as_later_ones_do(tmp_path: Path) -> None:
    done = interrupted(tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "\nAborted!\n")


def test_an_interrupt_that_the_shell_wants_ignored_is_ignored(tmp_path: Path) -> None:
    assert interrupted(tmp_path, ignored=True).stdout == "goes on\n"


def test_the_installed_command_starts_there() -> None:
    assert '\ntandem = "serve_app.command:main"\n' in (CHECKOUT / "pyproject.toml").read_text()
    code = "from serve_app.command import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, "--help"], capture_output=True, text=True, timeout=60, check=True, cwd=CHECKOUT
    )
    assert "Usage:" in done.stdout


def test_an_interrupt_after_that_is_clicks() -> None:
    code = (
        "import os, signal, serve_app.cli as cli\n"
        "cli.find_project = lambda given: os.kill(os.getpid(), signal.SIGINT)\n"
        "from serve_app.command import main\nmain()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "render"], capture_output=True, text=True, timeout=60, check=False, cwd=CHECKOUT
    )
    assert (done.returncode, done.stderr) == (1, "\nAborted!\n")
