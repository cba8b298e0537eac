"""Check a rendered model repository before a server loads it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from google.protobuf import text_format
from tritonclient.grpc import model_config_pb2

from serve_app.files import read_file, why_no_folder
from serve_app.triton.model_folder import folder_faults

_LARGEST_CONFIG = 2**26


def findings(repository: Path, models: Sequence[str], config_name: str | None) -> list[str]:
    """What is wrong with the folders of `models`, one sentence each with the file and the remedy; empty: nothing is.

    `config_name` is the server's --model-config-name: None for MODEL/config.pbtxt, "gpu" for MODEL/configs/gpu.pbtxt.
    """
    return [finding for model in models for finding in _of_model(repository, model, config_name)]


def _of_model(repository: Path, model: str, config_name: str | None) -> Iterator[str]:
    folder = repository / model
    if not os.path.lexists(folder):
        yield f"{folder}: the model has no folder; run `tandem render`."
        return
    if reason := why_no_folder(folder):
        yield f"{folder} {reason}; remove it, then run `tandem render`."
        return
    config_file = folder / "config.pbtxt" if config_name is None else folder / "configs" / f"{config_name}.pbtxt"
    try:
        text = read_file(config_file, _LARGEST_CONFIG).decode()
        config = text_format.Parse(text, model_config_pb2.ModelConfig())
    except FileNotFoundError:
        yield f"{config_file}: missing; run `tandem render`."
        return
    except OSError as broken:
        yield f"{config_file}: cannot be read: {broken.strerror}; remove it, then run `tandem render`."
        return
    except (text_format.ParseError, UnicodeDecodeError) as error:
        yield f"{config_file}: not a model configuration ({error}); run `tandem render`."
        return
    if config.name and config.name != model:
        yield f"{config_file}: the name is {config.name!r}, and Triton wants that of the folder, {model!r}."
    for step in config.ensemble_scheduling.step:
        if not (repository / step.model_name).is_dir():
            yield f"{config_file}: a step uses the model {step.model_name!r}, which {repository} does not have."
    yield from (problem.show() for problem in folder_faults(folder, config) if problem.rule.severity == "error")
