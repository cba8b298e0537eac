"""Reading a Triton model repository: one configuration for each model's folder, and what could not be read."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from google.protobuf import text_format
from tritonclient.grpc import model_config_pb2 as pb

from serve_app.importing.comments import comments
from serve_app.importing.error import RepositoryError

CONFIG = "config.pbtxt"
VARIANTS = "configs"


@dataclass(frozen=True)
class NotCarried:
    """Something of a model that is not in the spec, and why."""

    model: str
    what: str

    def __str__(self) -> str:
        return f"{self.model}: {self.what}"


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

    RepositoryError where there is no model at all.
    """
    found: list[Found] = []
    lost: list[NotCarried] = []
    for entry in sorted(folder.iterdir()):
        if entry.name.startswith(".") or not entry.is_dir():
            continue
        config = entry / CONFIG
        if not config.is_file():
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
        one = f" ({folder} is a single model; give the folder that it is in)" if (folder / CONFIG).is_file() else ""
        raise RepositoryError(f"there is no model in {folder}: expected {folder / 'MODEL' / CONFIG}{one}")
    return found, lost


def versions(folder: Path) -> list[str]:
    """The names of a model's version folders, lowest first. Triton passes over any that begin with 0."""
    numbers = [entry.name for entry in folder.iterdir() if entry.is_dir() and entry.name.isascii()]
    return sorted((name for name in numbers if name.isdecimal() and not name.startswith("0")), key=int)


def _text(path: Path, shown: str) -> str:
    try:
        text = path.read_bytes().decode("utf-8")
    except UnicodeDecodeError as broken:
        raise RepositoryError(f"{shown} is not UTF-8 text (byte {broken.start}); Triton refuses it") from None
    except OSError as broken:
        raise RepositoryError(f"{shown} cannot be read: {broken.strerror}") from None
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
