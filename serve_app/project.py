"""A project's files: the spec, what is generated from it, and the model repository."""

from __future__ import annotations

import difflib
import glob
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePath

from serve_app.files import opened, read_file, write_whole
from serve_app.render import GENERATED, MODEL_REPOSITORY, SERVE_CONFIG, SPEC_FILE, render
from serve_app.render.triton import model_config
from serve_app.spec import Spec, load_spec
from serve_app.spec.model import PYTHON

_LARGEST = 2**26


class ProjectError(Exception):
    """A project whose files cannot be used; says what to do."""


@dataclass(frozen=True)
class Project:
    """The folder that holds cluster/spec.yaml, serve_config.yaml and model_repository/."""

    root: Path

    @property
    def spec_file(self) -> Path:
        return self.root / SPEC_FILE

    @property
    def repository(self) -> Path:
        return self.root / MODEL_REPOSITORY

    @property
    def serve_config(self) -> Path:
        return self.root / SERVE_CONFIG

    def spec(self) -> Spec:
        return load_spec(self.spec_file)


def find_project(given: Path | None = None) -> Project:
    """The project in `given`, else in $TANDEM_PROJECT, the current folder, or the checkout this package runs from.

    ProjectError where none of them holds a spec.
    """
    named = given or (Path(os.environ["TANDEM_PROJECT"]) if "TANDEM_PROJECT" in os.environ else None)
    candidates = [named] if named else [Path.cwd(), Path(__file__).resolve().parent.parent]
    for root in candidates:
        if os.path.lexists(root / SPEC_FILE):  # what is wrong with it is said where it is read
            return Project(root.resolve())
    looked = " or ".join(str(root) for root in candidates)
    raise ProjectError(
        f"no {SPEC_FILE} in {looked}; go to a Tandem project, or name one with --project or TANDEM_PROJECT"
    )


def project_of(spec_file: Path) -> Project | None:
    """The project whose own spec this file is, by where it lies; None where it is none's."""
    path = Path(os.path.realpath(spec_file))  # also where links lead in a circle
    found = Project(path.parents[1]) if len(path.parents) > 1 else None
    return found if found is not None and found.spec_file == path else None


def stale_files(project: Project, spec: Spec) -> dict[str, str]:
    """The diff of each generated file that is not what the spec renders, by its path in the project."""
    return _stale(project, render(spec))


def _stale(project: Project, rendered: Mapping[str, str]) -> dict[str, str]:
    diffs = {}
    for name, wanted in rendered.items():
        present = _present(project.root / name)
        if present != wanted:
            old = "/dev/null" if present is None else name
            lines = difflib.unified_diff(
                (present or "").splitlines(True), wanted.splitlines(True), old, f"{name} (from the spec)"
            )
            diffs[name] = "".join(lines) or f"{name} is missing\n"
    return diffs


def _present(path: Path) -> str | None:
    """The text of a generated file; None where there is none. ProjectError where something else has its place."""
    _check_place(path)
    try:
        return read_file(path, _LARGEST).decode(errors="replace").replace("\r\n", "\n")
    except FileNotFoundError:
        return None
    except OSError as broken:
        raise ProjectError(f"{path} cannot be read: {broken.strerror}; mend that, or remove it") from None


def write_files(project: Project, spec: Spec) -> list[str]:
    """Write every generated file that is stale; answer their paths in the project."""
    rendered = render(spec)
    stale = list(_stale(project, rendered))
    for name in stale:
        write_generated(project.root / name, rendered[name])
    return stale


def write_generated(path: Path, text: str) -> None:
    """Put a generated file in its place, whole. ProjectError where that cannot be."""
    _check_place(path)
    try:
        write_whole(path, text)
    except OSError as broken:
        raise ProjectError(f"{path} cannot be written: {broken.strerror}") from None


def _check_place(path: Path) -> None:
    if os.path.exists(path) and not os.path.isfile(path):
        raise ProjectError(f"{path} is no file, and stands where a generated one belongs; remove it")


def left_over(project: Project, spec: Spec) -> list[str]:
    """What `tandem render` wrote for an earlier spec and nobody asks for now, one sentence each with what to remove."""
    rendered = render(spec)
    found = []
    for folder in sorted(entry for entry in project.repository.glob("*") if os.path.isdir(entry)):
        name = folder.relative_to(project.root).as_posix()
        generated = [
            f"{name}/{file}"
            for pattern in ("config.pbtxt", "configs/*.pbtxt", "*/*.py")
            for file in sorted(glob.glob(pattern, root_dir=folder))
            if _is_generated(folder / file)
        ]
        if generated and folder.name not in {*spec.models, *spec.ensembles}:
            found.append(f"{name}: of a model that the spec does not have; remove the folder if you need nothing in it")
            continue
        found += [
            f"{path}: the spec asks for it no more; remove it"
            for path in generated
            if path not in rendered and not _is_code(spec, folder.name, PurePath(path).name)
        ]
    return found


def _is_code(spec: Spec, name: str, file: str) -> bool:
    """Whether the python backend runs this file of a model's in any profile, whoever wrote it.

    `tandem import` makes of an ONNX model, whose code is rendered, a python model with that code.
    """
    configs = (model_config(spec, name, profile) for profile in spec.profiles)
    return any(config.backend == PYTHON and config.default_model_filename == file for config in configs)


def _is_generated(path: Path) -> bool:
    try:
        with opened(path) as file:
            return GENERATED.encode() in file.read(1000)
    except OSError:  # Tandem writes files that can be read
        return False
