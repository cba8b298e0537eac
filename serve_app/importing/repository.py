"""Reading a Triton model repository: one configuration for each model's folder, and what could not be read."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from google.protobuf import text_format
from tritonclient.grpc import model_config_pb2 as pb

from serve_app.files import lost_link, read_file, why_no_folder
from serve_app.importing.comments import comments
from serve_app.importing.error import RepositoryError

CONFIG = "config.pbtxt"
VARIANTS = "configs"
# Far more than any configuration has.
_LARGEST = 2**26


@dataclass(frozen=True)
class NotCarried:
    """Something of a model, or of all together where it is None, that is not in the spec, and why."""

    model: str | None
    what: str

    def __str__(self) -> str:
        return self.what if self.model is None else f"{self.model}: {self.what}"


@dataclass(frozen=True)
class Found:
    """A model as the repository has it. `config` is None where no config.pbtxt says anything about it.

    `name` is the folder's: Triton refuses a configuration that calls its model otherwise.
    """

    name: str
    folder: Path
    config: pb.ModelConfig | None
    comments: tuple[str, ...] = ()

    @property
    def other_name(self) -> str | None:
        """What the configuration calls the model, where that is not the folder's name."""
        given = self.config.name if self.config is not None else ""
        return given if given not in ("", self.name) else None


def read_repository(folder: Path) -> tuple[list[Found], list[NotCarried]]:
    """The models in `folder`, by name, and what of it could not be read, all of it.

    RepositoryError where there is no model at all, or no folder that can be read.
    """
    found: list[Found] = []
    lost: list[NotCarried] = []
    if reason := why_no_folder(folder):
        raise RepositoryError(f"{folder} {reason}")
    for entry in sorted(folder.iterdir()):
        if entry.name.startswith(".") or not os.path.isdir(entry):
            continue
        if reason := _why_unusable(entry):
            lost.append(NotCarried(entry.name, reason))
            continue
        config = entry / CONFIG
        if not os.path.lexists(config):
            if versions(entry):
                found.append(Found(entry.name, entry, None))
            continue
        lost += [
            NotCarried(
                entry.name,
                f"{VARIANTS}/{variant.name}: a variant of the configuration; give what differs from {CONFIG} as the "
                "override of a profile",
            )
            for variant in sorted(entry.glob(f"{VARIANTS}/*.pbtxt"))
        ]
        try:
            shown = f"{entry.name}/{CONFIG}"
            text = _text(config, shown)
            found.append(Found(entry.name, entry, _parsed(text, shown), comments(text)))
        except RepositoryError as unreadable:
            lost.append(NotCarried(entry.name, str(unreadable)))
    if not found and not lost:
        is_one = os.path.lexists(folder / CONFIG)
        one = f" ({folder} is a single model; give the folder that it is in)" if is_one else ""
        raise RepositoryError(f"there is no model in {folder}: expected {folder / 'MODEL' / CONFIG}{one}")
    return found, lost


def versions(folder: Path) -> list[str]:
    """The names of a model's version folders, lowest first. Triton passes over any that begin with 0."""
    numbers = [name for name in os.listdir(folder) if name.isascii() and name.isdecimal() and not name.startswith("0")]
    return sorted((name for name in numbers if os.path.isdir(folder / name)), key=int)


def _why_unusable(folder: Path) -> str | None:
    """Why nothing can be made of a model's folder, whatever is in its configuration."""
    try:
        folder.name.encode()
    except UnicodeEncodeError:
        return "the folder's name is not UTF-8 text, which a spec is"
    if reason := why_no_folder(folder):
        return f"{folder.name} {reason}"
    unread = ((version, why_no_folder(folder / version)) for version in versions(folder))
    return next((f"{folder.name}/{version} {reason}" for version, reason in unread if reason), None)


def _text(path: Path, shown: str) -> str:
    try:
        text = read_file(path, _LARGEST).decode("utf-8")
    except UnicodeDecodeError as broken:
        raise RepositoryError(f"{shown} is not UTF-8 text (byte {broken.start}); Triton refuses it") from None
    except OSError as broken:
        link = lost_link(path) if isinstance(broken, FileNotFoundError) else None
        raise RepositoryError(f"{shown} is {link}" if link else f"{shown} cannot be read: {broken.strerror}") from None
    if text.startswith("\ufeff"):
        raise RepositoryError(f"{shown} begins with a byte order mark, which Triton refuses; save it without")
    return text


def _parsed(text: str, shown: str) -> pb.ModelConfig:
    """The configuration in a file's text. RepositoryError says its line and what is wrong there."""
    config: pb.ModelConfig
    try:
        config = text_format.Parse(text, pb.ModelConfig())
    except text_format.ParseError as broken:
        line = broken.GetLine() or 1
        what = str(broken).removeprefix(f"{broken.GetLine()}:{broken.GetColumn()} : ")
        template = "; this is a template: fill in its ${…} first" if "${" in text.split("\n")[line - 1] else ""
        raise RepositoryError(f"{shown}:{line}: {what}{template}") from None
    return config
