"""The live check around the models: the server, the weights, the configuration that Triton reports, and its end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from serve_app.cli import main
from serve_app.live import check as live
from serve_app.live.check import live_faults
from serve_app.project import write_files
from serve_app.spec import load_spec
from tests.live.conftest import ECHO, MODEL, Checked, make_project, traces
from tests.rules.case import GONE

Check = Callable[..., Checked]
ENDLESS_FINALIZE = (
    ECHO
    + """
    def finalize(self):
        import time
        time.sleep(600)
"""
)
HANGS = (
    ECHO
    + """
    def initialize(self, args):
        import time
        time.sleep(600)
"""
)


def test_every_field_that_triton_reports_otherwise_is_a_finding(check: Check, monkeypatch: pytest.MonkeyPatch) -> None:
    real = live.model_config

    def other(*arguments: object) -> object:
        config = real(*arguments)
        config.dynamic_batching.max_queue_delay_microseconds = 7
        config.input[0].dims[0] = 5
        return config

    monkeypatch.setattr(live, "model_config", other)
    checked = check({"m": ECHO})
    assert [(fault.rule.code, fault.place, fault.what) for fault in checked.faults] == [
        ("L005", ("models", "m", "inputs"), "input[0].dims was to be [5], and Triton reports [4]"),
        (
            "L005",
            ("models", "m", "batching"),
            "dynamic_batching.max_queue_delay_microseconds was to be 7, and Triton reports 1000",
        ),
    ]


def test_a_model_that_does_not_unload_is_named_and_the_others_are_not(check: Check) -> None:
    short = {"profiles": {"embedded": {"triton": {"exit_timeout": "5s"}}}}
    checked = check({"m": ECHO, "endless": ENDLESS_FINALIZE, "last": ECHO}, short)
    assert checked.show() == [
        "L012 models.endless: it was not unloaded within 5s: Triton is killed at each redeploy, with the requests in "
        "work; see what the model does when it is finalized, or lengthen exit_timeout"
    ]


def test_a_model_that_takes_triton_down_when_it_is_unloaded_is_named(check: Check) -> None:
    kills = ENDLESS_FINALIZE.replace("import time", "import os").replace("time.sleep(600)", "os.kill(os.getppid(), 9)")
    checked = check({"m": ECHO, "kills": kills})
    assert checked.codes("m") == []
    assert checked.only("kills").rule.code == "L010"
    assert "while it was unloaded, Triton was killed by SIGKILL" in checked.only("kills").what


def test_each_step_that_takes_time_is_said(tmp_path: Path) -> None:
    project = make_project(tmp_path / "project", {"m": ECHO}, {})
    spec = load_spec(project.spec_file)
    write_files(project, spec)
    said: list[str] = []
    assert live_faults(project, spec, said.append) == []
    assert said[0] == "giving the configuration to Ray Serve's own schema"
    assert said[-3:] == ["loading and running m", "unloading m", "ending Triton"]


def test_a_server_that_cannot_be_had_is_one_finding(check: Check, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", os.defpath)
    checked = check({"m": ECHO}, {"profiles": {"embedded": {"triton": {"requirement": GONE, "sha256": GONE}}}})
    assert [fault.rule.code for fault in checked.faults] == ["L002"]
    assert "no tritonserver" in checked.faults[0].what


def test_a_server_older_than_the_profile_asks_for_is_a_finding(check: Check) -> None:
    checked = check({"m": ECHO}, {"profiles": {"embedded": {"triton": {"version": "2.99.0"}}}})
    assert [fault.rule.code for fault in checked.faults] == ["L002"]
    assert "is Triton 2.51.0, and the spec's profile needs 2.99.0 or newer" in checked.faults[0].what


def test_weights_that_cannot_be_prepared_are_named_and_the_other_models_checked(check: Check) -> None:
    weights = {"file": "absent.onnx", "sha256": "0" * 64}
    lacking = {**MODEL, "backend": "onnx", "weights": weights}
    refused = ECHO.replace("TritonPythonModel", "Another")
    checked = check({"m": ECHO, "unfit": refused}, {"models": {"lacking": lacking}})
    assert checked.only("lacking").rule.code == "L001"
    assert "absent.onnx" in checked.only("lacking").what
    assert checked.of("m") == []
    assert checked.codes("unfit") == ["L003"]


def test_of_a_spec_without_a_profile_for_this_machine_ray_alone_is_asked(tmp_path: Path) -> None:
    project = make_project(tmp_path / "project", {"m": ECHO}, {})
    spec = load_spec(project.spec_file)
    other_ray = spec.profiles["embedded"].model_copy(update={"ray_version": "2.59.0"})
    said: list[str] = []
    faults = live_faults(project, spec.model_copy(update={"profiles": {"gpu": other_ray}}), said.append)
    assert [(fault.rule.code, fault.place) for fault in faults] == [
        ("L013", ("profiles", "gpu", "ray_version")),
        ("L011", ("profiles",)),
    ]
    assert "no model was tried" in faults[1].message
    assert "the spec has gpu only" in faults[1].message
    assert "add an embedded profile, or try the models in a container" in faults[1].message
    assert said == ["giving the configuration to Ray Serve's own schema"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["Ctrl-C", "SIGTERM"])
def test_an_interrupted_check_leaves_nothing(tmp_path: Path, number: signal.Signals) -> None:
    project = make_project(tmp_path / "project", {"m": HANGS}, {})
    before = traces()
    command = [str(Path(sys.executable).parent / "tandem"), "--project", str(project.root), "validate", "--live"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as validate:
        assert validate.stdout is not None
        for line in validate.stdout:
            if "loading and running m" in line:
                break
        validate.send_signal(number)
        validate.communicate(timeout=30)
    assert validate.returncode not in (0, None)
    assert traces() <= before


def test_the_command_shows_what_was_found_at_its_line_and_fails(tmp_path: Path) -> None:
    project = make_project(tmp_path / "project", {"m": ECHO, "unfit": ECHO.replace('"x"', '"z"')}, {})
    command = [str(Path(sys.executable).parent / "tandem"), "--project", str(project.root), "validate", "--live"]
    validate = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    line = project.spec_file.read_text().splitlines().index("  unfit:") + 1
    assert validate.returncode == 1, validate.stdout + validate.stderr
    shown = validate.stdout + validate.stderr
    assert f"spec.yaml:{line}" in shown
    assert "L006" in shown
    assert "models.m" not in shown


def test_a_spec_with_errors_is_not_tried_and_one_without_a_project_cannot_be(tmp_path: Path) -> None:
    project = make_project(tmp_path / "project", {"m": "class Model: ...\n"}, {})
    refused = CliRunner().invoke(main, ["--project", str(project.root), "validate", "--live"])
    assert refused.exit_code == 1
    assert "not tried live: correct the errors first" in refused.output
    assert "W021" in refused.output
    alone = tmp_path / "alone.yaml"
    alone.write_text(project.spec_file.read_text())
    useless = CliRunner().invoke(main, ["validate", "--live", str(alone)])
    assert useless.exit_code == 2
    assert "--live needs the models' files" in useless.output
