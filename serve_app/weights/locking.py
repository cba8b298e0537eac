"""One process at a time in a directory, and files and directories that appear whole or not at all."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from serve_app.weights.errors import Progress

_PARTIAL = ".partial-"


@contextmanager
def exclusive(directory: Path, waiting_for: str, progress: Progress) -> Iterator[None]:
    """Holds `directory` (made where it is missing) for this process; what a killed holder left half done is removed.

    The lock is the kernel's, on the directory itself: it ends with the process and leaves no file behind.
    """
    directory.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            progress(f"waiting for another process that is at {waiting_for}")
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        for left in directory.glob(f"{_PARTIAL}*"):
            shutil.rmtree(left)
        yield
    finally:
        os.close(descriptor)


@contextmanager
def partial(directory: Path) -> Iterator[Path]:
    """A directory inside `directory` (held with `exclusive`) to work in; it is gone afterwards.

    Rename out of it what is finished: both are on the same file system, so others see all of it or nothing.
    """
    with tempfile.TemporaryDirectory(prefix=_PARTIAL, dir=directory) as name:
        yield Path(name)
