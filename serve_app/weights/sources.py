"""Where each model's file comes from, as the spec says."""

from __future__ import annotations

from pathlib import Path

from serve_app.spec import Spec
from serve_app.weights.prepare import LocalFile, PackageFile, Source


def sources(root: Path, spec: Spec) -> list[Source]:
    """The sources of the models that have weights; files of the user's lie in the project's folder `root`."""
    found = []
    for name, model in spec.models.items():
        weights = model.weights
        if weights is None:
            continue
        file: PackageFile | LocalFile | None = None
        if weights.file is not None and weights.sha256 is not None:
            if weights.package is None:
                file = LocalFile(root / weights.file, weights.sha256)
            else:
                file = PackageFile(weights.package, weights.sha256, weights.file, weights.kind)
        found.append(Source(name, weights.prepare, file))
    return found
