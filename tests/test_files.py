"""Files in odd states: none is waited for, none is read without end, and each is named for what it is."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from serve_app.files import TooLarge, read_file, size_of, why_no_folder, write_whole

ODD: dict[str, tuple[Callable[[Path], object], str]] = {
    "a folder": (Path.mkdir, "it is a folder, no file"),
    "a FIFO": (os.mkfifo, "it is a FIFO, no file"),
    "a socket": (lambda path: os.mknod(path, stat.S_IFSOCK | 0o600), "it is a socket, no file"),
    "a link to a device": (lambda path: path.symlink_to("/dev/zero"), "it is a device, no file"),
    "a link to itself": (lambda path: path.symlink_to(path.name), "Too many levels of symbolic links"),
    "a name too long": (lambda path: path.symlink_to("n" * 300), "File name too long"),
    "a link to nothing": (lambda path: path.symlink_to("gone"), "No such file or directory"),
    "nothing": (lambda path: None, "No such file or directory"),
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "file"


@pytest.mark.parametrize(("make", "says"), ODD.values(), ids=ODD)
def test_what_is_no_file_to_read_is_told_at_once(path: Path, make: Callable[[Path], object], says: str) -> None:
    make(path)
    for read in (lambda: read_file(path, 10), lambda: size_of(path)):
        with pytest.raises(OSError, match=rf"\] {says}: "):
            read()


def test_a_null_byte_in_a_name_is_told_too(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="no file can be called so"):
        read_file(tmp_path / "a\0b", 10)


def test_what_may_not_be_read_is_told(unprivileged: Path) -> None:
    file, folder = unprivileged / "file", unprivileged / "folder"
    file.touch(0o000)
    folder.mkdir(0o000)
    with pytest.raises(PermissionError):
        size_of(file)
    assert why_no_folder(folder) == "cannot be read: Permission denied"
    folder.chmod(0o700)


def test_what_breaks_in_the_middle_is_told() -> None:
    with pytest.raises(OSError, match="Input/output error"):
        read_file(Path("/proc/self/mem"), 10)


def test_a_file_is_read_up_to_the_last_byte_that_is_wanted(path: Path) -> None:
    path.write_bytes(bytes(2048))
    assert read_file(path, 2048) == bytes(2048)
    with pytest.raises(TooLarge) as raised:
        read_file(path, 2047)
    assert raised.value.strerror == "it has more than 1 KiB"


def test_a_huge_file_is_not_read(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(2**42)
    with pytest.raises(TooLarge) as raised:
        read_file(path, 2**31)
    assert raised.value.strerror == "it has more than 2 GiB"


def test_a_file_of_the_kernels_that_claims_to_be_empty_is_bounded_too() -> None:
    assert os.stat("/proc/self/maps").st_size == 0
    with pytest.raises(TooLarge):
        read_file(Path("/proc/self/maps"), 10)


def test_the_pipe_of_a_shell_is_read_where_it_is_welcome() -> None:
    code = (
        "import sys; from pathlib import Path; from serve_app.files import read_file\n"
        "print(read_file(Path(sys.argv[1]), 9, pipe=bool(sys.argv[2])))"
    )
    shown = [
        subprocess.run(
            ["bash", "-c", f'exec "$0" -c "$1" <(printf spec) "{welcome}"', sys.executable, code],
            capture_output=True,
            text=True,
            check=False,
        )
        for welcome in ("yes", "")
    ]
    assert shown[0].stdout == "b'spec'\n"
    assert "it is a FIFO, no file" in shown[1].stderr


def test_a_fifo_with_a_name_is_never_waited_for(path: Path) -> None:
    os.mkfifo(path)
    with pytest.raises(OSError, match="it is a FIFO, no file"):
        read_file(path, 10, pipe=True)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (Path.mkdir, None),
        (lambda path: None, None),
        (Path.touch, "is a file, where a folder belongs"),
        (os.mkfifo, "is a FIFO, where a folder belongs"),
        (lambda path: path.symlink_to("gone"), "is a link to gone, which does not exist, where a folder belongs"),
        (lambda path: path.symlink_to(path.name), "cannot be read: Too many levels of symbolic links"),
    ],
    ids=["a folder", "nothing", "a file", "a FIFO", "a link to nothing", "a link to itself"],
)
def test_what_stands_in_a_folders_place(path: Path, make: Callable[[Path], object], says: str | None) -> None:
    make(path)
    assert why_no_folder(path) == says


def test_a_file_is_written_whole_or_stays_as_it_was(path: Path) -> None:
    write_whole(path, "first")
    path.chmod(0o600)
    with pytest.raises(UnicodeEncodeError):
        write_whole(path, "second, with what is no text: \udcff")
    assert path.read_text() == "first"
    write_whole(path, "third")
    assert (path.read_text(), path.stat().st_mode & 0o777) == ("third", 0o600)
    assert [entry.name for entry in path.parent.iterdir()] == ["file"]
