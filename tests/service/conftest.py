"""One real service, brought up by `tandem up` in a project of its own, for all tests of this folder."""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import cv2
import httpx
import numpy as np
import psutil
import pytest

from serve_app.artefacts import mirror_directory
from serve_app.cluster.head import find_head, home, logs, processes
from serve_app.kyc.images import decode
from serve_app.kyc.specimen import Identity, render
from serve_app.project import Project, write_files
from serve_app.weights.fetch import cache_directory
from serve_app.weights.samples import sample_photos
from tests.kyc import frames

CHECKOUT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Service:
    project: Project
    url: str

    def tandem(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [str(Path(sys.executable).parent / "tandem"), "--project", str(self.project.root), *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)

    def post(self, route: str, headers: dict[str, str] | None = None, **files: Any) -> httpx.Response:
        """Post files by their fields; a list becomes several files of one field."""
        parts = [
            (name, (name, part))
            for name, value in files.items()
            for part in (value if isinstance(value, list) else [value])
        ]
        return httpx.post(f"{self.url}{route}", files=parts, headers=headers, timeout=60)

    def processes(self, part: str) -> list[psutil.Process]:
        """The service's processes with `part` in their command line."""
        head = find_head(self.project)
        assert head is not None
        return [process for process in processes(head) if part in _command_line(process)]

    def triton_processes(self) -> list[int]:
        return [process.pid for process in self.processes("bin/tritonserver --") if process.name() == "tritonserver"]

    def is_ready(self) -> bool:
        return httpx.get(f"{self.url}/readyz", timeout=10).status_code == 200


def _command_line(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.NoSuchProcess:
        return ""


def eventually(condition: Callable[[], bool], within: float) -> None:
    """Wait until `condition()` holds; fail where it does not within so many seconds."""
    give_up = time.monotonic() + within
    while not condition():
        assert time.monotonic() < give_up, f"not so within {within} s"
        time.sleep(0.05)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def copy_project(root: Path) -> Project:
    """The checkout's project on ports of its own, with the weights that are prepared already."""
    shutil.copytree(CHECKOUT / "cluster", root / "cluster")
    shutil.copytree(CHECKOUT / "model_repository", root / "model_repository")
    spec = root / "cluster" / "spec.yaml"
    text = spec.read_text()
    for default in ("8000", "9000", "6379", "8265"):
        assert text.count(f"port: {default}") == 1
        text = text.replace(f"port: {default}", f"port: {free_port()}")
    spec.write_text(text)
    project = Project(root)
    write_files(project, project.spec())
    return project


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    """A project of the test's own, of which nothing is left."""
    project = copy_project(tmp_path / "kyc")
    yield project
    shutil.rmtree(home(project), ignore_errors=True)


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    project = copy_project(tmp_path_factory.mktemp("project") / "kyc")
    service = Service(project, f"http://127.0.0.1:{project.spec().service.port}")
    orphans = orphaned_segments()
    up = service.tandem("up")
    try:
        assert up.returncode == 0, up.stdout + up.stderr + _ray_logs(project)
        yield service
    finally:
        head = find_head(project)
        down = service.tandem("down")
    assert down.returncode == 0, down.stdout + down.stderr
    assert "had to kill" not in down.stdout
    assert head is not None
    assert processes(head) == []
    assert orphaned_segments() <= orphans
    shutil.rmtree(home(project))
    spec = project.spec()
    for port in (spec.service.port, spec.service.grpc.port, spec.ray.port, spec.ray.dashboard_port):
        socket.create_server(("127.0.0.1", port)).close()


def segment_owners() -> dict[str, int]:
    """The shared-memory segments of all Tritons that Tandem started, with the process ids of their guards."""
    names = [path.name for path in Path("/dev/shm").iterdir() if path.name.startswith("tandem-triton-")]
    return {name: int(name.split("-")[3]) for name in names}


def orphaned_segments() -> set[str]:
    return {name for name, guard in segment_owners().items() if not psutil.pid_exists(guard)}


def _ray_logs(project: Project) -> str:
    files = sorted(logs(project).rglob("*.log"))
    return "".join(
        f"\n--- {log.name}\n{log.read_text(errors='replace')[-2000:]}" for log in files if "serve" in str(log)
    )


@pytest.fixture(scope="session")
def photos() -> dict[str, bytes]:
    """Portraits as encoded files, by name: person_a_1 and person_a_2 are one person, and so on."""
    folder = sample_photos(cache_directory(), mirror_directory())
    return {file.stem: file.read_bytes() for file in folder.glob("*.jpg")}


@pytest.fixture(scope="session")
def document(photos: dict[str, bytes]) -> Callable[[str], bytes]:
    """A specimen passport, as a JPEG, with somebody's photo."""

    def make(person: str) -> bytes:
        portrait = decode(photos[person], max_pixels=50_000_000, min_side=1).pixels
        return encode(render(portrait, Identity(date_of_expiry=date.today() + timedelta(days=900))), ".jpg")

    return make


@pytest.fixture(scope="session")
def moving_head(service: Service) -> Callable[[bytes], list[bytes]]:
    """Frames made of a photo, in which the head turns."""

    def make(photo: bytes) -> list[bytes]:
        picture = decode(photo, max_pixels=50_000_000, min_side=1).pixels
        landmarks = np.array(service.post("/v1/faces/embed", image=photo).json()["face"]["landmarks"])
        turned = [frames.with_head_turned(picture, landmarks, yaw) for yaw in (-14, 0, 14)]
        return [frames.of_a_print(head, seed=seed) for seed, head in enumerate(turned)]

    return make


@pytest.fixture(scope="session")
def moving_picture() -> Callable[[bytes], list[bytes]]:
    """Frames made of a photo, in which a print of it is moved."""

    def make(photo: bytes) -> list[bytes]:
        picture = decode(photo, max_pixels=50_000_000, min_side=1).pixels
        return [
            frames.of_a_print(picture, yaw=yaw, shift=(yaw, 0, 0), seed=seed) for seed, yaw in enumerate((-14, 0, 14))
        ]

    return make


def encode(picture: np.ndarray, kind: str) -> bytes:
    return cv2.imencode(kind, picture)[1].tobytes()
