"""Profiles: the Triton of each, and what of the machine it may use."""

from __future__ import annotations

from serve_app.spec.checks.registry import of_each_profile
from serve_app.spec.findings import Faults, error
from serve_app.spec.profile import Profile
from serve_app.spec.schema import Spec

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


@of_each_profile
def pinned(spec: Spec, name: str, profile: Profile) -> Faults:
    if (profile.triton.requirement is None) != (profile.triton.sha256 is None):
        given = "requirement" if profile.triton.sha256 is None else "sha256"
        yield PINNED.at(("profiles", name, "triton", given), f"only {given} is given")


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
