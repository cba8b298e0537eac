"""What a profile needs before it can start: prepared weights, and the embedded Triton."""

from __future__ import annotations

import os
import re
from pathlib import Path

from serve_app.project import Project
from serve_app.render.triton import ONNX_FILE
from serve_app.spec import ProfileName, Spec
from serve_app.triton.error import TritonError
from serve_app.triton.find import Installation, find, is_on_path
from serve_app.weights.agreement import disagreements
from serve_app.weights.archive import unpack_wheel
from serve_app.weights.errors import Progress, WeightsError
from serve_app.weights.fetch import MIRROR_VARIABLE, cache_directory, fetch
from serve_app.weights.prepare import LocalFile, PackageFile, Source, prepare


def mirror_directory() -> Path | None:
    """The directory that TANDEM_WEIGHTS_DIR names, for machines without network."""
    named = os.environ.get(MIRROR_VARIABLE)
    return Path(named) if named else None


def prepare_all(project: Project, spec: Spec, profile: ProfileName, progress: Progress) -> Installation:
    """Bring every model's weights into the model repository, and find or fetch Triton. WeightsError, TritonError."""
    cache, mirror = cache_directory(), mirror_directory()
    made = prepare(sources(project, spec), project.repository, cache=cache, mirror=mirror, progress=progress)
    progress(f"weights: prepared {', '.join(made)}" if made else "weights: all prepared before")
    _check_agreement(project, spec)
    triton = spec.profiles[profile].triton
    unpacked = None
    if triton.requirement is not None and triton.sha256 is not None and not is_on_path():
        unpacked = cache / "triton" / triton.sha256
        if not unpacked.is_dir():
            wheel = fetch(triton.requirement, triton.sha256, "wheel", cache=cache, mirror=mirror, progress=progress)
            unpack_wheel(wheel, unpacked, progress)
    installation = find(unpacked)
    check_version(installation, triton.version)
    progress(f"Triton: {installation.version or 'unknown version'} from {installation.source}")
    return installation


def _check_agreement(project: Project, spec: Spec) -> None:
    """WeightsError where a prepared model is not what the spec says it is."""
    wrong = []
    for name, model in spec.models.items():
        if model.backend == "onnx":
            inputs = {key: entry.tensor for key, entry in model.inputs.items()}
            outputs = {key: entry.tensor for key, entry in model.outputs.items()}
            for reason in disagreements(project.repository / name / "1" / ONNX_FILE, inputs, outputs):
                wrong.append(f"model {name}: {reason}; correct the spec, or the recipe that prepares the model.")
    if wrong:
        raise WeightsError("\n".join(wrong))


def check_version(installation: Installation, oldest: str) -> None:
    """TritonError where the server is older than the profile says it may be. One that does not tell is taken."""
    found = installation.version
    if found is not None and _numbers(found) < _numbers(oldest):
        raise TritonError(
            f"{installation.binary} is Triton {found}, and the spec's profile needs {oldest} or newer: use a newer "
            "one, or take it off PATH."
        )


def _numbers(version: str) -> list[int]:
    return [int(part) for part in re.findall(r"\d+", version)[:3]]


def sources(project: Project, spec: Spec) -> list[Source]:
    """Where each model's file comes from, as the spec says."""
    found = []
    for name, model in spec.models.items():
        weights = model.weights
        if weights is None:
            continue
        file: PackageFile | LocalFile | None = None
        if weights.file is not None and weights.sha256 is not None:
            if weights.package is None:
                file = LocalFile(project.root / weights.file, weights.sha256)
            else:
                file = PackageFile(weights.package, weights.sha256, weights.file, weights.kind)
        found.append(Source(name, weights.prepare, file))
    return found
