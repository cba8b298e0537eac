"""Regular files: read without waiting for anybody and no more than is asked for, written whole or not at all.

Whatever cannot be read so ends in an OSError whose `strerror` says why, the kernel's own reasons and these alike.
"""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from errno import EFBIG, EINVAL
from pathlib import Path
from typing import BinaryIO

_KINDS = {
    stat.S_IFREG: "a file",
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


class TooLarge(OSError):
    """A file with more bytes than are wanted."""


@contextmanager
def opened(path: Path, *, pipe: bool = False) -> Iterator[BinaryIO]:
    """The regular file at `path`, open for reading; with `pipe` also a shell's pipe, as `<(…)` gives one. OSError."""
    try:
        _check(path, os.stat(path), pipe)
    except ValueError:  # a null byte in it
        raise OSError(EINVAL, "no file can be called so", str(path)) from None
    # The first look is there because opening a device may do something; not to wait, because of what comes after it.
    waiting = 0 if pipe else os.O_NONBLOCK
    with open(os.open(path, os.O_RDONLY | os.O_CLOEXEC | waiting), "rb") as file:
        _check(path, os.fstat(file.fileno()), pipe)
        yield file


def read_file(path: Path, most: int, *, pipe: bool = False) -> bytes:
    """What is in the file, at most `most` bytes. OSError, TooLarge where there are more."""
    with opened(path, pipe=pipe) as file:
        _check_size(path, os.fstat(file.fileno()).st_size, most)
        content = file.read(most + 1)
    _check_size(path, len(content), most)  # the kernel says of some of its files that they are empty
    return content


def check_size(path: Path, most: int) -> None:
    """TooLarge where there are more than `most` bytes in the file; OSError where it cannot be read."""
    _check_size(path, size_of(path), most)


def size_of(path: Path) -> int:
    """How many bytes are in the file, which can be read. OSError."""
    with opened(path) as file:
        return os.fstat(file.fileno()).st_size


def lost_link(path: Path) -> str | None:
    """Where a symbolic link leads that leads to nothing, as `a link to …`; None where this is none."""
    return f"a link to {os.readlink(path)}, which does not exist" if path.is_symlink() else None


def why_no_folder(path: Path) -> str | None:
    """Why nobody finds a file in the folder `path`, reading on from its name; None where it is one, or not there."""
    try:
        with os.scandir(path):
            return None
    except FileNotFoundError:
        found = lost_link(path)
    except NotADirectoryError:
        found = _KINDS[stat.S_IFMT(os.stat(path).st_mode)] if os.path.exists(path) else None
    except OSError as broken:
        return f"cannot be read: {broken.strerror}"
    return None if found is None else f"is {found}, where a folder belongs"


def names_below(folder: Path) -> list[Path]:
    """Everything in the folder and those in it that is no folder, sorted; what cannot be listed is passed over."""
    return sorted(Path(where, name) for where, _, names in os.walk(folder) for name in names)


def write_whole(path: Path, text: str) -> None:
    """Put the whole text in the file's place, in a folder that is made where it is missing, or leave what is there.

    OSError.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    new = Path(name)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        new.chmod(path.stat().st_mode & 0o777 if path.exists() else 0o644)
        new.replace(path)
    except BaseException:
        new.unlink()
        raise


def _check(path: Path, found: os.stat_result, pipe: bool) -> None:
    if stat.S_ISREG(found.st_mode):
        return
    # A pipe without a name has its writer; to one with a name, none may ever come.
    if pipe and stat.S_ISFIFO(found.st_mode) and not os.path.exists(os.path.realpath(path)):
        return
    raise OSError(EINVAL, f"it is {_KINDS[stat.S_IFMT(found.st_mode)]}, no file", str(path))


def _check_size(path: Path, size: int, most: int) -> None:
    if size > most:
        raise TooLarge(EFBIG, f"it has more than {_shown_size(most)}", str(path))


def _shown_size(size: int) -> str:
    for unit, width in (("GiB", 2**30), ("MiB", 2**20)):
        if size >= width:
            return f"{size // width} {unit}"
    return f"{size // 2**10} KiB"
