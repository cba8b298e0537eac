"""Lines that tell a person how far a command is."""

from __future__ import annotations

import time

import click

from serve_app.weights.errors import Progress


def timed_progress(*, to_stderr: bool = False) -> Progress:
    """Prints each line with the seconds since now."""
    start = time.monotonic()
    return lambda text: click.echo(f"[{time.monotonic() - start:5.1f} s] {text}", err=to_stderr)
