"""A model's folder against its configuration: the files that Triton needs, found missing or unfit before it starts.

Triton does not refuse a python model without its `model.py`, it hangs, and then does not end on SIGTERM either; other
faults end it with a message that does not name the file.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tritonclient.grpc import model_config_pb2 as pb

from serve_app.files import lost_link, read_file, size_of, why_no_folder
from serve_app.spec.findings import Place, Rule, error, warning
from serve_app.spec.model import ONNX_FILE, PYTHON, PYTHON_FILE, USUAL_FILES
from serve_app.spec.spelling import did_you_mean
from serve_app.spec.tensors import WIDTHS
from serve_app.triton.backend import ONNX_MODEL
from serve_app.triton.model_code import lack, numpy_calls, odd_methods, parse_code

NO_MODEL_FILE = error(
    "W019", "A model without its file", "Triton hangs or fails when it loads the model",
    "put the file there, or correct its name in the spec",
)  # fmt: skip
NOT_PYTHON = error("W020", "A model.py that is not valid Python", "Triton fails to load the model", "correct the file")
NO_MODEL_CLASS = error(
    "W021", "A model.py without what the python backend looks for", "Triton fails to load the model, or requests fail",
    "write a class TritonPythonModel with a method execute(self, requests)",
)  # fmt: skip
ODD_METHOD = error(
    "W046", "A method of a model.py that cannot be called as the python backend calls it",
    "the call fails: Triton does not load the model, or every request fails, or nothing is finalized",
    "write initialize(self, args), execute(self, requests) and finalize(self); what has a default may be added",
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
UNREADABLE = error(
    "W031", "Something that cannot be read where a file belongs",
    "Triton refuses the model, waits for it for ever, or ends",
    "put a file there that Triton may read",
)  # fmt: skip
NO_FOLDER = error(
    "W032", "Something else where a folder belongs, or a folder that cannot be read", "Triton finds no model there",
    "put the folder there, and let Triton read it",
)  # fmt: skip

# Far more than labels and code have.
_LARGEST_TEXT = 2**26
_RENDER = "run `tandem render`, or write it"
_PULL = "run `tandem models pull` if the spec gives the model weights, else put the file there"
# The python backend's own words for an environment of a model, and for the model's folder in its path.
_ENVIRONMENT = "EXECUTION_ENV_PATH"
_MODEL_FOLDER = "$$TRITON_MODEL_DIRECTORY"


@dataclass(frozen=True)
class FileFault:
    """A rule that a file breaks. `what` reads on from the file's name; `about` is the place in the model's entry.

    `made_by` is how to make the file, where Tandem may be what makes it.
    """

    rule: Rule
    file: Path
    what: str
    about: Place = ()
    remedy: str | None = None
    made_by: str | None = None

    def show(self) -> str:
        """One sentence with the file and the remedy."""
        said = f"{self.file} {self.what}: {self.rule.consequence}; {self.remedy or self.made_by or self.rule.remedy}"
        return said if said.endswith("?") else f"{said}."


def folder_faults(folder: Path, config: pb.ModelConfig) -> Iterator[FileFault]:
    """What is wrong with the files in a model's folder, by its configuration."""
    for path in (folder.parent, folder):
        if reason := why_no_folder(path):
            yield FileFault(NO_FOLDER, path, reason)
            return
    yield from _labels(folder, config)
    yield from _warmups(folder, config)
    yield from _initial_states(folder, config)
    yield from _environment(folder, config)
    versions = _version_folders(folder)
    yield from _versions(folder, versions, config)
    for version in _served(versions, config):
        if why_no_folder(folder / version) is None:
            yield from _model_file(folder / version, config)


def model_file(version: Path, config: pb.ModelConfig) -> Path | None:
    """The file in a version folder that the backend loads, whether it is there or not. None where nobody can know."""
    name = config.default_model_filename or USUAL_FILES.get(config.backend)
    return None if name is None or config.platform == "ensemble" else version / name


def served_versions(folder: Path, config: pb.ModelConfig, made: Iterable[str] = ()) -> list[Path]:
    """The version folders that Triton loads; `made` are those that are still made, beside those that are there."""
    names = sorted({*_version_folders(folder), *made})
    return [folder / version for version in _served(names, config)]


# -- labels, warm-ups, initial states


def _labels(folder: Path, config: pb.ModelConfig) -> Iterator[FileFault]:
    for output in config.output:
        if not output.label_filename:
            continue
        file, about = folder / output.label_filename, ("outputs", output.name, "labels")
        try:
            labels = read_file(file, _LARGEST_TEXT).decode(errors="replace").splitlines()
        except OSError as broken:
            yield _unread(file, broken, NO_LABELS, about)
            continue
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
    try:
        found = size_of(file)
    except OSError as broken:
        yield _unread(file, broken, NO_INPUT_FILE, about)
        return
    each = WIDTHS.get(pb.DataType.Name(given.data_type).removeprefix("TYPE_"))
    if each is None or -1 in given.dims:  # strings are as long as they are
        return
    wanted = each * math.prod(given.dims)
    if wanted != found:
        yield FileFault(OTHER_INPUT_SIZE, file, f"has {found} bytes and its tensor {wanted}", about)


# -- versions


def _version_folders(folder: Path) -> list[str]:
    names = os.listdir(folder) if folder.is_dir() and why_no_folder(folder) is None else []
    return sorted(name for name in names if re.fullmatch(r"v?\d+", name, re.I | re.A) and os.path.isdir(folder / name))


def _is_version(name: str) -> bool:
    return re.fullmatch(r"[1-9]\d*", name, re.A) is not None


def _versions(folder: Path, names: list[str], config: pb.ModelConfig) -> Iterator[FileFault]:
    about = ("versions",)
    for name in names:
        if not _is_version(name):
            number = name.lower().lstrip("v0") or "1"
            yield FileFault(MISNAMED_VERSION, folder / name, "is no version", about, f"call the folder {number!r}")
    wanted = [str(version) for version in config.version_policy.specific.versions]
    if not wanted and not any(map(_is_version, names)):
        yield FileFault(NO_VERSION, folder, "holds no version", about, _to_write(folder, "1", config))
    for version in wanted or [name for name in names if _is_version(name)]:
        if reason := why_no_folder(folder / version):
            yield FileFault(NO_FOLDER, folder / version, reason, about)
        elif version not in names:
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
    try:
        if config.backend == PYTHON:
            source = read_file(file, _LARGEST_TEXT)
            yield from _python(file, source)
            if ONNX_MODEL.encode() in source:
                file = version / ONNX_FILE
                size_of(file)
        elif not file.is_dir():  # some backends take a folder of files
            size_of(file)
    except OSError as broken:
        yield _unread(file, broken, NO_MODEL_FILE, about)


def _python(file: Path, source: bytes) -> Iterator[FileFault]:
    about = ("backend",)
    try:
        tree = parse_code(source, str(file))
    except SyntaxError as broken:
        at = f"line {broken.lineno}: " if broken.lineno else ""  # an encoding has none
        yield FileFault(NOT_PYTHON, file, f"is not Python ({at}{broken.msg})", about)
        return
    except ValueError as broken:
        yield FileFault(NOT_PYTHON, file, f"is not Python that can be read ({broken})", about)
        return
    if lacking := lack(tree):
        yield FileFault(NO_MODEL_CLASS, file, lacking, about)
    for odd in odd_methods(tree):
        yield FileFault(ODD_METHOD, file, f"has {odd}", about)
    if calls := numpy_calls(tree):
        yield FileFault(NUMPY_2, file, f"calls {', '.join(calls)}", about)


def _environment(folder: Path, config: pb.ModelConfig) -> Iterator[FileFault]:
    given = config.parameters[_ENVIRONMENT].string_value if _ENVIRONMENT in config.parameters else ""
    path = given.replace(_MODEL_FOLDER, str(folder))
    # A path that is relative begins where the server was started, which nobody knows here.
    if config.backend == PYTHON and os.path.isabs(path) and not os.path.isdir(path):
        try:
            size_of(Path(path))
        except OSError as broken:
            yield _unread(Path(path), broken, NO_ENVIRONMENT, ("parameters", _ENVIRONMENT))


# -- files that are not there, or cannot be read


def _unread(file: Path, broken: OSError, missing: Rule, about: Place) -> FileFault:
    """The fault of a file that could not be read, and of one that is `missing`."""
    if not isinstance(broken, FileNotFoundError):
        return FileFault(UNREADABLE, file, f"cannot be read: {broken.strerror}", about)
    link = lost_link(file)
    # A usual name is nobody's mistake: what is there beside it is another file.
    beside = os.listdir(file.parent) if missing is NO_MODEL_FILE and file.name not in USUAL_FILES.values() else []
    made_by = {PYTHON_FILE: _RENDER, ONNX_FILE: _PULL}.get(file.name) if missing is NO_MODEL_FILE else None
    what = "is missing" if link is None else f"is {link}"
    return FileFault(missing, file, what, about, did_you_mean(file.name, beside), made_by)
