"""What `tandem import` tells its user, beside the spec and what the validator says of it."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable, Iterator
from pathlib import Path

from serve_app.files import names_below
from serve_app.importing.conversion import Imported
from serve_app.importing.repository import CONFIG, Found
from serve_app.importing.yaml_text import visible
from serve_app.project import project_of
from serve_app.render import MODEL_REPOSITORY


def summary(imported: Imported, repository: Path) -> Iterator[str]:
    """The lines: how much is carried, what is not and why, what to look at in the code, and which files are unfit."""
    yield from map(visible, _lines(imported, repository))


def _lines(imported: Imported, repository: Path) -> Iterator[str]:
    yield f"{imported.report.file}: {_count(imported)}"
    yield from _section(
        "the folder's name is the model's:",
        (f"{found.name}: {found.name}/{CONFIG} calls it {found.other_name!r}" for found in imported.renamed),
    )
    yield from _section("not carried:", map(str, imported.not_carried))
    yield from _section("yours to say, under `calls` of the model:", imported.unclear)
    yield from _section(f"files in {repository} that are missing or unfit:", imported.unfit)
    yield from _section(f"files in {repository} with which the models load, and then go wrong:", imported.doubtful)


def _section(title: str, lines: Iterable[str]) -> Iterator[str]:
    shown = [f"  {line}" for line in lines]
    if shown:
        yield from (title, *shown)


def _count(imported: Imported) -> str:
    carried = {found.name for found in imported.carried}
    lossy = {loss.model for loss in imported.not_carried if loss.model is not None}
    counts = {"renamed": len(imported.renamed), "in part": len(carried & lossy)}
    more = [f", {number} {word}" for word, number in counts.items() if number]
    return f"{len(carried)} of {len(carried | lossy)} models{''.join(more)}"


def next_commands(imported: Imported, project: Path, written: Path | None, *, is_usual: bool) -> Iterator[str]:
    """What to do next, as commands for a shell.

    `project` is the folder that the models shall go to, `is_usual` whether `tandem` takes that without being told;
    `written` is the spec's file, if there is one.
    """
    target = project.resolve() / MODEL_REPOSITORY
    missing = [found.folder.resolve() for found in imported.carried if not _is_there(found, target)]
    if missing:
        shown = _quoted(str(target))
        folders = " ".join(_quoted(str(folder)) for folder in missing)
        yield f"mkdir -p {shown} && cp -R {folders} {shown}/"
    if written is None:
        return
    if project_of(written) is None:
        yield f"tandem validate {_quoted(str(written))}"
        return
    tandem = "tandem" if is_usual else f"tandem --project {_quoted(str(project.resolve()))}"
    yield f"{tandem} validate"
    yield f"{tandem} render   # replaces each config.pbtxt by an equivalent one"


def _quoted(text: str) -> str:
    """The text as one word for a shell, on one line."""
    if not re.search(r"[\x00-\x1f\x7f]", text):
        return shlex.quote(text)
    escaped = text.replace("\\", r"\\").replace("'", r"\'")
    return "$'" + re.sub(r"[\x00-\x1f\x7f]", lambda match: f"\\x{ord(match[0]):02x}", escaped) + "'"


def _is_there(found: Found, target: Path) -> bool:
    """Whether the target has all of a model's files, of the same size. Its configuration is rendered anew."""
    files = [path for path in names_below(found.folder) if os.path.isfile(path) and path.name != CONFIG]
    copies = {path: target / found.name / path.relative_to(found.folder) for path in files}
    return all(os.path.isfile(copy) and copy.stat().st_size == path.stat().st_size for path, copy in copies.items())
