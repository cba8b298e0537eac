"""A model's folder against its configuration: the files that Triton needs, found missing or unfit before it starts.

Triton does not refuse a python model without its `model.py`, it hangs, and then does not end on SIGTERM either; other
faults end it with a message that does not name the file.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tritonclient.grpc import model_config_pb2 as pb

from serve_app.spec.findings import Place, Rule, error, warning
from serve_app.spec.model import PYTHON, USUAL_FILES
from serve_app.spec.tensors import WIDTHS
from serve_app.triton.backend import ONNX_MODEL
from serve_app.triton.model_code import lack, numpy_calls, parse_code

NO_MODEL_FILE = error(
    "W019", "A model without its file", "Triton hangs or fails when it loads the model",
    "put the file there, or correct its name in the spec",
)  # fmt: skip
NOT_PYTHON = error("W020", "A model.py that is not valid Python", "Triton fails to load the model", "correct the file")
NO_MODEL_CLASS = error(
    "W021", "A model.py without what the python backend looks for", "Triton fails to load the model, or requests fail",
    "write a class TritonPythonModel with a method execute(self, requests)",
)  # fmt: skip
NO_LABELS = error(
    "W022", "A label file that does not exist", "Triton refuses the model",
    "write it, one label a line, or correct its name in the spec",
)  # fmt: skip
EMPTY_LABELS = error(
    "W023", "A label file without labels", "no class of the answers has a name", "write one label a line"
)
OTHER_LABELS = warning(
    "W024", "A label file with more or fewer lines than its output has values", "labels and classes do not belong "
    "together", "write one label for each value, in their order",
)  # fmt: skip
NO_VERSION = error(
    "W025", "A version that does not exist", "Triton serves the others only, and with none it refuses the model",
    "put the model there, or correct versions",
)  # fmt: skip
MISNAMED_VERSION = error("W026", "A version folder whose name is no plain number", "Triton passes over it", "rename it")
NO_INPUT_FILE = error(
    "W027", "A file of a warm-up or of an initial state that does not exist", "Triton refuses the model",
    "put the file there, or correct its name",
)  # fmt: skip
OTHER_INPUT_SIZE = error(
    "W028", "A file of a warm-up or of an initial state with another size than its tensor",
    "Triton refuses the model, or reads something else than was meant", "write exactly the tensor's bytes",
)  # fmt: skip
NUMPY_2 = warning(
    "W029", "A model.py that exchanges NumPy arrays with a Triton that misreads them",
    "the python backend of Triton 2.51 and older was compiled against NumPy 1: arrays of NumPy 2 arrive and leave "
    "empty, and those of strings end its process", "read and write tensors with read(request, name) and "
    "write(name, array) of serve_app.triton.backend.tensors",
)  # fmt: skip
NO_ENVIRONMENT = error(
    "W030", "A Python environment that does not exist", "Triton refuses the model",
    "put the packed environment there, or correct the parameter",
)  # fmt: skip

_PULL = "run `tandem models pull` if the spec gives the model weights, else put the file there"
# The python backend's own words for an environment of a model, and for the model's folder in its path.
_ENVIRONMENT = "EXECUTION_ENV_PATH"
_MODEL_FOLDER = "$$TRITON_MODEL_DIRECTORY"


@dataclass(frozen=True)
class FileFault:
    """A rule that a file breaks. `what` reads on from the file's name; `about` is the place in the model's entry."""

    rule: Rule
    file: Path
    what: str
    about: Place = ()
    remedy: str | None = None

    def show(self) -> str:
        """One sentence with the file and the remedy."""
        return f"{self.file} {self.what}: {self.rule.consequence}; {self.remedy or self.rule.remedy}."


def folder_faults(folder: Path, config: pb.ModelConfig) -> Iterator[FileFault]:
    """What is wrong with the files in a model's folder, by its configuration."""
    yield from _labels(folder, config)
    yield from _warmups(folder, config)
    yield from _initial_states(folder, config)
    yield from _environment(folder, config)
    versions = _version_folders(folder)
    yield from _versions(folder, versions, config)
    for version in _served(versions, config):
        yield from _model_file(folder / version, config)


def model_file(version: Path, config: pb.ModelConfig) -> Path | None:
    """The file in a version folder that the backend loads, whether it is there or not. None where nobody can know."""
    name = config.default_model_filename or USUAL_FILES.get(config.backend)
    return None if name is None or config.platform == "ensemble" else version / name


def served_versions(folder: Path, config: pb.ModelConfig) -> list[Path]:
    """The version folders that Triton loads."""
    return [folder / version for version in _served(_version_folders(folder), config)]


# -- labels, warm-ups, initial states


def _labels(folder: Path, config: pb.ModelConfig) -> Iterator[FileFault]:
    for output in config.output:
        if not output.label_filename:
            continue
        file, about = folder / output.label_filename, ("outputs", output.name, "labels")
        if not file.is_file():
            yield FileFault(NO_LABELS, file, "is missing", about)
            continue
        labels = file.read_bytes().decode(errors="replace").splitlines()
        if not any(label.strip() for label in labels):
            yield FileFault(EMPTY_LABELS, file, "is empty", about)
        # An output of integers names its labels by its values, however many of them it has.
        elif -1 not in output.dims and pb.DataType.Name(output.data_type) in ("TYPE_FP16", "TYPE_FP32", "TYPE_FP64"):
            values = math.prod(output.dims)
            if values != len(labels):
                yield FileFault(OTHER_LABELS, file, f"has {len(labels)} labels for {values} values", about)


def _warmups(folder: Path, config: pb.ModelConfig) -> Iterator[FileFault]:
    for index, warmup in enumerate(config.model_warmup):
        for name, given in warmup.inputs.items():
            if given.input_data_file:
                about = ("warmup", index, "inputs", name, "file")
                yield from _input_file(folder / "warmup" / given.input_data_file, given, about)


def _initial_states(folder: Path, config: pb.ModelConfig) -> Iterator[FileFault]:
    for index, state in enumerate(config.sequence_batching.state):
        for number, initial in enumerate(state.initial_state):
            if initial.data_file:
                about = ("sequence", "states", index, "initial", number, "file")
                yield from _input_file(folder / "initial_state" / initial.data_file, initial, about)


def _input_file(
    file: Path, given: pb.ModelWarmup.Input | pb.ModelSequenceBatching.InitialState, about: Place
) -> Iterator[FileFault]:
    if not file.is_file():
        yield FileFault(NO_INPUT_FILE, file, "is missing", about)
        return
    each = WIDTHS.get(pb.DataType.Name(given.data_type).removeprefix("TYPE_"))
    if each is None or -1 in given.dims:  # strings are as long as they are
        return
    wanted, found = each * math.prod(given.dims), file.stat().st_size
    if wanted != found:
        yield FileFault(OTHER_INPUT_SIZE, file, f"has {found} bytes and its tensor {wanted}", about)


# -- versions


def _version_folders(folder: Path) -> list[str]:
    if not folder.is_dir():
        return []
    return sorted(
        entry.name for entry in folder.iterdir() if entry.is_dir() and re.fullmatch(r"v?\d+", entry.name, re.I)
    )


def _is_version(name: str) -> bool:
    return re.fullmatch(r"[1-9]\d*", name) is not None


def _versions(folder: Path, names: list[str], config: pb.ModelConfig) -> Iterator[FileFault]:
    about = ("versions",)
    for name in names:
        if not _is_version(name):
            number = name.lower().lstrip("v0") or "1"
            yield FileFault(MISNAMED_VERSION, folder / name, "is no version", about, f"call the folder {number!r}")
    wanted = [str(version) for version in config.version_policy.specific.versions]
    if not wanted and not any(map(_is_version, names)):
        yield FileFault(NO_VERSION, folder, "holds no version", about, _to_write(folder, "1", config))
    for version in wanted:
        if version not in names:
            # Version 1 is what is served where nobody has said anything of versions.
            remedy = _to_write(folder, version, config) + ("" if wanted == ["1"] else ", or correct versions")
            yield FileFault(NO_VERSION, folder / version, "is missing", about, remedy)


def _to_write(folder: Path, version: str, config: pb.ModelConfig) -> str:
    """What a version lacks, with the folder's own name alone: where that lies is said before."""
    file = model_file(folder / version, config) or folder / version
    shown = Path(folder.parent.name, folder.name, *file.relative_to(folder).parts)
    return f"write {shown}" if file.suffix == ".py" else f"put the model there, as {shown}"


def _served(names: list[str], config: pb.ModelConfig) -> list[str]:
    policy, versions = config.version_policy, sorted(filter(_is_version, names), key=int)
    if policy.HasField("all"):
        return versions
    if policy.HasField("specific"):
        return [str(version) for version in policy.specific.versions if str(version) in versions]
    latest = policy.latest.num_versions if policy.HasField("latest") else 1
    return versions[-latest:] if latest else []


# -- the model's file


def _model_file(version: Path, config: pb.ModelConfig) -> Iterator[FileFault]:
    file, about = model_file(version, config), ("file",)
    if file is None:
        return
    if not file.exists():
        remedy = "run `tandem render`, or write it" if file.suffix == ".py" else _PULL
        yield FileFault(NO_MODEL_FILE, file, "is missing", about, remedy)
    elif config.backend == "python":
        source = file.read_bytes()
        yield from _python(file, source)
        weights = version / "model.onnx"
        if ONNX_MODEL.encode() in source and not weights.is_file():
            yield FileFault(NO_MODEL_FILE, weights, "is missing", about, _PULL)


def _python(file: Path, source: bytes) -> Iterator[FileFault]:
    about = ("backend",)
    try:
        tree = parse_code(source, str(file))
    except SyntaxError as broken:
        yield FileFault(NOT_PYTHON, file, f"is not Python (line {broken.lineno}: {broken.msg})", about)
        return
    except ValueError as broken:
        yield FileFault(NOT_PYTHON, file, f"is not Python ({broken})", about)
        return
    if lacking := lack(tree):
        yield FileFault(NO_MODEL_CLASS, file, lacking, about)
    if calls := numpy_calls(tree):
        yield FileFault(NUMPY_2, file, f"calls {', '.join(calls)}", about)


def _environment(folder: Path, config: pb.ModelConfig) -> Iterator[FileFault]:
    given = config.parameters[_ENVIRONMENT].string_value if _ENVIRONMENT in config.parameters else ""
    path = given.replace(_MODEL_FOLDER, str(folder))
    # A path that is relative begins where the server was started, which nobody knows here.
    if config.backend == PYTHON and Path(path).is_absolute() and not Path(path).exists():
        yield FileFault(NO_ENVIRONMENT, Path(path), "is missing", ("parameters", _ENVIRONMENT))
