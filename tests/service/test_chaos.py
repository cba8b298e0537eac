"""`tandem bench chaos` in a deployment of its own, with the faults that take seconds."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.service.conftest import CHECKOUT

FAULTS = ("triton-killed", "model-raises", "aborted-uploads", "idle-connections", "log-disk-full", "down")
BOUND_S = 300


def test_faults_show_clients_only_what_is_documented_and_leave_nothing_behind() -> None:
    command = [str(Path(sys.executable).parent / "tandem"), "--project", str(CHECKOUT), "bench", "chaos", "--json"]
    chosen = [argument for fault in FAULTS for argument in ("--fault", fault)]
    done = subprocess.run([*command, *chosen], capture_output=True, text=True, timeout=BOUND_S, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    results = {each["fault"]: each for each in json.loads(done.stdout)}
    assert results.keys() == {*FAULTS}
    for fault, result in results.items():
        if fault == "log-disk-full" and result["skipped"]:  # there is no mount namespace for it
            continue
        assert fault == "down" or result["seen"]["answered"] > 0, fault  # whether anything is in work then is chance
        assert result["seen"]["undocumented"] == {}, fault
        assert result["leaks"] == [], fault
        assert result["healthy_s"] is not None, fault
    assert results["model-raises"]["seen"]["refused"] == {"500": 5}
