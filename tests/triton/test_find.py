from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

from serve_app.triton import find as finding
from serve_app.triton.error import TritonError
from serve_app.triton.find import check_glibc, check_interpreter, check_platform, find

RUNNING = f"3.{sys.version_info.minor}"
OTHER = f"3.{sys.version_info.minor - 1}"


def write_stub(file: Path, library: str) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(b"\x7fELF\0libc.so.6\0" + library.encode() + b"\0")
    return file


@pytest.fixture
def python(tmp_path) -> Path:
    """An interpreter in a virtual environment's folder."""
    folder = tmp_path / "venv" / "bin"
    folder.mkdir(parents=True)
    (folder / "python").touch()
    (folder / "python3").symlink_to("python")
    return folder / "python"


def test_the_unpacked_wheel_is_found_with_its_version(installation):
    assert (installation.source, installation.version) == ("wheel", "2.51.0")
    assert os.access(installation.binary, os.X_OK)


def test_a_server_gets_a_backend_directory_of_its_own_and_the_wheel_stays_as_it_is(installation, tmp_path):
    def content() -> list[tuple[Path, int, float]]:
        files = sorted(installation.backends.parent.rglob("*"))
        return [(file, file.stat().st_mode, file.stat().st_mtime) for file in files]

    before = content()
    backends = installation.make_backend_directory(tmp_path)
    assert os.access(backends / "python" / "triton_python_backend_stub", os.X_OK)
    assert (backends / "python" / "libtriton_python.so").is_file()
    assert content() == before


def test_a_tritonserver_on_path_goes_before_the_wheel(installation, tmp_path, monkeypatch):
    root = tmp_path / "tritonserver"
    binary = root / "bin" / "tritonserver"
    binary.parent.mkdir(parents=True)
    binary.touch(0o755)
    (root / "TRITON_VERSION").write_text("2.59.0\n")
    shutil.copytree(installation.backends, root / "backends")
    shutil.copy(installation.stub, root / "backends" / "python")
    monkeypatch.setenv("PATH", str(binary.parent), prepend=os.pathsep)
    found = find(None)
    assert (found.source, found.version, found.binary) == ("path", "2.59.0", binary)
    assert found.make_backend_directory(tmp_path / "unused") == root / "backends"


def test_without_any_server_the_remedy_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    for unpacked in (None, tmp_path):
        with pytest.raises(TritonError, match=r"no tritonserver: .* run `tandem models pull`\.$"):
            find(unpacked)


@pytest.mark.parametrize(("system", "machine"), [("darwin", "arm64"), ("linux", "aarch64"), ("win32", "AMD64")])
def test_another_platform_is_refused(system, machine):
    with pytest.raises(TritonError, match=f"Linux x86-64 only, and this is {system} {machine}"):
        check_platform(system, machine)


@pytest.mark.parametrize(("library", "version"), [("glibc", "2.34"), ("glibc", "2.9"), ("", "")])
def test_an_old_or_other_c_library_is_refused(library, version):
    with pytest.raises(TritonError, match=r"needs glibc 2\.35 or newer"):
        check_glibc(library, version)


@pytest.mark.parametrize("version", ["2.35", "2.36", "2.100", "3.0"])
def test_a_newer_glibc_is_taken(version):
    check_glibc("glibc", version)


def test_the_folder_of_the_shared_libpython_is_answered(tmp_path, python):
    stub = write_stub(tmp_path / "stub", f"libpython{RUNNING}.so.1.0")
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / f"libpython{RUNNING}.so.1.0").touch()
    assert check_interpreter(stub, python, (tmp_path, tmp_path / "lib")) == tmp_path / "lib"


def test_a_python_without_shared_library_is_refused_with_ways_to_get_one(tmp_path, python):
    stub = write_stub(tmp_path / "stub", f"libpython{RUNNING}.so.1.0")
    with pytest.raises(TritonError, match=rf"needs libpython{RUNNING}\.so\.1\.0, .*--enable-shared"):
        check_interpreter(stub, python, (tmp_path,))


def test_a_stub_that_brings_its_own_libpython_needs_none(tmp_path, python):
    stub = write_stub(tmp_path / "stub", f"libpython3-419a3a08.{sys.version_info.minor}.so.1.0")
    assert check_interpreter(stub, python, ()) is None


def test_a_stub_for_another_python_is_refused(tmp_path, python):
    stub = write_stub(tmp_path / "stub", f"libpython{OTHER}.so.1.0")
    with pytest.raises(TritonError, match=f"built for Python {OTHER}, and this is Python {RUNNING}"):
        check_interpreter(stub, python, ())


def test_an_interpreter_that_the_stub_would_not_find_is_refused(tmp_path, python):
    stub = write_stub(tmp_path / "stub", f"libpython{RUNNING}.so.1.0")
    (python.parent / "python3").unlink()
    (python.parent / "python3").touch()
    with pytest.raises(TritonError, match="install Tandem in a virtual environment"):
        check_interpreter(stub, python, (tmp_path,))


def test_a_wheel_without_stub_for_this_python_is_refused(tmp_path, monkeypatch):
    root = tmp_path / "pytriton" / "tritonserver"
    (root / "bin").mkdir(parents=True)
    (root / "bin" / "tritonserver").touch(0o755)
    for version in ("3.8", "3.10", "3.9"):
        write_stub(root / "python_backend_stubs" / version / "triton_python_backend_stub", f"libpython{version}.so.1.0")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(finding, "_RUNNING", "3.99")
    with pytest.raises(TritonError, match=r"on Python 3\.8 to 3\.10, and this is Python 3\.99"):
        find(tmp_path)
