"""What a deployment holds of its machine, by what it holds it for, and what of it one look has and another had not."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import psutil

from serve_app.cluster.head import Head, processes
from serve_app.project import Project

TRITON, GUARD, MODEL, CONTROLLER, RAYLET, REST = "tritonserver", "guard", "model", "controller", "raylet", "others"
# Ray and the models' processes open and close files as they please; what grows with each request or fault is more.
MORE_DESCRIPTORS = 32
MORE_MEMORY = 256 * 2**20
# Of which there is one, or one for each instance of a model, whatever the load.
_COUNTED = (TRITON, GUARD, MODEL, CONTROLLER, RAYLET)
_REPLICA = re.compile(r"ray::ServeReplica:[^:]+:([^.:\s]+)")
_SEGMENT = re.compile(r"tandem-triton-\d+-(\d+)-")
_SHARED_MEMORY = Path("/dev/shm")


@dataclass(frozen=True)
class Traces:
    """Processes, open descriptors, listening ports and bytes of memory (Pss) by role, and the segments of each guard.

    A role is a deployment's name, or one of the constants above. `segments`: how many there are by their guard's
    process id; those of `dead` ones are nobody's.
    """

    processes: Mapping[str, int]
    descriptors: Mapping[str, int]
    ports: Mapping[str, int]
    memory: Mapping[str, int]
    segments: Mapping[int, int]
    dead: frozenset[int]


def role_of(name: str, command: str) -> str:
    """What a process of a deployment is for, by its name and its command line."""
    if name == "tritonserver":
        return TRITON
    if found := _REPLICA.search(command):
        return found[1]
    signs = {"guard.py": GUARD, "triton_python_backend_stub": MODEL, "ray::ServeController": CONTROLLER}
    return next((role for sign, role in signs.items() if sign in command), RAYLET if name == "raylet" else REST)


def by_role(head: Head) -> Iterator[tuple[str, psutil.Process]]:
    """Every living process of the deployment with its role."""
    for process in processes(head):
        try:
            yield role_of(process.name(), " ".join(process.cmdline())), process
        except psutil.NoSuchProcess:
            continue


def look(head: Head) -> Traces:
    """What the deployment holds now."""
    counts, descriptors, ports, memory = Counter[str](), Counter[str](), Counter[str](), Counter[str]()
    for role, process in by_role(head):
        try:
            opened, used = process.num_fds(), int(process.memory_full_info().pss)
            listening = [each for each in process.net_connections("tcp") if each.status == psutil.CONN_LISTEN]
        except (psutil.NoSuchProcess, psutil.AccessDenied):  # it is ending
            continue
        counts[role] += 1
        descriptors[role] += opened
        memory[role] += used
        ports[role] += len(listening)
    segments = Counter(int(found[1]) for entry in _SHARED_MEMORY.iterdir() if (found := _SEGMENT.match(entry.name)))
    dead = frozenset(owner for owner in segments if not psutil.pid_exists(owner))
    return Traces(dict(counts), dict(descriptors), dict(ports), dict(memory), dict(segments), dead)


def left(before: Traces, after: Traces, *, memory: int = MORE_MEMORY) -> list[str]:
    """What is there that was not, one phrase each; of memory, more than so many bytes more in a role.

    Deployments may have more replicas than before: they scale.
    """
    found = []
    for role in _COUNTED:
        count = after.processes.get(role, 0)
        if count != before.processes.get(role, 0):
            found.append(f"{count} processes of {role} instead of {before.processes.get(role, 0)}")
    for role, count in after.processes.items():
        if role == REST:  # Ray's idle workers come and go
            continue
        had = max(1, before.processes.get(role, 0))
        share = max(1, count) / had  # of what replicas hold, for which there are more of them
        more = after.descriptors[role] - round(before.descriptors.get(role, 0) * max(1.0, share))
        if more > MORE_DESCRIPTORS * count:
            found.append(f"{more} descriptors more in {role}")
        grown = after.memory[role] - round(before.memory.get(role, 0) * max(1.0, share))
        if grown > memory:
            found.append(f"{grown / 2**20:.0f} MiB more in {role}")
        listening = after.ports[role] - round(before.ports.get(role, 0) * max(1.0, share))
        if listening > 0:
            found.append(f"{listening} ports more in {role}")
    if orphans := after.dead - before.dead:
        found.append(f"shared memory of {len(orphans)} servers that are gone")
    more_segments = sum(after.segments.values()) - sum(before.segments.values())
    if more_segments > 0 and not orphans:
        found.append(f"{more_segments} segments of shared memory more")
    return found


def left_by_ended(head: Head, project: Project, before: Traces) -> list[str]:
    """The same after `tandem down`, of which nothing may be left."""
    rest = [f"process {process.pid}" for process in processes(head)]
    owners = look(head).dead - before.dead
    spec = project.spec()
    wanted = {spec.service.port, spec.service.grpc.port, spec.ray.port, spec.ray.dashboard_port}
    listening = [each.laddr for each in psutil.net_connections("tcp") if each.status == psutil.CONN_LISTEN]
    taken = {address[1] for address in listening if address} & wanted
    return [
        *rest,
        *(f"shared memory of server {owner}" for owner in sorted(owners)),
        *(f"port {port}" for port in sorted(taken)),
    ]
