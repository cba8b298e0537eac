"""What `tandem import` tells its user, beside the spec."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

from serve_app.importing.conversion import Imported
from serve_app.render import MODEL_REPOSITORY


def summary(imported: Imported, repository: Path, project: Path, spec: str) -> Iterator[str]:
    """The lines: how much is carried, what is not and why, which files are unfit, and what to do next.

    `project` is the folder that the spec is for, `spec` the spec's name.
    """
    carried = len(imported.carried)
    total = carried + len({loss.model for loss in imported.not_carried} - {found.name for found in imported.carried})
    yield f"{spec}: {carried} of {total} models"
    if imported.not_carried:
        yield "not carried:"
        yield from (f"  {loss}" for loss in imported.not_carried)
    if imported.unfit:
        yield f"files in {repository} without which the models do not load:"
        yield from (f"  {file}" for file in imported.unfit)
    if imported.report.findings:
        yield "to correct in the spec:"
        yield from (f"  {finding.show(imported.report.file)}" for finding in imported.report.findings)
    yield "next:"
    yield from (f"  {command}" for command in _commands(imported, repository, project))


def _commands(imported: Imported, repository: Path, project: Path) -> Iterator[str]:
    target = project / MODEL_REPOSITORY
    if target.resolve() != repository.resolve() and imported.carried:
        shown = shlex.quote(str(target))
        folders = " ".join(shlex.quote(str(found.folder)) for found in imported.carried)
        yield f"mkdir -p {shown} && cp -R {folders} {shown}/"
    yield "tandem validate"
    yield "tandem render   # replaces each config.pbtxt by an equivalent one"
