from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from serve_app.triton.preflight import findings
from tests.test_files import ODD

MODEL = "faces"


@pytest.fixture
def models(repository) -> Path:
    """A repository with one sound model over ONNX Runtime, `faces`, for both profiles."""
    repository.add_lookup(MODEL)
    folder = repository.folder / MODEL
    (folder / "configs").mkdir()
    (folder / "configs" / "gpu.pbtxt").write_text(f'name: "{MODEL}" backend: "onnxruntime"')
    return repository.folder


def append(models: Path, text: str) -> None:
    with (models / MODEL / "config.pbtxt").open("a") as config:
        config.write(text)


@pytest.mark.parametrize("config_name", [None, "gpu"])
def test_a_sound_model_has_no_findings(models, config_name):
    assert findings(models, [MODEL], config_name) == []


def test_the_models_that_are_not_asked_for_are_not_looked_at(models):
    (models / "half-written").mkdir()
    assert findings(models, [MODEL], None) == []


def test_a_missing_model_folder(models):
    assert findings(models, ["nose"], None) == [f"{models / 'nose'}: the model has no folder; run `tandem render`."]


@pytest.mark.parametrize(("config_name", "file"), [(None, "config.pbtxt"), ("gpu", "configs/gpu.pbtxt")])
def test_a_missing_configuration(models, config_name, file):
    (models / MODEL / file).unlink()
    assert findings(models, [MODEL], config_name) == [f"{models / MODEL / file}: missing; run `tandem render`."]


def test_a_configuration_that_triton_cannot_read(models):
    append(models, "rate_limiter {}")
    (finding,) = findings(models, [MODEL], None)
    assert finding.startswith(f"{models / MODEL / 'config.pbtxt'}: not a model configuration (")
    assert "rate_limiter" in finding


def test_a_name_that_is_not_the_folders(models):
    shutil.move(models / MODEL, models / "nose")
    assert findings(models, ["nose"], None) == [
        f"{models / 'nose' / 'config.pbtxt'}: the name is 'faces', and Triton wants that of the folder, 'nose'."
    ]


@pytest.mark.parametrize("wrong", ["01", "v1", "V1"])
def test_a_version_folder_that_triton_passes_over(models, wrong):
    folder = models / MODEL
    (folder / "1").rename(folder / wrong)
    assert findings(models, [MODEL], None) == [
        f"{folder / wrong} is no version: Triton passes over it; call the folder '1'.",
        f"{folder} holds no version: Triton serves the others only, and with none it refuses the model; "
        f"write models/{MODEL}/1/model.py.",
    ]


def test_the_model_code_that_triton_hangs_without(models):
    file = models / MODEL / "1" / "model.py"
    file.unlink()
    assert findings(models, [MODEL], None) == [
        f"{file} is missing: Triton hangs or fails when it loads the model; run `tandem render`, or write it."
    ]


def test_a_misspelt_default_file_name(models):
    append(models, ' default_model_filename: "modle.py"')
    file = models / MODEL / "1" / "modle.py"
    assert findings(models, [MODEL], None) == [
        f"{file} is missing: Triton hangs or fails when it loads the model; did you mean model.py?"
    ]


def test_nobody_is_told_to_render_code_that_only_its_author_can_write(models):
    append(models, ' default_model_filename: "entry.py"')
    (finding,) = findings(models, [MODEL], None)
    assert finding.endswith("; put the file there, or correct its name in the spec.")


@pytest.mark.parametrize("odd", [odd for odd in ODD if odd not in ("nothing", "a link to nothing")])
def test_a_configuration_in_an_odd_state(models, odd):
    file = models / MODEL / "config.pbtxt"
    file.unlink()
    make, says = ODD[odd]
    make(file)
    assert findings(models, [MODEL], None) == [f"{file}: cannot be read: {says}; remove it, then run `tandem render`."]


def test_a_file_in_the_place_of_a_models_folder(models):
    (models / "nose").touch()
    assert findings(models, ["nose"], None) == [
        f"{models / 'nose'} is a file, where a folder belongs; remove it, then run `tandem render`."
    ]


def test_missing_weights_of_the_shared_onnx_model(models):
    file = models / MODEL / "1" / "model.onnx"
    file.unlink()
    assert findings(models, [MODEL], None) == [
        f"{file} is missing: Triton hangs or fails when it loads the model; run `tandem models pull` if the spec "
        "gives the model weights, else put the file there."
    ]


def test_missing_weights_of_a_native_model(models):
    file = models / MODEL / "1" / "model.onnx"
    file.unlink()
    assert findings(models, [MODEL], "gpu") == [
        f"{file} is missing: Triton hangs or fails when it loads the model; run `tandem models pull` if the spec "
        "gives the model weights, else put the file there."
    ]


def test_a_missing_label_file(models):
    append(models, ' output [{name: "class" data_type: TYPE_FP32 dims: [3] label_filename: "labels.txt"}]')
    assert findings(models, [MODEL], None) == [
        f"{models / MODEL / 'labels.txt'} is missing: Triton refuses the model; write it, one label a line, "
        "or correct its name in the spec."
    ]


def test_a_version_that_the_policy_wants_and_is_not_there(models):
    append(models, " version_policy {specific {versions: [1, 7]}}")
    assert findings(models, [MODEL], None) == [
        f"{models / MODEL / '7'} is missing: Triton serves the others only, and with none it refuses the model; "
        f"write models/{MODEL}/7/model.py, or correct versions."
    ]


def test_only_the_version_that_is_loaded_needs_its_files(models):
    (models / MODEL / "1").rename(models / MODEL / "10")
    (models / MODEL / "9").mkdir()
    assert findings(models, [MODEL], None) == []


def test_an_ensemble_whose_step_is_missing(models):
    folder = models / "both"
    (folder / "1").mkdir(parents=True)
    (folder / "config.pbtxt").write_text(
        'platform: "ensemble" ensemble_scheduling {step [{model_name: "faces"}, {model_name: "nose"}]}'
    )
    assert findings(models, ["both"], None) == [
        f"{folder / 'config.pbtxt'}: a step uses the model 'nose', which {models} does not have."
    ]
