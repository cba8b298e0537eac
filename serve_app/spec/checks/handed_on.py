"""Texts that Triton and its python backend hand on as they are: to a shell, to a file system, to a command line.

Shown on Triton 2.51. What the python backend starts is one line for `bash -c`: it holds the names of the model and of
the instance, the path of the model's file, and the folder of its environment.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from serve_app.spec.checks.registry import of_each_model, of_each_model_in_each_profile, of_each_profile
from serve_app.spec.findings import Faults, Place, error
from serve_app.spec.model import PYTHON, Instances, Model, Resource
from serve_app.spec.part import UNKNOWN
from serve_app.spec.profile import Profile
from serve_app.spec.resolved import Resolved
from serve_app.spec.schema import Spec

GROUP_WORD = error(
    "T141", "A name of an instance group or of a host policy that is no word for a shell",
    "Triton's python backend hands a group's name to a shell, which runs what is in it, and loading fails or hangs",
    "write letters, digits, dots, hyphens and underscores",
)  # fmt: skip
PYTHON_FILE_NAME = error(
    "T142", "A python model's file whose name is none of a module",
    "Triton's python backend hands it to a shell and then imports it, so that loading hangs or fails",
    "write letters, digits, hyphens and underscores, and .py, as model.py or sub/model.py",
)  # fmt: skip
FILE_NAME = error(
    "T143", "A name of a file that leads to no file in its folder",
    "Triton refuses to load the model, reads another file, or ends with all other models where it is a folder",
    "write the file's name, as data.bin, without a / first and without . and ..",
)  # fmt: skip
ENVIRONMENT = error(
    "T144", "A path of a Python environment that is no word for a shell",
    "Triton's python backend hands it to a shell, which runs what is in it, and loading fails or hangs",
    "write letters, digits and . _ - + / in it",
)  # fmt: skip
RESOURCE_NAME = error(
    "T417", "A resource whose name cannot be told to the server",
    "the server takes what stands behind a colon for the count, and does not start",
    "write letters, digits, dots, hyphens and underscores",
)  # fmt: skip

_WORD = re.compile(r"[A-Za-z0-9._-]+")
# Dots would part packages. A name of digits alone may be that of its version, which the backend imports it from.
_MODULE = re.compile(r"([A-Za-z0-9_-]+/)*(?![0-9]+\.)[A-Za-z0-9_-]+\.py")
_PATH = re.compile(r"(\$\$TRITON_MODEL_DIRECTORY/)?[A-Za-z0-9_@%+=:,./-]*")
_ENVIRONMENT = "EXECUTION_ENV_PATH"


def _groups(found: Resolved) -> Iterator[tuple[Place, Instances]]:
    for index, group in enumerate(found.instances):
        if group is not UNKNOWN:
            yield (*found.place("instances"), index), group


@of_each_model_in_each_profile
def groups(found: Resolved) -> Faults:
    for place, group in _groups(found):
        if group.name is not None and _WORD.fullmatch(group.name) is None:
            yield GROUP_WORD.at((*place, "name"), f"{group.name!r} is no name of a group")
        if group.host_policy is not None and _WORD.fullmatch(group.host_policy) is None:
            yield GROUP_WORD.at(
                (*place, "host_policy"),
                f"{group.host_policy!r} is no name of a host policy",
                consequence="no server can be started with one of that name",
            )


@of_each_model_in_each_profile
def model_file(found: Resolved) -> Faults:
    name = found.model.file if found.override.file is None else found.override.file
    if name is None or found.is_onnx:
        return
    if found.backend == PYTHON:
        if _MODULE.fullmatch(name) is None:
            yield PYTHON_FILE_NAME.at(found.place("file"), f"{name!r} is no file's name that it can import")
    elif not _within(name):
        yield FILE_NAME.at(found.place("file"), f"{name!r} is no file in the version's folder")


@of_each_model
def label_files(spec: Spec, name: str, model: Model) -> Faults:
    for key, entry in model.outputs.items():
        if entry is not UNKNOWN and entry.labels is not None and not _within(entry.labels):
            yield FILE_NAME.at(
                ("models", name, "outputs", key, "labels"), f"{entry.labels!r} is no file in the model's folder"
            )


@of_each_model
def warmup_files(spec: Spec, name: str, model: Model) -> Faults:
    for index, entry in enumerate(model.warmup):
        if entry is UNKNOWN or entry.inputs is UNKNOWN:
            continue
        for key, given in entry.inputs.items():
            if given is not UNKNOWN and given.file is not None and not _within(given.file):
                place = ("models", name, "warmup", index, "inputs", key, "file")
                yield FILE_NAME.at(place, f"{given.file!r} is no file in the folder warmup")


@of_each_model
def initial_files(spec: Spec, name: str, model: Model) -> Faults:
    for index, state in enumerate(model.sequence.states if model.sequence is not None else []):
        if state is UNKNOWN or state.initial is UNKNOWN:
            continue
        for number, initial in enumerate(state.initial):
            if initial is not UNKNOWN and initial.file is not None and not _within(initial.file):
                place = ("models", name, "sequence", "states", index, "initial", number, "file")
                yield FILE_NAME.at(place, f"{initial.file!r} is no file in the folder initial_state")


def _within(name: str) -> bool:
    """Whether a path leads to something in the folder that it begins in, by its words alone."""
    return name.isprintable() and not {"", ".", ".."} & set(name.split("/"))


@of_each_model_in_each_profile
def environments(found: Resolved) -> Faults:
    path = found.model.parameters.get(_ENVIRONMENT)
    if found.backend == PYTHON and path is not None and _PATH.fullmatch(path) is None:
        yield ENVIRONMENT.at(("models", found.name, "parameters", _ENVIRONMENT), f"{path!r} is no word for a shell")


@of_each_profile
def stocks(spec: Spec, name: str, profile: Profile) -> Faults:
    yield from _resources(("profiles", name, "triton", "resources"), profile.triton.resources)


@of_each_model_in_each_profile
def wanted(found: Resolved) -> Faults:
    for place, group in _groups(found):
        if group.rate_limiter is not None:
            yield from _resources((*place, "rate_limiter", "resources"), group.rate_limiter.resources)


def _resources(place: Place, resources: Mapping[str, Resource]) -> Faults:
    for resource in resources:
        if _WORD.fullmatch(resource) is None:
            yield RESOURCE_NAME.at((*place, resource), f"{resource!r} is no name of a resource")
