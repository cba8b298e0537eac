"""What is said of a machine on which the service cannot run, before anything is started."""

from __future__ import annotations

import shutil
import socket
from pathlib import Path
from typing import Any

import psutil
import pytest
import yaml

from serve_app.artefacts import check_version
from serve_app.cluster import preflight
from serve_app.cluster.error import ClusterError
from serve_app.spec import Spec
from serve_app.triton.error import TritonError
from serve_app.triton.find import Installation

SPEC_FILE = Path(__file__).parents[2] / "cluster" / "spec.yaml"


@pytest.fixture
def spec(unused_port: int) -> Spec:
    """The project's own, on ports that nobody uses."""
    data: dict[str, Any] = yaml.safe_load(SPEC_FILE.read_text())
    data["service"]["port"] = data["service"]["grpc"]["port"] = unused_port
    data["ray"]["port"] = data["ray"]["dashboard_port"] = unused_port
    return Spec.model_validate(data)


@pytest.fixture
def unused_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def complaints(spec: Spec) -> list[str]:
    with pytest.raises(ClusterError) as refused:
        preflight.check_machine(spec, "embedded")
    return str(refused.value).splitlines()


def test_this_machine_will_do(spec: Spec) -> None:
    preflight.check_machine(spec, "embedded")


def test_another_platform_is_refused(spec: Spec, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: "aarch64")
    assert complaints(spec) == ["Tandem runs on Linux x86-64, this is Linux aarch64; use such a machine."]


def test_too_little_memory_is_told_with_what_is_needed(spec: Spec, monkeypatch: pytest.MonkeyPatch) -> None:
    """1 GiB for Ray, 1 GiB for Triton, half a GiB for the object store, each of three stages and the ingress."""
    monkeypatch.setattr(preflight, "available_memory", lambda: 2**30)
    assert complaints(spec) == [
        "1.0 GiB of memory are free and the spec asks for 4.2 GiB; free some, or lower `memory` in the spec."
    ]


def test_a_containers_memory_limit_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preflight, "_CGROUP", tmp_path)
    (tmp_path / "memory.max").write_text("3000000\n")
    (tmp_path / "memory.current").write_text("1000000\n")
    (tmp_path / "memory.stat").write_text("anon 600000\ninactive_file 400000\n")
    assert preflight.available_memory() == 2_400_000
    (tmp_path / "memory.max").write_text("max\n")
    assert preflight.available_memory() == pytest.approx(psutil.virtual_memory().available, rel=0.2)


def test_a_containers_small_shared_memory_is_told(spec: Spec, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ray would quietly keep requests, and so pictures, in files instead."""
    monkeypatch.setattr(shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(2**26, 0, 2**26))
    assert complaints(spec) == [
        "64 MiB of /dev/shm are free and 518 MiB are needed; enlarge it (a container's is set by --shm-size), or lower "
        "`ray.object_store` in the spec."
    ]


def test_all_taken_ports_are_named_with_the_key_that_sets_them(spec: Spec, unused_port: int) -> None:
    with socket.create_server(("127.0.0.1", unused_port)):
        said = complaints(spec)
    assert [line.rpartition("change ")[2] for line in said] == [
        "service.port in the spec.",
        "service.grpc.port in the spec.",
        "ray.port in the spec.",
        "ray.dashboard_port in the spec.",
    ]
    assert all(
        line.startswith(f"port {unused_port} on 127.0.0.1 cannot be had (Address already in use)") for line in said
    )


@pytest.mark.parametrize(("found", "fits"), [("2.51.0", True), ("2.59.1", True), (None, True), ("2.50.9", False)])
def test_a_server_older_than_the_profile_wants_is_refused(found: str | None, fits: bool) -> None:
    installation = Installation(Path("/opt/tritonserver"), Path(), None, (), found, "path")
    if fits:
        check_version(installation, "2.51.0")
        return
    with pytest.raises(TritonError, match=r"is Triton 2.50.9, and the spec's profile needs 2.51.0 or newer"):
        check_version(installation, "2.51.0")
