"""Check a model repository before a server loads it.

Triton does not refuse a python model without its `model.py`, it hangs, and then does not end on SIGTERM either; other
faults end the server with a message that does not name the file. Here they are found first.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from google.protobuf import text_format
from tritonclient.grpc import model_config_pb2

from serve_app.triton.backend import ONNX_MODEL

# The file of each version that a backend loads where the configuration names none.
_MODEL_FILES = {"python": "model.py", "onnxruntime": "model.onnx", "tensorrt": "model.plan"}


def findings(repository: Path, models: Sequence[str], config_name: str | None) -> list[str]:
    """What is wrong with the folders of `models`, one sentence each with the file and the remedy; empty: nothing is.

    `config_name` is the server's --model-config-name: None for MODEL/config.pbtxt, "gpu" for MODEL/configs/gpu.pbtxt.
    """
    return [finding for model in models for finding in _of_model(repository, model, config_name)]


def _of_model(repository: Path, model: str, config_name: str | None) -> Iterator[str]:
    folder = repository / model
    if not folder.is_dir():
        yield f"{folder}: the model has no folder; run `tandem render`."
        return
    config_file = folder / "config.pbtxt" if config_name is None else folder / "configs" / f"{config_name}.pbtxt"
    if not config_file.is_file():
        yield f"{config_file}: missing; run `tandem render`."
        return
    try:
        config = text_format.Parse(config_file.read_text(encoding="utf-8"), model_config_pb2.ModelConfig())
    except (text_format.ParseError, UnicodeDecodeError) as error:
        yield f"{config_file}: not a model configuration ({error}); run `tandem render`."
        return
    if config.name and config.name != model:
        yield f"{config_file}: the name is {config.name!r}, and Triton wants that of the folder, {model!r}."
    for output in config.output:
        if output.label_filename and not (folder / output.label_filename).is_file():
            file = folder / output.label_filename
            yield f"{file}: the labels of output {output.name!r} are missing; run `tandem models pull`."
    for step in config.ensemble_scheduling.step:
        if not (repository / step.model_name).is_dir():
            yield f"{config_file}: a step uses the model {step.model_name!r}, which {repository} does not have."
    yield from _of_versions(folder, config)


def _of_versions(folder: Path, config: model_config_pb2.ModelConfig) -> Iterator[str]:
    names = sorted(entry.name for entry in folder.iterdir() if entry.is_dir())
    versions = [name for name in names if re.fullmatch(r"[1-9]\d*", name)]
    for name in names:
        if name not in versions and re.fullmatch(r"v?\d+", name, re.IGNORECASE):
            number = name.lower().lstrip("v0") or "1"
            yield f"{folder / name}: Triton passes over this version; call the folder {number!r}."
    if not versions:
        yield f"{folder}: there is no version; put the model into {folder / '1'}."
    for version in config.version_policy.specific.versions:
        if str(version) not in versions:
            yield f"{folder / str(version)}: the version policy wants this version, and it does not exist."
    for version in _loaded(versions, config):
        yield from _of_files(folder / version, config)


def _loaded(versions: list[str], config: model_config_pb2.ModelConfig) -> list[str]:
    policy = config.version_policy
    if policy.HasField("all"):
        return versions
    if policy.HasField("specific"):
        return [str(version) for version in policy.specific.versions if str(version) in versions]
    latest = policy.latest.num_versions if policy.HasField("latest") else 1
    return sorted(versions, key=int)[-latest:] if latest else []


def _of_files(version: Path, config: model_config_pb2.ModelConfig) -> Iterator[str]:
    expected = config.default_model_filename or _MODEL_FILES.get(config.backend)
    if expected is None or config.platform == "ensemble":
        return
    file = version / expected
    if not file.exists():
        remedy = "run `tandem render`, or write it" if file.suffix == ".py" else "run `tandem models pull`"
        yield f"{file}: missing, and Triton hangs or fails without it; {remedy}."
    elif file.suffix == ".py" and ONNX_MODEL in file.read_text(encoding="utf-8"):
        weights = version / "model.onnx"
        if not weights.is_file():
            yield f"{weights}: the weights are missing; run `tandem models pull`."
