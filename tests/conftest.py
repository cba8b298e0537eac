"""What all tests share."""

from __future__ import annotations

import os
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# How long an example takes says something about the machine, not about the code.
settings.register_profile("random", deadline=None, suppress_health_check=[HealthCheck.too_slow])
# The same examples on every run, so that a change is judged by itself; `--hypothesis-profile random` draws others.
settings.register_profile("tandem", settings.get_profile("random"), derandomize=True)
settings.load_profile("tandem")

# A shell starts what it runs in the background with Ctrl-C ignored, and so would every process that a test starts.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def unprivileged() -> Iterator[Path]:
    """A folder of the test's own, which has no more rights than anybody, also where root runs it."""
    me = os.geteuid()
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o777)
        os.seteuid(me or 65534)
        try:
            yield Path(name)
        finally:
            os.seteuid(me)
