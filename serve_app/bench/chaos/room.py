"""A /dev/shm and a folder for logs that can be filled to the last byte, and that nobody else shares.

They are file systems in memory, in a mount namespace of this process and its descendants (namespaces(7)), which needs
no privilege where the kernel lets users have namespaces of their own. With the last process they are gone.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from errno import ENOSPC
from pathlib import Path

# The namespace that the program was started in first.
_OUTSIDE = "TANDEM_BENCH_OUTSIDE"
SHARED_MEMORY = Path("/dev/shm")
WHY_NOT = "it needs a mount namespace of its own, and `unshare -Urm` does not get one here"


def enter() -> None:
    """Start this program anew in a namespace of its own, where it may have one; answers where it is in it, or cannot.

    Called before anything has been started.
    """
    unshare = shutil.which("unshare")
    if is_inside() or unshare is None:
        return
    if subprocess.run([unshare, "-Urm", "mount", "--help"], check=False, capture_output=True).returncode == 0:
        command = [unshare, "-Urm", sys.executable, *sys.orig_argv[1:]]
        os.execve(unshare, command, {**os.environ, _OUTSIDE: _namespace()})


def is_inside() -> bool:
    """Whether this process has the namespace."""
    return os.environ.get(_OUTSIDE, _namespace()) != _namespace()


def _namespace() -> str:
    return os.readlink("/proc/self/ns/mnt")


@contextmanager
def mounted(folder: Path, size: int) -> Iterator[None]:
    """A file system of so many bytes at `folder` within the block; a folder that is made for it is this user's alone.

    Nothing where not inside.
    """
    if not is_inside():
        yield
        return
    is_new = not folder.exists()
    folder.mkdir(mode=0o700, exist_ok=True)
    options = f"size={size},mode={'0700' if is_new else '1777'}"
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)
        if is_new:
            folder.rmdir()


def fill(folder: Path) -> Path:
    """Take every free byte of a room's folder; answers the file that holds them."""
    path = folder / "filled-by-tandem-bench"
    with path.open("wb") as file:
        while free := shutil.disk_usage(folder).free:
            try:
                os.posix_fallocate(file.fileno(), 0, os.fstat(file.fileno()).st_size + free)
            except OSError as full:
                if full.errno != ENOSPC:  # somebody else has taken some meanwhile
                    raise
    return path
