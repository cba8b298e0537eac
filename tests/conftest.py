"""What all tests share."""

from __future__ import annotations

import signal

from hypothesis import HealthCheck, settings

# How long an example takes says something about the machine, not about the code.
settings.register_profile("tandem", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("tandem")

# A shell starts what it runs in the background with Ctrl-C ignored, and so would every process that a test starts.
signal.signal(signal.SIGINT, signal.default_int_handler)
