"""Signals that end a command: in order where it has started something, and not at all while it ends that."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def end_on_signals() -> None:
    """Let a supervisor's SIGTERM and a lost terminal interrupt like Ctrl-C, so that what was started is ended."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda received, frame: sys.exit(128 + received))


@contextmanager
def undisturbed() -> Iterator[None]:
    """Within the block signals end nothing: half of what is being ended would be left."""
    before = [signal.signal(number, signal.SIG_IGN) for number in _ENDING]
    try:
        yield
    finally:
        for number, handler in zip(_ENDING, before, strict=True):
            signal.signal(number, handler)
