"""A project's files: the spec, what is generated from it, and the model repository."""

from __future__ import annotations

import difflib
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from serve_app.render import GENERATED, MODEL_REPOSITORY, SERVE_CONFIG, SPEC_FILE, render
from serve_app.spec import Spec, load_spec


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
        if (root / SPEC_FILE).is_file():
            return Project(root.resolve())
    looked = " or ".join(str(root) for root in candidates)
    raise ProjectError(
        f"no {SPEC_FILE} in {looked}; go to a Tandem project, or name one with --project or TANDEM_PROJECT"
    )


def project_of(spec_file: Path) -> Project | None:
    """The project whose own spec this file is, by where it lies; None where it is none's."""
    path = spec_file.resolve()
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
    try:
        if path.exists() and not path.is_file():
            raise ProjectError(f"{path} is no file, and stands where a generated one belongs; remove it")
        return path.read_text(encoding="utf-8", errors="replace") if path.exists() else None
    except OSError as broken:
        raise ProjectError(f"{path} cannot be read: {broken.strerror}; mend that, or remove it") from None


def write_files(project: Project, spec: Spec) -> list[str]:
    """Write every generated file that is stale; answer their paths in the project."""
    rendered = render(spec)
    stale = list(_stale(project, rendered))
    for name in stale:
        try:
            _write(project.root / name, rendered[name])
        except OSError as broken:
            raise ProjectError(f"{project.root / name} cannot be written: {broken.strerror}") from None
    return stale


def _write(path: Path, text: str) -> None:
    """Put the whole text in the file's place, or leave what is there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    new = Path(name)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        new.chmod(path.stat().st_mode & 0o777 if path.exists() else 0o644)
        new.replace(path)
    except BaseException:
        new.unlink()
        raise


def left_over(project: Project, spec: Spec) -> list[str]:
    """What `tandem render` wrote for an earlier spec and nobody asks for now, one sentence each with what to remove."""
    rendered = render(spec)
    found = []
    for folder in sorted(entry for entry in project.repository.glob("*") if entry.is_dir()):
        name = folder.relative_to(project.root).as_posix()
        generated = [
            path.relative_to(project.root).as_posix()
            for pattern in ("config.pbtxt", "configs/*.pbtxt", "*/*.py")
            for path in sorted(folder.glob(pattern))
            if _is_generated(path)
        ]
        if generated and folder.name not in {*spec.models, *spec.ensembles}:
            found.append(f"{name}: of a model that the spec does not have; remove the folder if you need nothing in it")
            continue
        found += [f"{path}: the spec asks for it no more; remove it" for path in generated if path not in rendered]
    return found


def _is_generated(path: Path) -> bool:
    with path.open(encoding="utf-8", errors="replace") as file:
        return GENERATED in file.read(1000)
