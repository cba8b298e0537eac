"""Instance groups: their kinds and GPUs, against what the profile gives them."""

from __future__ import annotations

import math
from collections.abc import Iterator

from serve_app.spec.checks.registry import of_each_model_in_each_profile
from serve_app.spec.checks.tensors import TENSORRT
from serve_app.spec.findings import Faults, Place, error, warning
from serve_app.spec.model import Instances
from serve_app.spec.part import UNKNOWN
from serve_app.spec.resolved import Resolved

GPU_KIND = error(
    "T180", "Instances for a GPU in a profile without one", "Triton refuses to load the model",
    "write kind: cpu, or nothing, in this profile's override",
)  # fmt: skip
GPUS_WITHOUT_KIND = error(
    "T181", "GPUs named for instances that do not run on one", "Triton refuses to load the model",
    "write kind: gpu, or remove gpus",
)  # fmt: skip
PROFILES = error(
    "T182", "Optimisation profiles for a backend other than TensorRT", "Triton refuses to load the model",
    "remove them, or run the model in the tensorrt backend",
)  # fmt: skip
NO_SUCH_GPU = error(
    "T183", "A GPU that the server does not get", "Triton refuses to load the model",
    "number them from 0 as the server sees them, or ask for more with the profile's triton.gpus",
)  # fmt: skip
GPU_TWICE = warning(
    "T184",
    "A GPU that a group names twice",
    "it gets twice the instances",
    "name it once, and write count",
)
COUNT = error(
    "T185", "A count of instances below one", "Triton takes it for 1 without a word", "write 1 and more, or no group"
)
GROUP_NAME = warning(
    "T186", "Two instance groups with the same name", "logs and metrics cannot tell their instances apart",
    "name them apart, or not at all",
)  # fmt: skip
ALL_PASSIVE = error(
    "T187", "A model all of whose instances are passive", "the first request ends the server", "leave one group active"
)
NOT_READ = warning(
    "T188", "A setting of instances that nothing reads", "it has no effect", "remove it"
)  # fmt: skip


def _groups(found: Resolved) -> Iterator[tuple[Place, Instances]]:
    given = found.override.instances or found.model.instances
    if not given:
        return
    for index, group in enumerate(found.instances):
        if group is not UNKNOWN:
            yield (*found.place("instances"), index), group


@of_each_model_in_each_profile
def kinds(found: Resolved) -> Faults:
    device = found.spec.profiles[found.profile].device
    for place, group in _groups(found):
        if group.kind == "gpu" and device == "cpu":
            yield GPU_KIND.at((*place, "kind"), f"kind is gpu, and the device of {found.profile} cpu")
        if group.gpus and (group.kind in ("cpu", "model") or (group.kind == "auto" and device == "cpu")):
            yield GPUS_WITHOUT_KIND.at((*place, "gpus"), f"gpus is {group.gpus}, and kind {group.kind}")


@of_each_model_in_each_profile
def gpus(found: Resolved) -> Faults:
    asked = found.spec.profiles[found.profile].triton.gpus
    for place, group in _groups(found):
        if group.kind not in ("gpu", "auto"):
            continue
        for gpu in sorted({gpu for gpu in group.gpus if gpu >= math.ceil(asked)}):
            if asked > 0:
                yield NO_SUCH_GPU.at((*place, "gpus"), f"GPU {gpu} is wanted, and {found.profile} asks for {asked:g}")
        for gpu in sorted({gpu for gpu in group.gpus if group.gpus.count(gpu) > 1}):
            yield GPU_TWICE.at((*place, "gpus"), f"GPU {gpu} is named {group.gpus.count(gpu)} times")


@of_each_model_in_each_profile
def counts(found: Resolved) -> Faults:
    for place, group in _groups(found):
        if group.count < 1:
            yield COUNT.at((*place, "count"), f"count is {group.count}")


@of_each_model_in_each_profile
def names(found: Resolved) -> Faults:
    seen = set()
    for place, group in _groups(found):
        if group.name is not None and group.name in seen:
            yield GROUP_NAME.at((*place, "name"), f"another group is called {group.name!r} too")
        seen.add(group.name)


@of_each_model_in_each_profile
def all_passive(found: Resolved) -> Faults:
    if all(group.passive for group in found.instances):
        yield ALL_PASSIVE.at(found.place("instances"), f"no group of {found.name} is active")


@of_each_model_in_each_profile
def outside_tensorrt(found: Resolved) -> Faults:
    if found.backend == TENSORRT:
        return
    for place, group in _groups(found):
        if group.profiles:
            yield PROFILES.at((*place, "profiles"), f"the backend is {found.backend} in {found.profile}")
        if group.nvdla:
            yield NOT_READ.at((*place, "nvdla"), f"the {found.backend} backend knows no NVDLA cores")


@of_each_model_in_each_profile
def host_policies(found: Resolved) -> Faults:
    for place, group in _groups(found):
        if group.host_policy is not None:
            yield NOT_READ.at(
                (*place, "host_policy"), f"the server is started without a host policy {group.host_policy!r}"
            )
