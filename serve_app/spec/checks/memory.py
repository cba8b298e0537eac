"""Whether models and their tensors fit into the memory that a profile says there is; nothing is said where it is not.

Every sum is of what is stated and of what must be held at least, so that what is refused cannot work.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from math import prod

from serve_app.spec.checks.registry import of_each_profile
from serve_app.spec.checks.tensors import known_tensors
from serve_app.spec.findings import Faults, error, warning
from serve_app.spec.model import PYTHON, Input, Instances, Output
from serve_app.spec.part import UNKNOWN
from serve_app.spec.profile import Profile
from serve_app.spec.resolved import Resolved
from serve_app.spec.schema import ProfileName, Spec
from serve_app.spec.units import show_size

# The shared memory that the python backend takes for an instance before any request comes.
REGION = 2**20

DEVICE_MEMORY = error(
    "T421", "Models that do not fit on a GPU", "loading the last of them fails for want of memory",
    "run fewer instances, spread them over GPUs, or correct memory or device_memory",
)  # fmt: skip
HOST_MEMORY = warning(
    "T422", "Models that hold more memory than the server asks of Ray",
    "Ray gives the rest to others, and the machine runs out of memory",
    "raise the profile's triton.memory, or run fewer instances",
)  # fmt: skip
SHARED_MEMORY = error(
    "T423", "Tensors that do not fit into shared memory", "requests fail, or models are killed, once batches are full",
    "give /dev/shm more and correct shared_memory, make batches smaller, or run fewer instances",
)  # fmt: skip


def _models(spec: Spec, profile: ProfileName) -> Iterator[Resolved]:
    return (Resolved(spec, name, profile) for name, model in spec.models.items() if model is not UNKNOWN)


def _active(groups: Iterable[Instances]) -> Iterator[Instances]:
    return (group for group in groups if group is not UNKNOWN and not group.passive)


@of_each_profile
def device_memory(spec: Spec, name: ProfileName, profile: Profile) -> Faults:
    size = profile.triton.device_memory
    if size is None or profile.device == "cpu":
        return
    for gpu in range(math.ceil(profile.triton.gpus)):
        held = {found.name: _on_gpu(found, gpu) for found in _models(spec, name) if _on_gpu(found, gpu)}
        if sum(held.values()) > size:
            yield DEVICE_MEMORY.at(
                ("profiles", name, "triton", "device_memory"),
                f"on GPU {gpu} {_sum(held)} want {show_size(sum(held.values()))}, more than {show_size(size)}",
            )


def _on_gpu(found: Resolved, gpu: int) -> int:
    """What the instances on a GPU hold. A group that names no GPU has its count on each."""
    if found.model.memory is None:
        return 0
    groups = [group for group in _active(found.instances) if group.kind in ("gpu", "auto")]
    return found.model.memory * sum(max(1, group.count) for group in groups if not group.gpus or gpu in group.gpus)


@of_each_profile
def host_memory(spec: Spec, name: ProfileName, profile: Profile) -> Faults:
    held = {found.name: _on_host(found) for found in _models(spec, name) if _on_host(found)}
    if sum(held.values()) > profile.triton.memory:
        yield HOST_MEMORY.at(
            ("profiles", name, "triton", "memory"),
            f"{_sum(held)} want {show_size(sum(held.values()))}, more than {show_size(profile.triton.memory)}",
        )


def _on_host(found: Resolved) -> int:
    kinds = ("cpu", "auto") if found.spec.profiles[found.profile].device == "cpu" else ("cpu",)
    groups = [group for group in _active(found.instances) if group.kind in kinds]
    return (found.model.memory or 0) * sum(max(1, group.count) for group in groups)


@of_each_profile
def shared_memory(spec: Spec, name: ProfileName, profile: Profile) -> Faults:
    size = profile.triton.shared_memory
    if size is None:
        return
    held = {found.name: _in_shared_memory(found) for found in _models(spec, name) if found.backend == PYTHON}
    if spec.ray is not UNKNOWN and spec.ray.object_store is not UNKNOWN:
        held["Ray's object store"] = spec.ray.object_store
    if sum(held.values()) > size:
        yield SHARED_MEMORY.at(
            ("profiles", name, "triton", "shared_memory"),
            f"{_sum(held)} want {show_size(sum(held.values()))}, more than {show_size(size)}",
        )


def _in_shared_memory(found: Resolved) -> int:
    """What the python backend keeps for a model's instances once each has run a full batch.

    Each has a region of its own, which holds the inputs and outputs of the batch in work at once and never shrinks;
    requests that wait are not in it. Measured on Triton 2.51: 9 MiB after 4 requests of 1 MiB in and 1 MiB out.
    """
    item = sum(_bytes(entry) for _, _, entry in known_tensors(found.model))
    return found.instance_count * (REGION + max(1, found.max_batch) * item)


def _bytes(entry: Input | Output) -> int:
    """The most that one item of a tensor takes; 0 where that is not known."""
    dims = entry.largest if isinstance(entry, Input) and entry.largest is not None else entry.tensor.dims
    return 0 if -1 in dims else prod(dims) * (entry.tensor.width or 0)


def _sum(held: dict[str, int]) -> str:
    return " + ".join(f"{name} {show_size(size)}" for name, size in held.items())
