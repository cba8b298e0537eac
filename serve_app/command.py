"""Where the command `tandem` starts: ended in order by Ctrl-C from the first moment, while what it runs is loaded."""

from __future__ import annotations

import os
import signal
from types import FrameType


def main() -> None:
    """Load the command line, and run it."""
    usual = signal.getsignal(signal.SIGINT)
    if usual is signal.default_int_handler:  # and not where a shell wants it to be passed over
        signal.signal(signal.SIGINT, _abort)
    from serve_app.cli import main as commands

    signal.signal(signal.SIGINT, usual)
    commands()


def _abort(number: int, frame: FrameType | None) -> None:
    # As click ends a command. Nothing has been started, and an exception would come up wherever a module is loaded.
    os.write(2, b"\nAborted!\n")
    os._exit(1)
