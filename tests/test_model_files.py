"""The files of a project's models against its spec: each is found wrong at the spec's own line."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import yaml
from click.testing import CliRunner
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.capi.onnxruntime_pybind11_state import Fail, RuntimeException

from serve_app.cli import main
from serve_app.model_files import examine_with_files
from serve_app.project import Project, left_over, write_files
from serve_app.spec import load_spec
from serve_app.spec.findings import Finding
from tests.rules.case import merged, patched
from tests.test_files import ODD

CODE = """
class TritonPythonModel:
    def execute(self, requests):
        return []
"""
GPU = {
    "device": "gpu",
    "onnx": "onnxruntime",
    "ray_version": "2.60.0",
    "triton": {
        "version": "2.60.0",
        "cpus": 1,
        "gpus": 1,
        "memory": "1GiB",
        "startup_timeout": "60s",
        "exit_timeout": "10s",
        "health_check_period": "2s",
        "health_check_timeout": "10s",
    },
}

WHEEL = {"requirement": "nvidia-pytriton==0.7.0", "sha256": "0" * 64}


class Files:
    """A project whose model `m` is sound, until a test changes something."""

    def __init__(self, root: Path):
        self.project = Project(root)
        self.folder = self.project.repository / "m"
        self.version = self.folder / "1"
        self.version.mkdir(parents=True)
        (root / "cluster").mkdir()
        self.spec({})
        self.write("1/model.py", CODE)

    def spec(self, patch: Mapping[str, Any]) -> None:
        data = json.loads(json.dumps(merged(patched({}), patch)))
        self.project.spec_file.write_text(yaml.safe_dump(data, sort_keys=False))

    def model(self, patch: Mapping[str, Any], **others: Any) -> None:
        self.spec({"models": {"m": patch}, **others})

    def write(self, name: str, content: str | bytes) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    def onnx(self, **options: Any) -> Path:
        """The model is an ONNX one, whose graph is made as `graph` says."""
        weights = {"file": "weights.onnx", "sha256": "0" * 64}
        self.model({"backend": "onnx", "weights": weights})
        (self.version / "model.py").unlink(missing_ok=True)
        path = self.version / "model.onnx"
        onnx.save(graph(**options), path)
        # As `tandem models pull` would leave it, were it made from that file.
        (self.project.root / "weights.onnx").write_bytes(path.read_bytes())
        weights["sha256"] = hashlib.sha256(path.read_bytes()).hexdigest()
        self.model({"backend": "onnx", "weights": weights})
        return path

    def findings(self) -> list[Finding]:
        report = examine_with_files(self.project.spec_file)
        return [finding for finding in report.findings if "W010" <= finding.code < "W050"]

    def only(self) -> Finding:
        found = self.findings()
        assert len(found) == 1, [finding.show("spec.yaml") for finding in found]
        return found[0]


def graph(
    *,
    x: tuple[int, list[int | str]] = (TensorProto.FLOAT, ["N", 4]),
    y: tuple[int, list[int | str]] = (TensorProto.FLOAT, ["N", 4]),
    names: tuple[str, str] = ("x", "y"),
    more_inputs: tuple[str, ...] = (),
    more_outputs: tuple[str, ...] = (),
) -> onnx.ModelProto:
    inputs = [helper.make_tensor_value_info(names[0], *x)]
    inputs += [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["N", 1]) for name in more_inputs]
    outputs = [helper.make_tensor_value_info(names[1], *y)]
    outputs += [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["N", 4]) for name in more_outputs]
    nodes = [helper.make_node("Identity", [names[0]], [output.name]) for output in outputs]
    made = helper.make_graph(nodes, "g", inputs, outputs)
    return helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def onnx_bytes(doc_string: str = "", **options: Any) -> bytes:
    made = graph(**options)
    made.doc_string = doc_string
    return made.SerializeToString()


def with_weights() -> onnx.ModelProto:
    made = graph()
    made.graph.node[0].CopyFrom(helper.make_node("Add", ["x", "w"], ["y"]))
    made.graph.initializer.append(numpy_helper.from_array(np.zeros(4, np.float32), "w"))
    return made


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


def test_sound_files_have_no_finding(files: Files) -> None:
    assert files.findings() == []


def test_a_sound_onnx_model_has_no_finding(files: Files) -> None:
    files.onnx()
    assert files.findings() == []


def test_what_render_and_pull_have_still_to_make_is_not_missing(files: Files) -> None:
    weights = {"package": "faces==1.0", "file": "m.onnx", "sha256": "0" * 64}
    steps = [{"model": "m", "takes": {"x": "x"}, "gives": {"y": "y"}}]
    labelled = {"y": {"tensor": "float32[4]", "labels": "labels.txt"}}
    ensemble = {"inputs": {"x": "float32[4]"}, "outputs": {"y": "float32[4]"}, "max_batch": 4, "steps": steps}
    files.model({"backend": "onnx", "weights": weights, "outputs": labelled}, ensembles={"e": ensemble})
    (files.version / "model.py").unlink()
    files.version.rmdir()
    files.folder.rmdir()
    assert files.findings() == []


def test_the_finding_is_at_the_specs_line(files: Files) -> None:
    files.onnx(x=(TensorProto.FLOAT, ["N", 5]))
    line = files.project.spec_file.read_text().splitlines().index("      x: float32[4]") + 1
    assert (files.only().line, files.only().place) == (line, "models.m.inputs.x")


def test_a_spec_that_is_no_projects_own_is_checked_without_files(files: Files, tmp_path: Path) -> None:
    (files.version / "model.py").unlink()
    other = tmp_path / "other.yaml"
    other.write_text(files.project.spec_file.read_text())
    assert examine_with_files(other).findings == []


def test_the_files_of_a_model_whose_entry_is_wrong_are_not_looked_at(files: Files) -> None:
    (files.version / "model.py").unlink()
    files.model({"batching": {"queue_delay": "101ms"}})
    assert files.findings() == []


# -- acceptances


def accepting(files: Files, code: str) -> list[str]:
    """What is found where the spec as it is accepts this warning at m."""
    spec = yaml.safe_load(files.project.spec_file.read_text())
    spec["accept"] = [{"code": code, "at": "models.m", "because": "it is meant"}]
    files.project.spec_file.write_text(yaml.safe_dump(spec, sort_keys=False))
    return [finding.code for finding in examine_with_files(files.project.spec_file).findings]


def test_an_accepted_warning_of_files_that_is_not_there_is_found_when_the_files_are(files: Files) -> None:
    files.onnx(more_outputs=("z",))
    files.write("1/model.py", CODE)
    assert accepting(files, "W015") == []
    files.onnx()
    assert accepting(files, "W015") == []  # its code is still to be rendered
    files.write("1/model.py", CODE)
    assert accepting(files, "W015") == ["Y030"]


@pytest.mark.parametrize(("code", "found"), [("L007", []), ("L999", ["Y028"]), ("W999", ["Y028"])])
def test_a_code_of_files_or_of_a_live_check_must_exist(files: Files, code: str, found: list[str]) -> None:
    assert accepting(files, code) == found


# -- ONNX graphs


@pytest.mark.parametrize(
    ("made", "code", "place", "says"),
    [
        ({"names": ("image", "y")}, "W013", "models.m.inputs.x", "the graph's inputs are image"),
        ({"names": ("x", "scores")}, "W013", "models.m.outputs.y", "the graph's outputs are scores"),
        ({"more_inputs": ("scale",)}, "W014", "models.m.inputs", "an input scale"),
        ({"more_outputs": ("z",)}, "W015", "models.m.outputs", "an output z too"),
        ({"x": (TensorProto.DOUBLE, ["N", 4])}, "W016", "models.m.inputs.x", "is float64, and the spec's float32"),
        ({"y": (TensorProto.FLOAT16, ["N", 4])}, "W016", "models.m.outputs.y", "is float16"),
        ({"x": (TensorProto.FLOAT, ["N", 3])}, "W017", "models.m.inputs.x", "has [3], and the spec [4]"),
        ({"x": (TensorProto.FLOAT, ["N", 4, 1])}, "W017", "models.m.inputs.x", "has [4, 1]"),
        ({"x": (TensorProto.FLOAT, [])}, "W017", "models.m.inputs.x", "has no dimensions"),
        ({"x": (TensorProto.FLOAT, [1, 4])}, "W018", "models.m.inputs.x", "is fixed at 1, and max_batch is 8"),
        ({"y": (TensorProto.FLOAT, [1, 4])}, "W018", "models.m.outputs.y", "is fixed at 1"),
    ],
    ids=str,
)
def test_a_graph_that_is_not_the_specs(files: Files, made: dict[str, Any], code: str, place: str, says: str) -> None:
    files.onnx(**made)
    found = [(finding.code, finding.place) for finding in files.findings() if says in finding.message]
    assert found == [(code, place)], files.findings()


def test_a_batch_fixed_at_one_suits_a_model_that_takes_one_at_a_time(files: Files) -> None:
    files.onnx(x=(TensorProto.FLOAT, [1, 4]), y=(TensorProto.FLOAT, [1, 4]))
    digest = hashlib.sha256((files.project.root / "weights.onnx").read_bytes()).hexdigest()
    files.model({"backend": "onnx", "max_batch": 1, "weights": {"file": "weights.onnx", "sha256": digest}})
    assert files.findings() == []


def test_a_model_without_a_batch_has_the_graphs_whole_dimensions(files: Files) -> None:
    files.onnx(x=(TensorProto.FLOAT, [4]), y=(TensorProto.FLOAT, [4]))
    digest = hashlib.sha256((files.project.root / "weights.onnx").read_bytes()).hexdigest()
    without = {"max_batch": 0, "unscheduled": True, "batching": None}
    files.model({"backend": "onnx", **without, "weights": {"file": "weights.onnx", "sha256": digest}})
    assert files.findings() == []


def test_the_graph_of_a_reshaped_input_has_the_reshaped_dimensions(files: Files) -> None:
    files.onnx(x=(TensorProto.FLOAT, ["N", 2, 2]))
    digest = hashlib.sha256((files.project.root / "weights.onnx").read_bytes()).hexdigest()
    weights = {"file": "weights.onnx", "sha256": digest}
    reshaped = {"x": {"tensor": "float32[4]", "reshape": [2, 2]}}
    files.model({"backend": "onnx", "weights": weights, "inputs": reshaped})
    assert files.findings() == []


SEQUENCE = {
    "direct": {},
    "idle_timeout": "10s",
    "controls": [
        {"input": "start", "signals": "start", "type": "float32", "off": 0, "on": 1},
        {"input": "ready", "signals": "ready", "type": "float32", "off": 0, "on": 1},
    ],
    "states": [{"input": "s_in", "output": "s_out", "tensor": "float32[4]"}],
}


def native(files: Files, patch: Mapping[str, Any], made: onnx.ModelProto, name: str = "model.onnx") -> None:
    """The model runs by Triton's own ONNX Runtime, and its file is the user's."""
    (files.version / "model.py").unlink()
    onnx.save(made, files.version / name)
    files.model({"backend": "onnxruntime", **patch}, profiles={"gpu": GPU})


def of_sequences(*, controls: tuple[str, ...] = ("start", "ready"), states: Any = None) -> onnx.ModelProto:
    made = graph(more_inputs=controls)
    dtype, dims = states or (TensorProto.FLOAT, ["N", 4])
    made.graph.input.append(helper.make_tensor_value_info("s_in", dtype, dims))
    made.graph.output.append(helper.make_tensor_value_info("s_out", TensorProto.FLOAT, ["N", 4]))
    return made


@pytest.mark.parametrize("name", ["model.onnx", "net.onnx", "net"])
def test_a_native_models_graph_is_compared_too(files: Files, name: str) -> None:
    native(files, {} if name == "model.onnx" else {"file": name}, graph(x=(TensorProto.FLOAT, ["N", 5])), name)
    assert (files.only().code, files.only().place) == ("W017", "models.m.inputs.x")


def test_the_graph_of_another_backend_that_reads_onnx_is_compared_too(files: Files) -> None:
    native(files, {"backend": "openvino", "file": "model.onnx"}, graph(names=("image", "y")))
    assert ("W013", "models.m.inputs.x") in [(found.code, found.place) for found in files.findings()]


def test_a_sound_graph_of_sequences_has_no_finding(files: Files) -> None:
    native(files, {"batching": None, "sequence": SEQUENCE}, of_sequences())
    assert files.findings() == []


@pytest.mark.parametrize(
    ("made", "code", "place", "says"),
    [
        ({"controls": ("start",)}, "W013", "models.m.sequence.controls.1", "inputs are x, start, s_in"),
        ({"controls": ("start", "ready", "end")}, "W014", "models.m.inputs", "takes an input end"),
        ({"states": (TensorProto.FLOAT16, ["N", 4])}, "W016", "models.m.sequence.states.0.input", "is float16"),
        ({"states": (TensorProto.FLOAT, ["N", 5])}, "W017", "models.m.sequence.states.0.input", "has [5]"),
        ({"states": (TensorProto.FLOAT, [1, 4])}, "W018", "models.m.sequence.states.0.input", "is fixed at 1"),
    ],
    ids=str,
)
def test_a_graph_of_sequences_that_is_not_the_specs(
    files: Files, made: dict[str, Any], code: str, place: str, says: str
) -> None:
    native(files, {"batching": None, "sequence": SEQUENCE}, of_sequences(**made))
    found = files.only()
    assert (found.code, found.place) == (code, place)
    assert says in found.message


def test_a_graph_without_the_specs_batch_input(files: Files) -> None:
    batch_input = {"kind": "element_count", "targets": ["sizes"], "type": "float32", "sources": ["x"]}
    ragged = {"x": {"tensor": "float32[-1]", "ragged": True, "largest": [4]}}
    native(files, {"inputs": ragged, "batch_inputs": [batch_input]}, graph())
    assert ("W013", "models.m.batch_inputs.0.targets") in [(found.code, found.place) for found in files.findings()]
    onnx.save(graph(more_inputs=("sizes",)), files.version / "model.onnx")
    assert files.findings() == []


def test_a_file_that_is_no_onnx_model(files: Files) -> None:
    native(files, {}, graph())
    for junk in (b"<html>", b""):
        (files.version / "model.onnx").write_bytes(junk)
        found = files.only()
        assert (found.code, found.place) == ("W012", "models.m")
        assert "model_repository/m/1/model.onnx cannot be read (" in found.message
    assert "(it holds no graph)" in found.message


def test_a_graph_whose_weights_are_in_another_file(files: Files) -> None:
    made = with_weights()
    native(files, {}, made)
    onnx.save(made, files.version / "model.onnx", save_as_external_data=True, location="w.bin", size_threshold=0)
    assert files.findings() == []
    (files.version / "w.bin").unlink()
    found = files.only()
    assert (found.code, found.place) == ("W033", "models.m")
    assert found.message == (
        "model_repository/m/1/model.onnx has weights in w.bin, which is not in model_repository/m/1: the model cannot "
        "be loaded; put that file there, or export the model as one file"
    )
    with pytest.raises((Fail, RuntimeException), match=r"w\.bin"):
        onnxruntime.InferenceSession(files.version / "model.onnx")


# -- weights of the project's own


@pytest.fixture
def wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The SHA-256 of a wheel in the cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    sha256 = "1" * 64
    shelf = tmp_path / "cache" / "tandem" / "artefacts" / sha256
    shelf.mkdir(parents=True)
    with zipfile.ZipFile(shelf / "more_faces-1.0-py3-none-any.whl", "w") as made:
        made.writestr("faces/model.onnx", b"")
        made.writestr("faces/model.txt", b"")
    return sha256


@pytest.mark.parametrize(
    ("file", "remedy"), [("faces/modell.onnx", "did you mean faces/model.onnx?"), ("x.bin", "correct its path")]
)
def test_a_file_that_the_package_in_the_cache_does_not_have(files: Files, wheel: str, file: str, remedy: str) -> None:
    files.model({"backend": "onnx", "weights": {"package": "more-faces==1.0", "file": file, "sha256": wheel}})
    found = files.only()
    assert (found.code, found.place) == ("W010", "models.m.weights.file")
    said = f"there is no file {file} in more_faces-1.0-py3-none-any.whl"
    assert found.message == f"{said}: the model cannot be prepared; {remedy}"


def test_a_file_that_the_package_has_is_as_right_as_one_of_a_package_that_is_not_there(
    files: Files, wheel: str
) -> None:
    for file, sha256 in (("faces/model.onnx", wheel), ("faces/other.onnx", "2" * 64)):
        files.model({"backend": "onnx", "weights": {"package": "more-faces==1.0", "file": file, "sha256": sha256}})
        assert files.findings() == []


def test_a_missing_file_of_weights(files: Files) -> None:
    files.onnx()
    (files.project.root / "weights.onnx").unlink()
    found = files.only()
    assert (found.code, found.place) == ("W010", "models.m.weights.file")
    assert "there is no file weights.onnx" in found.message


def test_a_file_of_weights_that_is_not_the_pinned_one(files: Files) -> None:
    files.onnx()
    another = onnx_bytes(doc_string="another")
    (files.project.root / "weights.onnx").write_bytes(another)
    found = files.only()
    assert (found.code, found.place) == ("W011", "models.m.weights.sha256")
    assert digest(another) in found.message


# -- weights that are the model already, before and after `tandem models pull`


@pytest.fixture(params=["before", "after"])
def own(request: pytest.FixtureRequest, files: Files) -> Callable[[bytes], None]:
    """Makes what it is given the model's own file, which is prepared already or not."""

    def own(content: bytes, **patch: Any) -> None:
        files.onnx()
        (files.project.root / "weights.onnx").write_bytes(content)
        weights = {"file": "weights.onnx", "sha256": digest(content)}
        files.model({"backend": "onnx", "weights": weights, **patch})
        if request.param == "after":
            (files.version / "model.onnx").write_bytes(content)
        else:
            shutil.rmtree(files.folder)

    return own


def test_a_sound_file_of_the_users_own_has_no_finding(files: Files, own: Any) -> None:
    own(onnx_bytes())
    assert files.findings() == []


@pytest.mark.parametrize("prepared", [False, True], ids=["before it is prepared", "prepared"])
def test_an_opset_that_no_runtime_takes_is_found(files: Files, own: Any, prepared: bool) -> None:
    made = graph()
    made.opset_import[0].version = 99
    with pytest.raises((Fail, RuntimeException), match="Opset 99 is under development"):
        onnxruntime.InferenceSession(made.SerializeToString())
    own(made.SerializeToString())
    if prepared:
        files.write("1/model.onnx", made.SerializeToString())
    found = files.only()
    assert (found.code, found.place) == ("W012", "models.m.weights.file")
    assert found.message.startswith("weights.onnx cannot be read (it is stamped with opset 99 of ai.onnx, and the")


@pytest.mark.parametrize("content", [b"<html>", b""], ids=["a page", "empty"])
def test_junk_is_found_in_the_users_own_file(files: Files, own: Any, content: bytes) -> None:
    own(content)
    found = files.only()
    assert (found.code, found.place) == ("W012", "models.m.weights.file")
    assert found.message.startswith("weights.onnx cannot be read (")
    assert found.message.endswith(
        "): the model cannot be loaded; export the model again, or correct the recipe that prepares it"
    )


@pytest.mark.parametrize(
    ("made", "code", "place", "says"),
    [
        ({"names": ("image", "y")}, "W013", "models.m.inputs.x", "the graph's inputs are image"),
        ({"more_inputs": ("scale",)}, "W014", "models.m.inputs", "an input scale"),
        (
            {"x": (TensorProto.FLOAT, ["N", 3]), "y": (TensorProto.FLOAT, ["N", 3])},
            "W017",
            "models.m.inputs.x",
            "x of the graph has [3], and the spec [4]",
        ),
        ({"x": (TensorProto.FLOAT, [1, 4])}, "W018", "models.m.inputs.x", "is fixed at 1, and max_batch is 8"),
    ],
    ids=str,
)
def test_other_tensors_are_found_in_the_users_own_file(
    files: Files, own: Any, made: dict[str, Any], code: str, place: str, says: str
) -> None:
    """At the same places before and after, so that what is accepted there stays so."""
    own(onnx_bytes(**made))
    assert [(found.code, found.place) for found in files.findings() if says in found.message] == [(code, place)]


def test_the_users_own_file_is_what_counts_where_an_older_one_is_prepared(files: Files) -> None:
    files.onnx(x=(TensorProto.FLOAT, ["N", 5]))
    content = onnx_bytes()
    (files.project.root / "weights.onnx").write_bytes(content)
    weights = {"file": "weights.onnx", "sha256": digest(content)}
    files.model({"backend": "onnx", "weights": weights})
    assert files.findings() == []


def test_a_file_that_is_not_the_pinned_one_is_compared_all_the_same(files: Files) -> None:
    files.onnx()
    onnx.save(graph(x=(TensorProto.FLOAT, ["N", 5])), files.project.root / "weights.onnx")
    assert [found.code for found in files.findings()] == ["W017", "W011"]


def test_an_operator_that_onnx_does_not_have_is_found_before_the_model_is_prepared(files: Files) -> None:
    made = graph()
    made.graph.node[0].op_type = "Identitty"
    files.onnx()
    content = made.SerializeToString()
    (files.project.root / "weights.onnx").write_bytes(content)
    weights = {"file": "weights.onnx", "sha256": digest(content)}
    files.model({"backend": "onnx", "weights": weights})
    (files.version / "model.onnx").unlink()
    found = files.only()
    assert (found.code, found.place) == ("W012", "models.m.weights.file")
    assert "Identitty" in found.message
    assert "\n" not in found.message


def test_a_file_that_a_recipe_turns_into_the_model_is_not_compared(files: Files) -> None:
    files.onnx()
    content = b"for the recipe"
    (files.project.root / "weights.onnx").write_bytes(content)
    recipe = {"prepare": "serve_app.weights.yunet:prepare"}
    files.model({"backend": "onnx", "weights": {"file": "weights.onnx", "sha256": digest(content), **recipe}})
    assert files.findings() == []


def test_weights_beside_the_users_own_file_do_not_come_along(files: Files) -> None:
    files.onnx()
    made = with_weights()
    path = files.project.root / "weights.onnx"
    onnx.save(made, path, save_as_external_data=True, location="w.bin", size_threshold=0)
    files.model({"backend": "onnx", "weights": {"file": "weights.onnx", "sha256": digest(path.read_bytes())}})
    found = files.only()
    assert (found.code, found.place) == ("W033", "models.m.weights.file")
    assert "weights.onnx has weights in w.bin, which is not in model_repository/m/1" in found.message


@pytest.mark.parametrize("odd", [odd for odd in ODD if odd != "nothing"])
def test_the_users_own_file_in_an_odd_state(files: Files, odd: str) -> None:
    files.onnx()
    path = files.project.root / "weights.onnx"
    path.unlink()
    make, says = ODD[odd]
    make(path)
    found = files.only()
    is_lost = odd == "a link to nothing"
    assert (found.code, found.place) == ("W010" if is_lost else "W031", "models.m.weights.file")
    what = "is a link to gone, which does not exist" if is_lost else f"cannot be read: {says}"
    assert found.message.startswith(f"weights.onnx {what}: the model cannot be prepared; ")


def test_a_huge_file_of_the_users_own_is_not_read(files: Files) -> None:
    files.onnx()
    with (files.project.root / "weights.onnx").open("wb") as file:
        file.truncate(2**42)
    found = files.only()
    assert (found.code, found.place) == ("W031", "models.m.weights.file")
    assert found.message == (
        "weights.onnx cannot be read: it has more than 2 GiB: the model cannot be prepared; "
        "give a file that can be read"
    )


# -- files in odd states


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize(
    ("patch", "name", "place", "missing"),
    [
        ({"outputs": {"y": {"tensor": "float32[4]", "labels": "l.txt"}}}, "l.txt", "models.m.outputs.y.labels", "W022"),
        (
            {"warmup": [{"name": "w", "inputs": {"x": {"file": "x.raw"}}}]},
            "warmup/x.raw",
            "models.m.warmup.0.inputs.x.file",
            "W027",
        ),
        ({}, "1/model.py", "models.m.backend", "W019"),
        ({"file": "mine.py"}, "1/mine.py", "models.m.file", "W019"),
    ],
    ids=["labels", "warm-up", "code", "code by name"],
)
def test_a_models_file_in_an_odd_state(
    files: Files, patch: Mapping[str, Any], name: str, place: str, missing: str, odd: str
) -> None:
    files.model(patch)
    path = files.folder / name
    path.parent.mkdir(exist_ok=True)
    path.unlink(missing_ok=True)
    make, says = ODD[odd]
    make(path)
    found = files.only()
    if odd in ("nothing", "a link to nothing"):
        what = "is missing" if odd == "nothing" else "is a link to gone, which does not exist"
        assert (found.code, found.place) == (missing, place)
    else:
        what = f"cannot be read: {says}"
        assert (found.code, found.place) == ("W031", place)
    assert found.message.startswith(f"model_repository/m/{name} {what}: Triton ")


@pytest.mark.parametrize("odd", [odd for odd in ODD if odd not in ("nothing", "a folder")])
def test_an_environment_in_an_odd_state(files: Files, odd: str) -> None:
    files.model({"parameters": {"EXECUTION_ENV_PATH": "$$TRITON_MODEL_DIRECTORY/environment.tar.gz"}})
    make, says = ODD[odd]
    make(files.folder / "environment.tar.gz")
    found = files.only()
    is_lost = odd == "a link to nothing"
    assert (found.code, found.place) == ("W030" if is_lost else "W031", "models.m.parameters.EXECUTION_ENV_PATH")
    assert ("which does not exist" if is_lost else says) in found.message


@pytest.mark.parametrize("name", ["1/model.py", "labels.txt"])
def test_a_huge_file_is_not_read(files: Files, name: str) -> None:
    files.model({"outputs": {"y": {"tensor": "float32[4]", "labels": "labels.txt"}}})
    files.write("labels.txt", "a\nb\nc\nd\n")
    with (files.folder / name).open("wb") as file:
        file.truncate(2**42)
    found = files.only()
    assert found.code == "W031"
    assert f"model_repository/m/{name} cannot be read: it has more than 64 MiB" in found.message


@pytest.mark.parametrize(
    ("name", "make", "says"),
    [
        ("1", Path.touch, "model_repository/m/1 is a file, where a folder belongs"),
        ("1", os.mkfifo, "model_repository/m/1 is a FIFO, where a folder belongs"),
        ("1", lambda path: path.symlink_to("7"), "model_repository/m/1 is a link to 7, which does not exist, where"),
        ("", Path.touch, "model_repository/m is a file, where a folder belongs"),
        ("..", Path.touch, "model_repository is a file, where a folder belongs"),
        ("..", lambda path: path.symlink_to(path.name), "model_repository cannot be read: Too many levels of symb"),
    ],
    ids=str,
)
def test_something_else_in_a_folders_place(files: Files, name: str, make: Callable[[Path], object], says: str) -> None:
    path = files.project.repository if name == ".." else files.folder / name
    shutil.rmtree(path)
    make(path)
    found = files.only()
    assert (found.code, found.place) == ("W032", "models.m")
    assert found.message.startswith(says)
    assert found.message.endswith(": Triton finds no model there; put the folder there, and let Triton read it")


def test_something_else_in_the_place_of_a_version_that_is_still_made(files: Files) -> None:
    files.onnx()
    shutil.rmtree(files.version)
    files.version.touch()
    found = files.only()
    assert (found.code, found.place) == ("W032", "models.m")


def test_names_that_are_no_text_are_passed_over_and_shown(files: Files) -> None:
    (files.folder / os.fsdecode(b"1\xff")).mkdir()
    (files.project.repository / os.fsdecode(b"\xff")).mkdir()
    assert files.findings() == []
    other = files.project.root / os.fsdecode(b"\xff.yaml")
    other.write_text("application: 7")
    for form in ("text", "json", "github", "sarif"):
        shown = CliRunner().invoke(main, ["validate", str(other), "--format", form])
        assert shown.exit_code == 1, shown.exception
        assert ("%FF.yaml" if form == "sarif" else r"\udcff.yaml") in shown.stdout


@pytest.mark.parametrize("odd", [odd for odd in ODD if odd != "nothing"])
def test_the_spec_itself_in_an_odd_state(files: Files, odd: str) -> None:
    files.project.spec_file.unlink()
    make, says = ODD[odd]
    make(files.project.spec_file)
    shown = CliRunner().invoke(main, ["--project", str(files.project.root), "validate"])
    assert shown.exit_code == 1
    assert f"spec.yaml:1:1 error Y001 the spec: {says}\n    there is nothing to serve" in shown.output


# -- code


@pytest.mark.parametrize(
    ("code", "expected", "says"),
    [
        ("class TritonPythonModel\n", "W020", "line 1: expected ':'"),
        ("class TritonPythonModel:\n    return 1\n", "W020", "line 2: 'return' outside function"),
        ("x = '\0'\n", "W020", "null bytes"),
        ("# coding: no\n", "W020", "model.py is not Python (unknown encoding: no): Triton fails to load the model"),
        (f"x = {'1+' * 100000}1\n", "W020", "is not Python that can be read (it is nested too deeply): Triton fails"),
        (f"x = {'-' * 200000}1\n", "W020", "is not Python that can be read (it is nested too deeply): Triton fails"),
        ("class Model:\n    def execute(self, requests): ...\n", "W021", "has no class TritonPythonModel"),
        ("class TritonPythonModel:\n    def run(self, requests): ...\n", "W021", "without execute"),
        ("# class TritonPythonModel: def execute\n", "W021", "has no class"),
    ],
    ids=[
        "syntax",
        "return outside",
        "null byte",
        "encoding",
        "a long sum",
        "signs",
        "other class",
        "other method",
        "a comment",
    ],
)
def test_code_that_the_python_backend_cannot_use(files: Files, code: str, expected: str, says: str) -> None:
    files.write("1/model.py", code)
    found = files.only()
    assert (found.code, found.place) == (expected, "models.m.backend")
    assert f"model_repository/m/1/model.py {'is' if expected == 'W020' else 'has'}" in found.message
    assert says in found.message


@pytest.mark.parametrize(
    "code",
    [
        "from mine import TritonPythonModel\n",
        "from mine import Model as TritonPythonModel\n",
        "from mine import *\n",
        "import mine\nTritonPythonModel = mine.Model\n",
        "import mine\nclass TritonPythonModel(mine.Model): ...\n",
        "try:\n    from mine import TritonPythonModel\nexcept ImportError:\n    from other import TritonPythonModel\n",
        "class TritonPythonModel:\n    async def execute(self, requests): ...\n",
        "import mine\nclass TritonPythonModel:\n    execute = mine.execute\n",
        "import mine\nclass TritonPythonModel(metaclass=mine.Meta): ...\n",
        "import mine\n@mine.model\nclass TritonPythonModel: ...\n",
        "import mine\nclass TritonPythonModel: ...\nTritonPythonModel.execute = mine.execute\n",
        "import mine\nclass TritonPythonModel: ...\nsetattr(TritonPythonModel, 'execute', mine.execute)\n",
        "import mine\nclass TritonPythonModel: ...\nTritonPythonModel = mine.with_execute(TritonPythonModel)\n",
        "import mine\nclass TritonPythonModel: ...\nmine.add_execute(to=TritonPythonModel)\n",
        "class TritonPythonModel:\n    def initialize(self, args):\n        self.execute = args.pop('execute')\n",
        "import mine\nclass TritonPythonModel:\n    def __getattr__(self, name): return getattr(mine, name)\n",
        "class TritonPythonModel: ...\nfrom mine import TritonPythonModel\n",
    ],
)
def test_code_that_gets_its_class_from_elsewhere_is_taken(files: Files, code: str) -> None:
    files.write("1/model.py", code)
    assert files.findings() == []


EXECUTE = "the python backend calls execute(self, requests)"
INITIALIZE = "the python backend calls initialize(self, args)"
MENDS = "write initialize(self, args), execute(self, requests) and finalize(self); what has a default may be added"


@pytest.mark.parametrize(
    ("method", "says"),
    [
        ("def execute(requests): ...", f"execute(requests) in line 2, and {EXECUTE}"),
        ("def execute(self, requests, more): ...", f"execute(self, requests, more) in line 2, and {EXECUTE}"),
        ("async def execute(self, a, *, b): ...", f"execute(self, a, *, b) in line 2, and {EXECUTE}"),
        ("def initialize(self): ...", f"initialize(self) in line 2, and {INITIALIZE}"),
        ("def initialize(): ...", f"initialize() in line 2, and {INITIALIZE}"),
        ("def finalize(self, x): ...", "finalize(self, x) in line 2, and the python backend calls finalize(self)"),
    ],
)
def test_a_method_that_cannot_be_called_as_the_python_backend_calls_it(files: Files, method: str, says: str) -> None:
    others = "" if "execute" in method else "    def execute(self, requests): ...\n"
    files.write("1/model.py", f"class TritonPythonModel:\n    {method}\n{others}")
    found = files.only()
    assert (found.code, found.place) == ("W046", "models.m.backend")
    assert found.message == (
        f"model_repository/m/1/model.py has {says}: the call fails: Triton does not load the model, or every request "
        f"fails, or nothing is finalized; {MENDS}"
    )


@pytest.mark.parametrize(
    "method",
    [
        "def execute(self, requests, /, more=None, *others, flag=False, **rest): ...",
        "def execute(self, *requests): ...",
        "def execute(*given): ...",
        "@staticmethod\n    def execute(requests): ...",
        "import mine\n    @mine.wrapped\n    def execute(self, requests, more): ...",
        "def execute(self): ...\n    import mine\n    execute = mine.wrapped(execute)",
        "def execute(self): ...\n    def execute(self, requests): ...",
        "def helper(requests): ...\n    def execute(self, requests): ...",
    ],
)
def test_a_method_that_can_be_called_or_of_which_it_cannot_be_known_is_taken(files: Files, method: str) -> None:
    files.write("1/model.py", f"class TritonPythonModel:\n    {method}\n    def initialize(self, args): ...\n")
    assert files.findings() == []


def test_the_code_is_read_and_not_run(files: Files) -> None:
    mark = files.folder / "ran"
    files.write("1/model.py", f"open({str(mark)!r}, 'w')\n{CODE}")
    assert files.findings() == []
    assert not mark.exists()


def test_missing_code(files: Files) -> None:
    (files.version / "model.py").unlink()
    found = files.only()
    assert (found.code, found.place) == ("W019", "models.m.backend")
    assert "model_repository/m/1/model.py is missing: Triton hangs" in found.message


@pytest.mark.parametrize("code", [None, "from serve_app.triton.backend.onnx_model import TritonPythonModel\n"])
def test_nobody_is_told_to_pull_what_the_spec_has_no_weights_of(files: Files, code: str | None) -> None:
    files.model({"backend": "onnxruntime" if code is None else "python"}, profiles={"gpu": GPU})
    if code is not None:
        files.write("1/model.py", code)
    found = files.only()
    assert found.code == "W019"
    assert found.message.endswith("put the file there, or correct its name in the spec")
    assert "model_repository/m/1/model.onnx is missing" in found.message


USES_NUMPY = """
import triton_python_backend_utils as {alias}

class TritonPythonModel:
    def execute(self, requests):
        x = {alias}.get_input_tensor_by_name(requests[0], "x").as_numpy()
        y = {alias}.Tensor("y", x)
        return [{alias}.InferenceResponse([y])]
"""


@pytest.mark.parametrize("alias", ["pb_utils", "utils"])
def test_numpy_arrays_that_the_wheels_triton_misreads(files: Files, alias: str) -> None:
    files.spec({"profiles": {"embedded": {"triton": WHEEL}}})
    files.write("1/model.py", USES_NUMPY.format(alias=alias))
    found = files.only()
    assert (found.code, found.severity, found.place) == ("W029", "warning", "models.m.backend")
    assert f"calls as_numpy() in line 6, {alias}.Tensor(name, array) in line 7" in found.message
    assert found.message.endswith("write(name, array) of serve_app.triton.backend.tensors")


@pytest.mark.parametrize(
    "line",
    [
        "pb_utils.Tensor.from_dlpack('y', x)",
        "torch.Tensor(2, 3)",
        "answer.as_numpy('y')",
        "'pb_utils.Tensor(name, array)'",
    ],
)
def test_what_only_looks_like_such_arrays(files: Files, line: str) -> None:
    files.spec({"profiles": {"embedded": {"triton": WHEEL}}})
    files.write("1/model.py", f"{CODE}        {line}\n")
    assert files.findings() == []


def test_numpy_arrays_are_read_by_the_triton_of_a_container(files: Files) -> None:
    files.write("1/model.py", USES_NUMPY.format(alias="pb_utils"))
    assert files.findings() == []


# -- environments


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("$$TRITON_MODEL_DIRECTORY/environment.tar.gz", "model_repository/m/environment.tar.gz"),
        ("/no/such/environment.tar.gz", "/no/such/environment.tar.gz"),
    ],
)
def test_an_environment_that_does_not_exist(files: Files, path: str, shown: str) -> None:
    files.model({"parameters": {"EXECUTION_ENV_PATH": path}})
    found = files.only()
    assert (found.code, found.place) == ("W030", "models.m.parameters.EXECUTION_ENV_PATH")
    assert f"{shown} is missing: Triton refuses the model" in found.message


def test_an_environment_in_the_models_folder(files: Files) -> None:
    files.model({"parameters": {"EXECUTION_ENV_PATH": "$$TRITON_MODEL_DIRECTORY/environment.tar.gz"}})
    files.write("environment.tar.gz", b"")
    assert files.findings() == []


def test_a_file_that_the_spec_names_and_is_not_there(files: Files) -> None:
    files.model({"file": "modle.py"})
    found = files.only()
    assert (found.code, found.place) == ("W019", "models.m.file")
    assert found.message == (
        "model_repository/m/1/modle.py is missing: Triton hangs or fails when it loads the model; "
        "did you mean model.py?"
    )


def test_nothing_is_suggested_that_is_not_near(files: Files) -> None:
    files.model({"file": "entry.py"})
    assert files.only().message.endswith("; put the file there, or correct its name in the spec")


def test_what_another_devices_profile_loads_may_be_made_there(files: Files) -> None:
    overridden = {"gpu": {"backend": "tensorrt", "file": "model.plan"}}
    files.model({"profiles": overridden}, profiles={"gpu": GPU})
    assert files.findings() == []


# -- labels


def labelled(files: Files, tensor: str, text: str | None) -> None:
    files.model({"outputs": {"y": {"tensor": tensor, "labels": "labels.txt"}}})
    if text is not None:
        files.write("labels.txt", text)


@pytest.mark.parametrize(
    ("tensor", "text", "code", "says"),
    [
        ("float32[4]", None, "W022", "model_repository/m/labels.txt is missing"),
        ("float32[4]", "", "W023", "is empty"),
        ("float32[4]", "\n\n", "W023", "is empty"),
        ("float32[4]", "a\nb\nc\n", "W024", "has 3 labels for 4 values"),
        ("float32[2, 2]", "a\nb\nc\nd\ne\n", "W024", "has 5 labels for 4 values"),
    ],
)
def test_labels_that_do_not_fit(files: Files, tensor: str, text: str | None, code: str, says: str) -> None:
    labelled(files, tensor, text)
    found = files.only()
    assert (found.code, found.place) == (code, "models.m.outputs.y.labels")
    assert says in found.message


@pytest.mark.parametrize(
    ("tensor", "text"),
    [("float32[4]", "a\nb\nc\nd"), ("int32[1]", "a\nb\nc\n"), ("float32[-1]", "a\nb\n")],
    ids=["one for each value", "an index", "values that vary"],
)
def test_labels_that_fit(files: Files, tensor: str, text: str) -> None:
    labelled(files, tensor, text)
    assert files.findings() == []


# -- warm-ups and initial states


def warmed_up(files: Files) -> None:
    files.model({"warmup": [{"name": "w", "inputs": {"x": {"file": "x.raw"}}}]})


def with_state(files: Files) -> None:
    initial = [{"name": "zero", "tensor": "float32[4]", "file": "x.raw"}]
    state = {"input": "s_in", "output": "s_out", "tensor": "float32[4]", "initial": initial}
    sequence = {"direct": {}, "idle_timeout": "5s", "states": [state]}
    files.model({"backend": "mine", "batching": None, "sequence": sequence})  # the python backend keeps no state


@pytest.mark.parametrize(
    ("written", "folder", "place"),
    [
        (warmed_up, "warmup", "models.m.warmup.0.inputs.x.file"),
        (with_state, "initial_state", "models.m.sequence.states.0.initial.0.file"),
    ],
    ids=["warmup", "initial state"],
)
def test_a_file_of_a_tensor(files: Files, written: Callable[[Files], None], folder: str, place: str) -> None:
    written(files)
    missing = files.only()
    assert (missing.code, missing.place) == ("W027", place)
    assert f"model_repository/m/{folder}/x.raw is missing" in missing.message
    for size in (15, 17):
        files.write(f"{folder}/x.raw", bytes(size))
        other = files.only()
        assert (other.code, other.place) == ("W028", place)
        assert f"has {size} bytes and its tensor 16" in other.message
    files.write(f"{folder}/x.raw", bytes(16))
    assert files.findings() == []


# -- versions


def test_versions_that_do_not_exist(files: Files) -> None:
    files.model({"versions": {"only": [1, 7]}})
    found = files.only()
    assert (found.code, found.place) == ("W025", "models.m.versions")
    assert "model_repository/m/7 is missing" in found.message
    assert found.message.endswith("write model_repository/m/7/model.py, or correct versions")


@pytest.mark.parametrize(
    ("backend", "remedy"),
    [
        ("python", "write model_repository/m/1/model.py"),
        ("onnxruntime", "put the model there, as model_repository/m/1/model.onnx"),
        ("mine", "put the model there, as model_repository/m/1"),
    ],
)
def test_a_model_without_any_version_is_told_which_file_to_write(files: Files, backend: str, remedy: str) -> None:
    files.model({"backend": backend}, profiles={"gpu": GPU})
    (files.version / "model.py").unlink()
    files.version.rmdir()
    found = files.only()
    assert (found.code, found.place) == ("W025", "models.m")
    assert "model_repository/m/1 is missing" in found.message
    assert found.message.endswith(f"; {remedy}")


@pytest.mark.parametrize("name", ["01", "v2", "V2"])
def test_a_version_folder_that_triton_passes_over(files: Files, name: str) -> None:
    (files.folder / name).mkdir()
    found = files.only()
    assert (found.code, found.place) == ("W026", "models.m")
    assert f"call the folder '{name[-1]}'" in found.message


def of_versions(files: Files, policy: dict[str, Any], wanted: int) -> None:
    """An ensemble of one step, which wants a version of the model."""
    step = {"model": "m", "version": wanted, "takes": {"x": "x"}, "gives": {"y": "y"}}
    ensemble = {"inputs": {"x": "float32[4]"}, "outputs": {"y": "float32[4]"}, "max_batch": 8, "steps": [step]}
    files.model({"versions": policy}, ensembles={"e": ensemble})
    (files.project.repository / "e").mkdir()


@pytest.mark.parametrize("policy", [{"all": True}, {"latest": 2}], ids=["all", "latest"])
def test_a_step_of_a_version_that_no_folder_has(files: Files, policy: dict[str, Any]) -> None:
    of_versions(files, policy, 999999)
    (found,) = (each for each in examine_with_files(files.project.spec_file).findings if each.code == "T302")
    assert found.place == "ensembles.e.steps.0.version"
    assert found.message == (
        "m serves version 1 of model_repository/m, and the step wants 999999: Triton refuses to load the ensemble; "
        "leave version out for the latest, or serve that version"
    )


def test_a_step_of_a_version_that_is_there_and_not_among_the_latest(files: Files) -> None:
    files.write("2/model.py", CODE)
    of_versions(files, {"latest": 1}, 1)
    codes = {each.code: each.message for each in examine_with_files(files.project.spec_file).findings}
    assert "m serves version 2 of model_repository/m, and the step wants 1" in codes["T302"]


@pytest.mark.parametrize("wanted", [-1, 1, 2])
def test_a_step_of_a_version_that_is_served(files: Files, wanted: int) -> None:
    files.write("2/model.py", CODE)
    of_versions(files, {"all": True}, wanted)
    assert "T302" not in {each.code for each in examine_with_files(files.project.spec_file).findings}


def test_only_the_versions_that_are_served_need_files(files: Files) -> None:
    files.model({"versions": {"latest": 1}})
    files.write("10/model.py", CODE)
    (files.version / "model.py").unlink()
    assert files.findings() == []


def test_every_version_that_is_served_needs_its_files(files: Files) -> None:
    files.model({"versions": {"all": True}})
    files.write("2/model.py", "")
    assert files.only().code == "W021"


# -- what an earlier spec has left


def test_generated_files_of_a_model_that_is_gone_are_left_over(files: Files) -> None:
    spec = load_spec(files.project.spec_file)
    write_files(files.project, spec)
    assert left_over(files.project, spec) == []
    files.folder.rename(files.folder.with_name("gone"))
    write_files(files.project, spec)
    assert left_over(files.project, spec) == [
        "model_repository/gone: of a model that the spec does not have; remove the folder if you need nothing in it"
    ]


def test_a_generated_file_that_a_model_needs_no_more_is_left_over(files: Files) -> None:
    files.spec({"profiles": {"gpu": GPU}})
    write_files(files.project, load_spec(files.project.spec_file))
    files.spec({})
    spec = load_spec(files.project.spec_file)
    assert left_over(files.project, spec) == [
        "model_repository/m/configs/gpu.pbtxt: the spec asks for it no more; remove it"
    ]


def test_generated_code_is_left_over_only_where_no_profile_runs_it(files: Files) -> None:
    """As of an ONNX model that `tandem import` has made a python model of."""
    files.model({"backend": "onnx", "weights": {"file": "weights.onnx", "sha256": "0" * 64}})
    (files.version / "model.py").unlink()
    write_files(files.project, load_spec(files.project.spec_file))
    path = "model_repository/m/1/model.py"
    assert (files.project.root / path).is_file()
    files.model({"backend": "python"})
    assert left_over(files.project, load_spec(files.project.spec_file)) == []
    files.model({"backend": "python", "file": "other.py"})
    assert left_over(files.project, load_spec(files.project.spec_file)) == [
        f"{path}: the spec asks for it no more; remove it"
    ]


def test_the_command_says_what_is_left_over_and_its_check_fails(files: Files) -> None:
    files.spec({"profiles": {"gpu": GPU}})
    write_files(files.project, load_spec(files.project.spec_file))
    files.spec({})
    arguments = ["--project", str(files.project.root), "render"]
    written = CliRunner().invoke(main, arguments)
    assert written.exit_code == 0
    assert "left over: model_repository/m/configs/gpu.pbtxt" in written.output
    checked = CliRunner().invoke(main, [*arguments, "--check"])
    assert checked.exit_code == 1
    assert "left over: model_repository/m/configs/gpu.pbtxt" in checked.output
    assert (files.folder / "configs" / "gpu.pbtxt").exists()


def test_the_command_shows_files_with_the_rest_and_fails(files: Files) -> None:
    (files.version / "model.py").unlink()
    validate = CliRunner().invoke(main, ["--project", str(files.project.root), "validate", "--format", "github"])
    assert validate.exit_code == 1
    assert "W019" in validate.output


@pytest.mark.parametrize("odd", ODD)
def test_rendering_waits_for_no_odd_file_of_a_model_that_is_gone(files: Files, odd: str) -> None:
    (files.project.repository / "gone").mkdir()
    make, _ = ODD[odd]
    make(files.project.repository / "gone/config.pbtxt")
    shown = CliRunner().invoke(main, ["--project", str(files.project.root), "render"])
    assert (shown.exit_code, "left over" in shown.output) == (0, False)


@pytest.mark.parametrize("odd", ["a folder", "a FIFO", "a socket", "a link to a device"])
def test_rendering_does_not_replace_what_is_no_file(files: Files, odd: str) -> None:
    path = files.folder / "config.pbtxt"
    make, _ = ODD[odd]
    make(path)
    shown = CliRunner().invoke(main, ["--project", str(files.project.root), "render"])
    assert shown.exit_code == 1
    assert f"{path} is no file, and stands where a generated one belongs; remove it" in shown.output


def test_what_people_wrote_is_never_left_over(files: Files) -> None:
    other = files.project.repository / "mine"
    (other / "1").mkdir(parents=True)
    (other / "config.pbtxt").write_text('name: "mine"')
    (other / "1" / "model.py").write_text(CODE)
    assert left_over(files.project, load_spec(files.project.spec_file)) == []
