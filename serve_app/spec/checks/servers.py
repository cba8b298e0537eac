"""Profiles: the Triton of each, and what of the machine it may use."""

from __future__ import annotations

import re

from serve_app.spec.checks.registry import of_each_model_in_each_profile, of_each_profile
from serve_app.spec.findings import Faults, error, warning
from serve_app.spec.model import PYTHON
from serve_app.spec.profile import Profile
from serve_app.spec.resolved import Resolved
from serve_app.spec.schema import Spec
from serve_app.spec.spelling import closest
from serve_app.spec.units import show_duration
from serve_app.spec.versions import PYTRITON, SAFE_TRITON, older

PINNED = error(
    "T401", "A wheel without its SHA-256, or the other way round", "what is downloaded could be anything",
    "give requirement and sha256, or neither",
)  # fmt: skip
DEVICE = error(
    "T402", "A GPU profile without GPUs, or a CPU profile with some", "Triton refuses its models, or a GPU idles",
    "write gpus: 1 and more for device: gpu, none for device: cpu",
)  # fmt: skip
NO_ONNX = error(
    "T403", "ONNX Runtime asked of a server that has none", "no ONNX model loads", "use onnx: python in this profile"
)
NO_BACKEND = error(
    "T404", "A backend that the profile's server does not have", "Triton refuses to load the model",
    "choose a backend that it has, or a server that has this one",
)  # fmt: skip
MISSPELT_BACKEND = warning(
    "T440", "A backend whose name is nearly one of Triton's own", "Triton refuses to load the model where it has no "
    "backend of that name",
    "correct it, or name it among all that the server has in triton.backends of the profile",
)  # fmt: skip
UNKNOWN_BACKEND = warning(
    "T441", "A backend that is none of Triton's own", "Triton refuses to load the model where it is not installed",
    "if it is, name it among all that the server has in triton.backends of the profile",
)  # fmt: skip
OLD_SERVER = error(
    "T406", "A Triton for GPUs with known holes",
    f"before {SAFE_TRITON} (container 25.08) a request from outside can crash it or run code in it",
    f"use the container 25.08 or newer, and write version: {SAFE_TRITON} or newer",
)  # fmt: skip
OTHER_WHEEL = error(
    "T407", "A wheel that carries another Triton than the profile names", "the server is refused before it starts, or "
    "lacks what the spec relies on",
    "write the version that the wheel carries",
)  # fmt: skip
SHORT_EXIT = warning(
    "T408", "An exit timeout shorter than an SLA", "requests still in time are cut off when the server is stopped, and "
    "Triton aborts",
    "make it longer than the longest SLA",
)  # fmt: skip
REQUIREMENT = error(
    "T412", "A wheel that is not pinned to a version", "it cannot be found", "write name==version"
)  # fmt: skip


# Those of https://github.com/triton-inference-server; the examples are of its `backend` and `core`.
_TRITONS_OWN = (
    PYTHON, "onnxruntime", "tensorrt", "tensorrtllm", "pytorch", "tensorflow", "openvino", "dali", "fil", "vllm",
    "identity", "repeat", "square", "stateful", "armnn_tflite", "paddle", "minimal", "recommended", "sequence",
    "dyna_sequence", "implicit_state", "distributed_addsub", "iterative_sequence", "query",
)  # fmt: skip


@of_each_profile
def pinned(spec: Spec, name: str, profile: Profile) -> Faults:
    if (profile.triton.requirement is None) != (profile.triton.sha256 is None):
        given = "requirement" if profile.triton.sha256 is None else "sha256"
        yield PINNED.at(("profiles", name, "triton", given), f"only {given} is given")


@of_each_profile
def requirement(spec: Spec, name: str, profile: Profile) -> Faults:
    given = profile.triton.requirement
    if given is not None and re.fullmatch(r"[A-Za-z0-9][\w.-]*==[\w.!+]+", given) is None:
        yield REQUIREMENT.at(("profiles", name, "triton", "requirement"), f"{given!r} names no version")


@of_each_profile
def device(spec: Spec, name: str, profile: Profile) -> Faults:
    if (profile.device == "gpu") != (profile.triton.gpus > 0):
        yield DEVICE.at(
            ("profiles", name, "triton", "gpus"), f"device is {profile.device} and gpus is {profile.triton.gpus:g}"
        )


@of_each_profile
def no_onnx(spec: Spec, name: str, profile: Profile) -> Faults:
    if profile.onnx == "onnxruntime" and profile.triton.requirement is not None:
        yield NO_ONNX.at(("profiles", name, "onnx"), "the server in the wheel has no ONNX Runtime backend")


@of_each_model_in_each_profile
def no_backend(found: Resolved) -> Faults:
    triton = found.spec.profiles[found.profile].triton
    has = [PYTHON] if triton.backends is None and triton.requirement is not None else triton.backends
    if has is None or found.backend in has:
        return
    which = f"the server of {found.profile} has {', '.join(has) or 'no backends'}, not {found.backend}"
    if not found.is_onnx:
        yield NO_BACKEND.at(found.place("backend"), which)
    elif triton.requirement is None:
        yield NO_BACKEND.at(("profiles", found.profile, "onnx"), which)


@of_each_model_in_each_profile
def own_backend(found: Resolved) -> Faults:
    triton = found.spec.profiles[found.profile].triton
    if triton.backends is not None or triton.requirement is not None or found.backend in _TRITONS_OWN:
        return
    what = f"{found.backend} is none of Triton's own backends"
    meant = closest(found.backend, _TRITONS_OWN)
    declare = f"name it among all that the server has in profiles.{found.profile}.triton.backends"
    if meant is None:
        yield UNKNOWN_BACKEND.at(found.place("backend"), what, remedy=f"if it is, {declare}")
    else:
        yield MISSPELT_BACKEND.at(found.place("backend"), what, remedy=f"did you mean {meant}? If not, {declare}")


@of_each_profile
def old_server(spec: Spec, name: str, profile: Profile) -> Faults:
    if profile.device == "gpu" and older(profile.triton.version, SAFE_TRITON):
        yield OLD_SERVER.at(("profiles", name, "triton", "version"), f"Triton {profile.triton.version} is allowed")


@of_each_profile
def other_wheel(spec: Spec, name: str, profile: Profile) -> Faults:
    package, _, version = (profile.triton.requirement or "").partition("==")
    carried = PYTRITON.get(version) if re.sub(r"[-_.]+", "-", package).lower() == "nvidia-pytriton" else None
    if carried is not None and carried != profile.triton.version:
        yield OTHER_WHEEL.at(
            ("profiles", name, "triton", "version"),
            f"{profile.triton.requirement} carries Triton {carried}, not {profile.triton.version}",
            remedy=f"write {carried}",
        )


@of_each_profile
def short_exit(spec: Spec, name: str, profile: Profile) -> Faults:
    if profile.triton.exit_timeout < spec.longest_sla:
        timeout, sla = show_duration(profile.triton.exit_timeout), show_duration(spec.longest_sla)
        yield SHORT_EXIT.at(
            ("profiles", name, "triton", "exit_timeout"), f"it is {timeout}, and a request may take {sla}"
        )
