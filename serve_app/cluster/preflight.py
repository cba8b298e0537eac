"""What must hold on a machine before anything is started, each said in one sentence."""

from __future__ import annotations

import os
import platform
import socket
from collections.abc import Iterator

import psutil

from serve_app.cluster.error import ClusterError
from serve_app.spec import ProfileName, Spec

# What Ray's own daemons and idle workers hold, measured on Ray 2.60: gcs_server, raylet, dashboard and its agents.
RAY_MEMORY = 2**30


def check_machine(spec: Spec, profile: ProfileName) -> None:
    """ClusterError listing all that is in the way."""
    if problems := [*_platform(), *_memory(spec, profile), *_ports(spec)]:
        raise ClusterError("\n".join(problems))


def _platform() -> Iterator[str]:
    if (platform.system(), platform.machine()) != ("Linux", "x86_64"):
        yield f"Tandem runs on Linux x86-64, this is {platform.system()} {platform.machine()}; use such a machine."


def _memory(spec: Spec, profile: ProfileName) -> Iterator[str]:
    parts = [spec.ingress, *(stage.replicas for stage in spec.stages.values() if stage.replicas)]
    needed = spec.profiles[profile].triton.memory + RAY_MEMORY + sum(part.memory for part in parts)
    available = psutil.virtual_memory().available
    if available < needed:
        yield (
            f"{available / 2**30:.1f} GiB of memory are free and the spec asks for {needed / 2**30:.1f} GiB; "
            "free some, or lower `memory` in the spec."
        )


def _ports(spec: Spec) -> Iterator[str]:
    wanted = [
        (spec.service.host, spec.service.port, "service.port"),
        ("127.0.0.1", spec.ray.port, "ray.port"),
        ("127.0.0.1", spec.ray.dashboard_port, "ray.dashboard_port"),
    ]
    for host, port, key in wanted:
        try:
            socket.create_server((host, port)).close()
        except OSError as error:
            reason = os.strerror(error.errno or 0)
            yield f"port {port} on {host} cannot be had ({reason}); end its user, or change {key} in the spec."
