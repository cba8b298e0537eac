"""The Ray head node that `tandem up` owns: started, found again, and ended with all that it started.

Everything the head node starts inherits an environment variable that names this head, so that it can be found
whatever becomes of its parent.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

from serve_app.cluster.error import ClusterError
from serve_app.project import Project
from serve_app.spec import Spec

MARK = "TANDEM_HEAD"
_STATE = "head.json"
# Ray opens its folder to everybody; the one around it is closed.
_RAY = "ray"
_TMP = "tmp"
_POLL_S = 0.1
STOP_GRACE_S = 20.0


@dataclass(frozen=True)
class Head:
    """A head node that was started for a project.

    `port` is Ray's own. `token` opens Ray's dashboard and its ports. Some of those listen on every interface and run
    what they are sent.
    """

    mark: str
    pid: int
    started: float
    port: int
    dashboard: str
    url: str
    token: str

    def is_running(self) -> bool:
        try:
            return psutil.Process(self.pid).create_time() == self.started
        except psutil.NoSuchProcess:
            return False


def home(project: Project) -> Path:
    """The folder of the project's head node: its state and Ray's logs.

    Its path is short, since it holds Unix sockets, and the same for every shell, whatever TMPDIR says there.
    """
    name = hashlib.sha256(str(project.root).encode()).hexdigest()[:8]
    return Path("/tmp") / f"tandem-{os.getuid()}-{name}"


@contextmanager
def only_one(project: Project) -> Iterator[None]:
    """Holds the project's head node for this process. ClusterError where another process is at it."""
    folder = home(project)
    folder.mkdir(mode=0o700, exist_ok=True)
    _check_owner(folder)
    lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ClusterError("another `tandem up` or `tandem down` is at work on this project; wait for it") from None
        yield
    finally:
        os.close(lock)


def find_head(project: Project) -> Head | None:
    """The project's head node as it was started last, whether it runs or not. None after an orderly end."""
    state = home(project) / _STATE
    if not state.is_file():
        return None
    _check_owner(home(project))
    try:
        return Head(**json.loads(state.read_text()))
    except (TypeError, ValueError):
        raise ClusterError(f"{state} is of another version of Tandem; end what that started, then remove it") from None


def forget_head(project: Project) -> None:
    (home(project) / _STATE).unlink(missing_ok=True)


def processes(head: Head) -> list[psutil.Process]:
    """Every living process that descends from the head node."""
    mark = f"{MARK}={head.mark}".encode()
    found = []
    for process in psutil.process_iter():
        try:
            # Not psutil's environ(): it stops where Ray has written a process's title over the first variables.
            environment = Path(f"/proc/{process.pid}/environ").read_bytes()
            if mark in environment and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except (psutil.NoSuchProcess, OSError):
            continue
    return found


def start_head(project: Project, spec: Spec, is_ready: Callable[[Head], bool], timeout: float) -> Head:
    """Start Ray for the project, held with `only_one`, and wait until `is_ready(head)`.

    ClusterError, with Ray's own words, where it fails.
    """
    folder = _fresh_home(project)
    mark = uuid.uuid4().hex
    token = secrets.token_hex(32)
    free = _free_ports(4)
    command = [
        str(Path(sys.executable).parent / "ray"),
        *("start", "--head", "--block", "--disable-usage-stats", "--node-ip-address=127.0.0.1"),
        f"--port={spec.ray.port}",
        f"--dashboard-port={spec.ray.dashboard_port}",
        f"--temp-dir={folder / _RAY}",
        f"--object-store-memory={spec.ray.object_store}",
        # Requests carry pictures of people, which must never reach a disk, not even when the object store is full: then
        # they wait. What Ray puts beside the store, it puts into memory too.
        "--plasma-directory=/dev/shm",
        "--object-spilling-directory=/dev/shm",
        f"--system-config={json.dumps({'automatic_object_spilling_enabled': False})}",
        # Ray's own defaults here are fixed numbers, which two clusters on one machine would fight over.
        *("--min-worker-port=0", "--max-worker-port=0"),
        f"--ray-client-server-port={free[0]}",
        f"--dashboard-agent-listen-port={free[1]}",
        f"--metrics-export-port={free[2]}",
        f"--runtime-env-agent-port={free[3]}",
    ]
    environment = {
        **os.environ,
        MARK: mark,
        "TANDEM_PROJECT": str(project.root),
        "TMPDIR": str(folder / _TMP),
        # Jobs of the cluster run `python`, which has to be this one.
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)]),
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN": token,
        # The C library would keep the memory of decoded pictures for each thread, gigabytes in all. Giving all of it
        # back each time costs a tenth of a verification: two pools keep up to 64 MiB each, for arrays below 32 MiB.
        "MALLOC_ARENA_MAX": "2",
        "MALLOC_TRIM_THRESHOLD_": str(2**26),
        "MALLOC_MMAP_THRESHOLD_": str(2**25),
        # Ray's workers, and with them Triton, would otherwise be the least favoured processes of the machine.
        "RAY_worker_niceness": "0",
        # Ray's name for a cluster of this machine alone, most of whose ports are then on the loopback interface.
        "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
    }
    log = folder / "head.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            env=environment,
            cwd=project.root,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    head = Head(
        mark=mark,
        pid=process.pid,
        started=psutil.Process(process.pid).create_time(),
        port=spec.ray.port,
        dashboard=f"http://127.0.0.1:{spec.ray.dashboard_port}",
        url=spec.url,
        token=token,
    )
    (folder / _STATE).write_text(json.dumps(asdict(head)))
    give_up = time.monotonic() + timeout
    with ended_on_failure(head):
        while not is_ready(head):
            if process.poll() is not None or time.monotonic() > give_up:
                words = log.read_text(errors="replace").strip().splitlines()[-5:]
                raise ClusterError("Ray did not start; it says:\n  " + "\n  ".join(words))
            time.sleep(_POLL_S)
    return head


@contextmanager
def ended_on_failure(head: Head) -> Iterator[None]:
    """Ends the head node where the block fails or is interrupted: nobody wants to clean up after that. Logs stay."""
    try:
        yield
    except BaseException:
        # A second Ctrl-C must not leave half of it running.
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        stop_head(head)
        raise


def _fresh_home(project: Project) -> Path:
    """The project's folder without what an earlier head node left in it."""
    folder = home(project)
    for left in folder.iterdir():
        if left.is_dir() and not left.is_symlink():
            shutil.rmtree(left)
        else:
            left.unlink()
    (folder / _TMP).mkdir()
    return folder


def logs(project: Project) -> Path:
    """Where Ray's logs are, and Triton's among them."""
    return home(project) / _RAY / "session_latest" / "logs"


def _check_owner(folder: Path) -> None:
    """ClusterError where anybody else could have written what is in the folder."""
    if folder.is_symlink() or folder.stat().st_uid != os.getuid() or folder.stat().st_mode & 0o077:
        raise ClusterError(f"{folder} is not only yours; remove it")


def _free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    try:
        return [listener.getsockname()[1] for listener in sockets]
    finally:
        for listener in sockets:
            listener.close()


def stop_head(head: Head, grace: float = STOP_GRACE_S) -> list[str]:
    """End the head node and all its descendants; answer the names of those that had to be killed."""
    with contextlib.suppress(psutil.NoSuchProcess):
        if head.is_running():
            psutil.Process(head.pid).terminate()
    _, alive = psutil.wait_procs(processes(head), timeout=grace)
    killed = []
    # A process that is dying may still have started another, so look until nobody is left.
    while left := processes(head):
        for process in left:
            try:
                killed.append(process.name())
                process.kill()
            except psutil.NoSuchProcess:
                continue
        psutil.wait_procs(left, timeout=5)
    return killed if alive else []
