"""Find a Triton server on this machine, and say in one sentence why it cannot run where it cannot."""

from __future__ import annotations

import os
import platform
import re
import shutil
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from serve_app.spec.versions import PYTRITON
from serve_app.triton.error import TritonError

_RUNNING = f"{sys.version_info.major}.{sys.version_info.minor}"
_STUB = "triton_python_backend_stub"
# The first glibc that the manylinux_2_35 wheel runs on.
_WHEEL_GLIBC = (2, 35)


@dataclass(frozen=True)
class Installation:
    """A Triton server that can run here.

    `backends` holds a folder per backend; in it, the python backend's process for this interpreter is `stub`, which
    the wheel keeps elsewhere (None: it is in its place already). `library_path` is what the loader has to search.
    """

    binary: Path
    backends: Path
    stub: Path | None
    library_path: tuple[Path, ...]
    version: str | None
    source: Literal["path", "wheel"]

    @property
    def caches(self) -> Path:
        """The folder that holds a folder per response cache."""
        return self.backends.parent / "caches"

    def make_backend_directory(self, folder: Path) -> Path:
        """The backend directory to start a server with. Made in `folder` for the wheel, whose own is left untouched."""
        if self.stub is None:
            return self.backends
        for backend in self.backends.iterdir():
            (folder / backend.name).mkdir()
            for file in backend.iterdir():
                if file.suffix != ".pyc" and file.is_file():
                    (folder / backend.name / file.name).symlink_to(file)
        stub = folder / "python" / _STUB
        shutil.copyfile(self.stub, stub)  # unpacking may have lost the permission to execute it
        stub.chmod(0o755)
        return folder


def find(unpacked: Path | None) -> Installation:
    """The `tritonserver` on PATH, as in Triton's container, else the one in the unpacked nvidia-pytriton wheel.

    `unpacked` is the folder that holds the wheel's `pytriton/` and `nvidia_pytriton.libs/`. Raises TritonError where
    there is neither, or where it cannot run models on this machine with this Python.
    """
    check_platform(sys.platform, platform.machine())
    on_path = shutil.which("tritonserver")
    return _in_container(Path(on_path)) if on_path else _in_wheel(unpacked)


def is_on_path() -> bool:
    """Whether `find` will take a server that is on PATH."""
    return shutil.which("tritonserver") is not None


def check_platform(system: str, machine: str) -> None:
    """Raise TritonError unless Triton exists for this operating system and processor."""
    if system != "linux" or machine not in ("x86_64", "AMD64"):
        raise TritonError(f"Triton runs on Linux x86-64 only, and this is {system} {machine}: use such a machine.")


def check_glibc(library: str, version: str) -> None:
    """Raise TritonError unless the C library is a glibc that the wheel's server runs on."""
    numbers = tuple(int(part) for part in version.split(".")[:2] if part.isdigit())
    if library != "glibc" or numbers < _WHEEL_GLIBC:
        found = f"{library} {version}" if library else "another C library"
        raise TritonError(
            f"the bundled Triton needs glibc 2.35 or newer (Debian 12, Ubuntu 22.04, RHEL 10), and this system has "
            f"{found}: use a newer system, or a container with tritonserver on PATH."
        )


def check_interpreter(stub: Path, executable: Path, library_folders: tuple[Path, ...]) -> Path | None:
    """Raise TritonError unless `stub` can run the packages of the Python `executable`.

    Answers the folder that its libpython is in, or None where the stub brings its own.
    """
    needed = _libpython(stub)
    if needed is None:
        raise TritonError(f"{stub} is no process of Triton's python backend: install Triton again.")
    library, version = needed
    if version != _RUNNING:
        raise TritonError(
            f"Triton's python backend is built for Python {version}, and this is Python {_RUNNING}: "
            f"run Tandem with Python {version}, or build the backend's stub for {_RUNNING}."
        )
    sibling = executable.parent / "python3"
    if not sibling.exists() or not sibling.samefile(executable):
        raise TritonError(
            f"Triton's python backend runs the `python3` beside {executable}, which is not that interpreter: "
            "install Tandem in a virtual environment."
        )
    if not re.fullmatch(r"libpython3\.\d+\.so[.\d]*", library):
        return None
    for folder in library_folders:
        if (folder / library).is_file():
            return folder
    raise TritonError(
        f"Triton's python backend needs {library}, which this Python does not have: use a Python that is built with "
        f"--enable-shared (uv's and conda's are; with pyenv, PYTHON_CONFIGURE_OPTS=--enable-shared; on Debian, "
        f"install libpython{_RUNNING})."
    )


def _libpython(stub: Path) -> tuple[str, str] | None:
    """The name of the libpython that a stub is linked to and its version; the wheel renames the libraries it brings."""
    if not stub.is_file():
        return None
    found = re.search(rb"libpython3(?:-[0-9a-f]+)?\.(\d+)\.so[.\d]*", stub.read_bytes())
    return (found[0].decode(), f"3.{found[1].decode()}") if found else None


def _library_folders() -> tuple[Path, ...]:
    multiarch = sysconfig.get_config_var("MULTIARCH") or "x86_64-linux-gnu"
    base = Path(sys.base_prefix) / "lib"
    configured = sysconfig.get_config_var("LIBDIR")
    candidates = [base, base / multiarch, Path("/usr/lib") / multiarch, Path("/usr/lib64")]
    return tuple([Path(configured)] if configured else []) + tuple(candidates)


def _in_container(binary: Path) -> Installation:
    root = binary.resolve().parent.parent
    backends = root / "backends"
    if not backends.is_dir():
        raise TritonError(f"{binary} has no backends at {backends}: use Triton's container, or take it off PATH.")
    folder = check_interpreter(backends / "python" / _STUB, Path(sys.executable), _library_folders())
    recorded = root / "TRITON_VERSION"
    version = recorded.read_text().strip() if recorded.is_file() else None
    return Installation(binary, backends, None, (folder,) if folder else (), version, "path")


def _in_wheel(unpacked: Path | None) -> Installation:
    if unpacked is None or not (unpacked / "pytriton" / "tritonserver").is_dir():
        raise TritonError(
            "no tritonserver: there is none on PATH, and the nvidia-pytriton wheel that brings one is not unpacked: "
            "run `tandem models pull`."
        )
    check_glibc(*platform.libc_ver())
    root = unpacked / "pytriton" / "tritonserver"
    binary = root / "bin" / "tritonserver"
    if not os.access(binary, os.X_OK):
        raise TritonError(f"{binary} is missing or not executable: delete {unpacked} and run `tandem models pull`.")
    stubs = root / "python_backend_stubs"
    stub = stubs / _RUNNING / _STUB
    if not stub.is_file():
        known = sorted((folder.name for folder in stubs.iterdir()), key=lambda name: int(name.split(".")[1]))
        raise TritonError(
            f"the bundled Triton runs models on Python {known[0]} to {known[-1]}, and this is Python {_RUNNING}: "
            "install Tandem with one of those."
        )
    folder = check_interpreter(stub, Path(sys.executable), _library_folders())
    release = next((_release(entry.name) for entry in unpacked.glob("nvidia_pytriton-*.dist-info")), None)
    libraries = (unpacked / "nvidia_pytriton.libs", *((folder,) if folder else ()))
    return Installation(binary, root / "backends", stub, libraries, PYTRITON.get(release or ""), "wheel")


def _release(dist_info: str) -> str:
    return dist_info.removesuffix(".dist-info").partition("-")[2]
