"""A model repository for one check: what the spec renders to, and links to the project's own files."""

from __future__ import annotations

from pathlib import Path

from serve_app.project import Project
from serve_app.render import render_repository
from serve_app.spec import Spec


def write_repository(folder: Path, project: Project, spec: Spec) -> None:
    """Make in `folder` the repository that `tandem render` would leave, in the primary profile's configuration.

    Version folders are made anew, so that what Python compiles stays out of the project's.
    """
    for name in [*spec.models, *spec.ensembles]:
        (folder / name).mkdir()
        for entry in _entries(project.repository / name):
            if entry.is_dir() and entry.name.isdecimal():
                (folder / name / entry.name).mkdir()
                for file in _entries(entry):
                    (folder / name / entry.name / file.name).symlink_to(file)
            else:
                (folder / name / entry.name).symlink_to(entry)
    for path, text in render_repository(spec).items():
        file = folder / path
        file.parent.mkdir(exist_ok=True)
        file.unlink(missing_ok=True)
        file.write_text(text, encoding="utf-8")


def _entries(folder: Path) -> list[Path]:
    hidden = {"__pycache__", "configs", "config.pbtxt"}
    return sorted(entry for entry in folder.iterdir() if entry.name not in hidden) if folder.is_dir() else []
