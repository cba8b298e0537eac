"""What must hold on a machine before anything is started, each said in one sentence."""

from __future__ import annotations

import os
import platform
import shutil
import socket
from collections.abc import Iterator
from pathlib import Path

import psutil

from serve_app.cluster.error import ClusterError
from serve_app.spec import ProfileName, Spec

# What Ray's own daemons and idle workers hold, measured on Ray 2.60: gcs_server, raylet, dashboard and its agents.
RAY_MEMORY = 2**30
# What Triton's python backend sets aside for each model at first; it grows with the tensors.
MODEL_SHARED_MEMORY = 2**20
_CGROUP = Path("/sys/fs/cgroup")


def check_machine(spec: Spec, profile: ProfileName) -> None:
    """ClusterError listing all that is in the way."""
    if problems := [*_platform(), *_memory(spec, profile), *_shared_memory(spec), *_ports(spec)]:
        raise ClusterError("\n".join(problems))


def _platform() -> Iterator[str]:
    if (platform.system(), platform.machine()) != ("Linux", "x86_64"):
        yield f"Tandem runs on Linux x86-64, this is {platform.system()} {platform.machine()}; use such a machine."


def _memory(spec: Spec, profile: ProfileName) -> Iterator[str]:
    parts = [spec.ingress, *(stage.replicas for stage in spec.stages.values() if stage.replicas)]
    needed = spec.profiles[profile].triton.memory + RAY_MEMORY + spec.ray.object_store
    needed += sum(part.memory * part.at_first for part in parts)
    available = available_memory()
    if available < needed:
        yield (
            f"{available / 2**30:.1f} GiB of memory are free and the spec asks for {needed / 2**30:.1f} GiB; "
            "free some, or lower `memory` in the spec."
        )


def _shared_memory(spec: Spec) -> Iterator[str]:
    needed = spec.ray.object_store + len(spec.models) * MODEL_SHARED_MEMORY
    free = shutil.disk_usage("/dev/shm").free
    if free < needed:
        yield (
            f"{free / 2**20:.0f} MiB of /dev/shm are free and {needed / 2**20:.0f} MiB are needed; enlarge it (a "
            "container's is set by --shm-size), or lower `ray.object_store` in the spec."
        )


def available_memory() -> int:
    """Bytes that this process may still use: the machine's, or what its control group (version 2) leaves of them."""
    available = psutil.virtual_memory().available
    limit, used = (_CGROUP / name for name in ("memory.max", "memory.current"))
    if limit.is_file() and (most := limit.read_text().strip()) != "max":
        statistics = dict(line.split() for line in (_CGROUP / "memory.stat").read_text().splitlines())
        # The kernel gives up files that it only keeps at hand.
        available = min(available, int(most) - int(used.read_text()) + int(statistics["inactive_file"]))
    return available


def _ports(spec: Spec) -> Iterator[str]:
    wanted = [
        (spec.service.host, spec.service.port, "service.port"),
        (spec.service.host, spec.service.grpc.port, "service.grpc.port"),
        ("127.0.0.1", spec.ray.port, "ray.port"),
        ("127.0.0.1", spec.ray.dashboard_port, "ray.dashboard_port"),
    ]
    for host, port, key in wanted:
        try:
            family = socket.AF_INET6 if ":" in host else socket.AF_INET
            socket.create_server((host, port), family=family).close()
        except OSError as error:
            reason = os.strerror(error.errno or 0)
            yield f"port {port} on {host} cannot be had ({reason}); end its user, or change {key} in the spec."
