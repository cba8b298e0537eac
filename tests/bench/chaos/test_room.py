"""A file system of one's own can be filled, and is gone after that."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from serve_app.bench.chaos import room

INSIDE = """
import os, sys
from pathlib import Path
from serve_app.bench.chaos import room
room.enter()
if not room.is_inside():
    sys.exit(3)
folder, shared = Path(sys.argv[1]), room.SHARED_MEMORY
before = os.stat(shared).st_dev
with room.mounted(folder, 2**20), room.mounted(shared, 2**20):
    assert os.stat(shared).st_dev != before
    filled = room.fill(folder)
    try:
        (folder / "more").write_bytes(bytes(5000))
    except OSError as full:
        print(full.strerror)
    filled.unlink()
    (folder / "more").write_bytes(bytes(5000))
print(folder.exists(), os.stat(shared).st_dev == before)
"""


def test_a_room_is_filled_to_the_last_byte_and_leaves_nothing(tmp_path: Path) -> None:
    if shutil.which("unshare") is None:
        pytest.skip("there is no `unshare` here")
    command = [sys.executable, "-c", INSIDE, str(tmp_path / "room")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode == 3:
        pytest.skip("users get no namespaces here")
    assert done.stdout.splitlines() == ["No space left on device", "False True"], done.stderr
    assert not (tmp_path / "room").exists()


def test_outside_of_a_room_nothing_is_mounted(tmp_path: Path) -> None:
    with room.mounted(tmp_path / "room", 2**20):
        assert not (tmp_path / "room").exists()
