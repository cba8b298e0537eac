"""`tandem up`, `status` and `down`, and what they refuse, without a service or beside the one that runs."""

from __future__ import annotations

import base64
import json
import signal
import socket
import subprocess
import sys
from pathlib import Path

import httpx
import psutil
import pytest

from serve_app.cluster.head import find_head, home, only_one, processes
from serve_app.cluster.head import logs as head_logs
from serve_app.project import Project
from tests.service.conftest import Service, eventually, segment_owners


def test_starting_twice_says_so_instead_of_starting_again(service: Service) -> None:
    before = service.triton_processes()
    again = service.tandem("up")
    assert again.returncode == 1
    assert f"already up: the API is at {service.url}" in again.stderr
    assert service.triton_processes() == before


def test_status_shows_every_deployment(service: Service) -> None:
    status = service.tandem("status")
    assert status.returncode == 0, status.stdout
    for name in ("Triton", "documents", "liveness", "Ingress"):
        assert name in status.stdout
    assert f"API {service.url} (ready)" in status.stdout


def test_the_service_listens_on_loopback_except_for_rays_guarded_ports(service: Service) -> None:
    """Ray 2.60 opens one port of each replica on every interface; the token of `tandem up` guards it."""
    head = find_head(service.project)
    assert head is not None
    listening = [
        (process.name(), connection.laddr)
        for process in processes(head)
        for connection in process.net_connections("tcp")
        if connection.status == psutil.CONN_LISTEN
    ]
    open_to_all = [each for each in listening if each[1].ip not in ("127.0.0.1", "::1", "::ffff:127.0.0.1")]
    assert {name for name, _ in open_to_all if not name.startswith("ray::ServeRepli")} == set()
    spec = service.project.spec().service
    ours = {spec.port, spec.grpc.port}
    assert ours <= {place.port for _, place in listening}
    assert ours.isdisjoint(place.port for _, place in open_to_all)
    applications = f"{head.dashboard}/api/serve/applications/"
    assert httpx.get(applications, timeout=10).status_code == 401
    assert httpx.get(applications, headers={"Authorization": f"Bearer {head.token}"}, timeout=10).status_code == 200


def test_nothing_of_a_request_is_in_the_logs(service: Service) -> None:
    head = find_head(service.project)
    assert head is not None
    logs = [path for path in head_logs(service.project).rglob("*") if path.is_file()]
    assert any("triton" in str(path) for path in logs)
    for path in logs:
        text = path.read_text(errors="replace")
        assert "ERIKSSON" not in text, path
        assert "L898902C" not in text, path


def test_down_and_status_without_a_service_say_so(project: Project) -> None:
    unused = Service(project, "")
    down = unused.tandem("down")
    assert (down.returncode, "nothing runs" in down.stdout) == (0, True)
    status = unused.tandem("status")
    assert (status.returncode, status.stdout) == (1, "down; start it with `tandem up`\n")


@pytest.mark.parametrize("key", ["service.port", "service.grpc.port"])
def test_a_taken_port_is_named_before_anything_starts(project: Project, key: str) -> None:
    service = project.spec().service
    port = service.port if key == "service.port" else service.grpc.port
    with socket.create_server(("127.0.0.1", port)):
        up = Service(project, "").tandem("up")
    assert up.returncode == 1
    assert f"change {key} in the spec" in up.stderr
    assert f"port {port} on 127.0.0.1 cannot be had (Address already in use)" in up.stderr
    assert find_head(project) is None


@pytest.mark.parametrize("signal_", [signal.SIGINT, signal.SIGTERM], ids=["Ctrl-C", "SIGTERM"])
def test_an_interrupted_start_ends_what_it_started(project: Project, signal_: signal.Signals) -> None:
    command = [str(Path(sys.executable).parent / "tandem"), "--project", str(project.root), "up", "--no-sample"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as up:
        assert up.stdout is not None
        for line in up.stdout:
            if "starting Ray" in line:
                break
        eventually(lambda: find_head(project) is not None, 30)
        head = find_head(project)
        up.send_signal(signal_)
        up.communicate(timeout=60)
    assert up.returncode != 0
    assert head is not None
    assert processes(head) == []


def test_two_starts_at_once_do_not_meet(project: Project) -> None:
    with only_one(project):
        up = Service(project, "").tandem("up")
    assert (up.returncode, "another `tandem up`" in up.stderr) == (1, True)


def test_what_the_service_keeps_on_this_machine_is_its_users_alone(service: Service) -> None:
    """The folder holds the token, and Ray opens its own folder in it to everybody."""
    assert home(service.project).stat().st_mode & 0o077 == 0
    (guard,) = service.processes("guard.py")
    segments = [Path("/dev/shm") / name for name, owner in segment_owners().items() if owner == guard.pid]
    assert segments
    assert [path.name for path in segments if path.stat().st_mode & 0o077] == []


def test_ray_never_moves_pictures_to_a_disk(service: Service) -> None:
    (config,) = _arguments(service, "--config_list")
    assert json.loads(base64.b64decode(config))["automatic_object_spilling_enabled"] is False
    assert _arguments(service, "--plasma_directory") == {"/dev/shm"}
    assert _arguments(service, "--fallback_directory") == {"/dev/shm"}


def _arguments(service: Service, name: str) -> set[str]:
    """The values that the service's processes were given for an argument."""
    return {
        argument.partition("=")[2]
        for process in service.processes(name)
        for argument in process.cmdline()
        if argument.startswith(f"{name}=")
    }
