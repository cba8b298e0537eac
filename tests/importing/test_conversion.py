"""What becomes of a repository's models: each feature of Triton in the spec's words, and what is said of the rest."""

from __future__ import annotations

import pytest
import yaml

from serve_app.importing.completion import completed
from serve_app.importing.equivalence import normalised
from serve_app.importing.error import RepositoryError
from serve_app.importing.repository import Found
from serve_app.render.triton import model_config
from serve_app.spec.schema import ProfileName
from tests.importing.carried import CARRIED, ENSEMBLE, NATIVE
from tests.importing.conftest import PYTHON, TENSORS, Repository, lost, original


@pytest.mark.parametrize("config", CARRIED.values(), ids=CARRIED)
def test_a_model_renders_to_what_it_was(config: str, repository: Repository) -> None:
    repository.add("m", config, "1/model.py", "warmup/x.bin", "names.txt")
    imported = repository.imported()
    assert lost(imported) == []
    spec = imported.report.spec
    assert spec is not None
    profile = spec.primary_profile
    device = "cpu" if profile == "embedded" else "gpu"
    assert normalised(model_config(spec, "m", profile), device) == normalised(original(config, "m"), device, ["1"])


def test_an_ensemble_renders_to_what_it_was(repository: Repository) -> None:
    repository.add("a", PYTHON, "1/model.py")
    repository.add("b", PYTHON, "1/model.py")
    repository.add("both", ENSEMBLE, "1/.gitkeep")
    assert normalised(repository.rendered("both"), "cpu") == normalised(original(ENSEMBLE, "both"), "cpu", ["1"])


def test_an_ordinary_repository_becomes_a_spec_without_findings(repository: Repository) -> None:
    batching = "dynamic_batching { max_queue_delay_microseconds: 2000 }"
    repository.add("a", f"{PYTHON} {batching}", "1/model.py")
    repository.add("b", f'platform: "tensorrt_plan" {TENSORS} {batching}', "1/model.plan")
    repository.add("both", ENSEMBLE, "1/.gitkeep")
    imported = repository.imported()
    assert (lost(imported), imported.report.findings) == ([], [])
    assert imported.complete


def test_an_entry_says_only_what_differs_from_the_specs_defaults(repository: Repository) -> None:
    repository.add(
        "resnet",
        f'platform: "tensorrt_plan" {TENSORS} instance_group [{{ count: 2 kind: KIND_GPU }}] '
        "version_policy { specific { versions: 1 } } dynamic_batching { max_queue_delay_microseconds: 2000 }",
    )
    assert (
        """
models:
  resnet:
    backend: tensorrt
    inputs: {x: "float32[4]"}
    outputs: {y: "float32[4]"}
    max_batch: 8
    batching: {queue_delay: 2ms, priorities: none}
    instances: 2
    exposed: true
"""
        in repository.imported().text
    )


@pytest.mark.parametrize(
    ("configs", "profile"),
    [
        ([PYTHON], "embedded"),
        ([f'backend: "python" {TENSORS}'], "embedded"),
        ([PYTHON, f'backend: "python" {TENSORS} instance_group [{{ kind: KIND_GPU }}]'], "gpu"),
        ([PYTHON, NATIVE], "gpu"),
    ],
)
def test_the_profile_is_the_one_that_the_models_need(configs: list[str], profile: str, repository: Repository) -> None:
    for number, config in enumerate(configs):
        repository.add(f"m{number}", config)
    assert list(repository.spec().profiles) == [profile]


def test_the_gpu_profile_has_the_gpus_and_backends_of_the_models(repository: Repository) -> None:
    repository.add("a", f"{NATIVE} instance_group [{{ kind: KIND_GPU gpus: [0, 2] }}]")
    repository.add("b", PYTHON)
    triton = repository.spec().profiles["gpu"].triton
    assert (triton.gpus, triton.backends) == (3, ["onnxruntime", "python"])


def test_a_field_that_the_wheels_server_does_not_know_asks_for_another_server(repository: Repository) -> None:
    limited = ENSEMBLE.replace("ensemble_scheduling {", "ensemble_scheduling { max_inflight_requests: 4")
    for name, config in {"a": PYTHON, "b": PYTHON, "both": limited}.items():
        repository.add(name, config, "1/model.py")
    triton = repository.spec().profiles["embedded"].triton
    assert (triton.version, triton.requirement) == ("2.63.0", None)


def test_the_profile_can_be_chosen(repository: Repository) -> None:
    repository.add("m", PYTHON)
    imported = repository.imported("gpu")
    assert imported.report.spec is not None
    assert list(imported.report.spec.profiles) == ["gpu"]
    assert lost(imported) == []


def test_triton_makes_two_instances_of_an_onnx_model_on_a_cpu_and_the_spec_says_so(repository: Repository) -> None:
    repository.add("m", f"{NATIVE} instance_group [{{ kind: KIND_CPU }}]")
    assert repository.rendered("m").instance_group[0].count == 2
    assert "# Triton makes two instances on a CPU" in repository.imported().text


@pytest.mark.parametrize(
    ("config", "versions", "instances", "says"),
    [
        (PYTHON, ["1"], None, None),
        (f"{PYTHON} version_policy {{ latest {{ num_versions: 1 }} }}", ["1"], None, {"latest": 1}),
        (PYTHON, ["2"], None, {"latest": 1}),
        (PYTHON, ["1", "2"], None, {"latest": 1}),
        (NATIVE, ["1"], None, None),
        (f'backend: "tensorrt" {TENSORS}', ["1"], None, None),
        # On the GPUs, or wherever the backend likes: neither is what the spec assumes.
        (f'backend: "openvino" {TENSORS}', ["1"], {"kind": "auto"}, None),
    ],
)
def test_what_nobody_wrote_is_left_out_unless_the_spec_would_say_otherwise(
    config: str, versions: list[str], instances: object, says: object, repository: Repository
) -> None:
    repository.add("m", config, *(f"{version}/model" for version in versions))
    (entry,) = yaml.safe_load(repository.imported().text)["models"].values()
    assert (entry.get("instances"), entry.get("versions")) == (instances, says)


def test_a_python_model_that_is_left_to_triton_runs_on_the_gpus_of_a_gpu_profile(repository: Repository) -> None:
    repository.add("m", f'backend: "python" {TENSORS}')
    assert "instances" not in repository.imported("embedded").text
    assert "instances: {kind: auto}" in repository.imported("gpu").text


def test_the_backend_is_found_as_triton_finds_it(repository: Repository) -> None:
    for name, file in {"a": "model.py", "b": "model.onnx", "c": "model.plan", "d": "model.pt"}.items():
        repository.add(name, TENSORS, f"1/{file}")
    repository.add("e", TENSORS, "1/model.savedmodel/saved_model.pb")
    repository.add("f.identity", TENSORS)
    imported = repository.imported()
    assert imported.report.spec is not None
    assert {name: model.backend for name, model in imported.report.spec.models.items()} == {
        "a": "python",
        "b": "onnxruntime",
        "c": "tensorrt",
        "d": "pytorch",
        "e": "tensorflow",
        "f.identity": "identity",
    }


def test_all_that_is_not_carried_is_listed_and_the_rest_is_carried(repository: Repository) -> None:
    repository.add("good", PYTHON, "1/model.py")
    repository.add("misspelt", "max_batch_size: 8\nmax_batchsize: 8")
    repository.add("template", 'name: "template"\nmax_batch_size: ${batch}')
    repository.add("marked", f"\ufeff{PYTHON}")
    repository.add("undone", 'backend: "vllm"')
    repository.add("old", f'platform: "custom" {TENSORS}')
    repository.add("untyped", 'backend: "python" input [{ name: "x" dims: [1] }] output [{ name: "y" dims: [1] }]')
    repository.add("flat", f'backend: "python" {TENSORS} input [{{ name: "z" data_type: TYPE_BOOL }}]')
    repository.add("varied", PYTHON, "configs/large.pbtxt")
    repository.add("renamed", f'name: "original" {PYTHON}')
    repository.add("doubled", f'{PYTHON} input [{{ name: "x" data_type: TYPE_FP32 dims: [4] }}]')
    (repository.folder / "broken").mkdir()
    (repository.folder / "broken/config.pbtxt").write_bytes(b'name: "\xff"')
    imported = repository.imported()
    assert lost(imported) == [
        "broken: broken/config.pbtxt is not UTF-8 text (byte 7); Triton refuses it",
        'doubled: input[1] was {name: "x" data_type: TYPE_FP32 dims: 4}, and is nothing',
        "flat: input z has no dims; add them",
        "marked: marked/config.pbtxt begins with a byte order mark, which Triton refuses; save it without",
        'misspelt: misspelt/config.pbtxt:2: Message type "inference.ModelConfig" has no field named "max_batchsize".',
        "old: Triton knows no platform 'custom', and no file tells which it is; name the backend",
        "template: template/config.pbtxt:2: 'max_batch_size: ${batch}': Couldn't parse integer: $; "
        "this is a template: fill in its ${…} first",
        "undone: it names no inputs and no outputs: the vllm backend completes them when it loads the model; "
        "write down what it then reports",
        "untyped: input x has no data_type; add it",
        "varied: configs/large.pbtxt: a variant of the configuration; give what differs from config.pbtxt as the "
        "override of a profile",
    ]  # fmt: skip
    assert not imported.complete
    assert [found.name for found in imported.carried] == ["doubled", "good", "renamed", "varied"]
    assert imported.report.spec is not None
    assert list(imported.report.spec.models) == ["doubled", "good", "renamed", "varied"]


def test_the_folders_name_wins_over_the_configurations(repository: Repository) -> None:
    repository.add("folder", f'name: "original" {PYTHON}', "1/model.py")
    imported = repository.imported()
    assert lost(imported) == []
    assert [(found.name, found.other_name) for found in imported.renamed] == [("folder", "original")]
    assert "  # Its configuration called it 'original'; Triton wants the folder's name.\n  folder:" in imported.text


def test_a_model_that_is_not_carried_stays_as_a_comment_to_complete(repository: Repository) -> None:
    repository.add("m", PYTHON)
    repository.add("undone", 'backend: "vllm" instance_group [{ kind: KIND_MODEL }]')
    text = repository.imported().text
    assert "  # undone is not carried: it names no inputs" in text
    assert "  # undone:\n  #   backend: vllm\n  #   inputs: {}\n" in text
    assert "  #   instances: {kind: model}\n" in text


def test_what_cannot_be_seen_is_escaped_in_comments_too(repository: Repository) -> None:
    repository.add("good", PYTHON)
    repository.add("m", f'backend: "python" {TENSORS} input [{{ name: "a\\001b\\u2028" }}]')
    imported = repository.imported()
    assert "# m is not carried: input a\\u0001b\\u2028 has no dims" in imported.text
    assert [found.name for found in imported.carried] == ["good"]
    assert len(imported.not_carried) == 1


def test_a_value_that_the_spec_refuses_keeps_its_model_out_and_says_why(repository: Repository) -> None:
    repository.add("good", PYTHON)
    repository.add("m", f"{PYTHON} dynamic_batching {{ max_queue_delay_microseconds: 18446744073709551615 }}")
    imported = repository.imported()
    (loss,) = lost(imported)
    assert loss.startswith("m: models.m.batching.queue_delay: '18446744073709551615us'")
    assert [found.name for found in imported.carried] == ["good"]


@pytest.mark.parametrize("bound", ["0.0001", "-1", "nan", "inf", "1e300"])
def test_a_bucket_that_is_no_duration_keeps_its_model_out(bound: str, repository: Repository) -> None:
    repository.add("good", PYTHON)
    control = f'metric_identifier {{ family: "f" }} histogram_options {{ buckets: [{bound}] }}'
    repository.add("m", f"{PYTHON} model_metrics {{ metric_control [{{ {control} }}] }}")
    imported = repository.imported()
    (loss,) = lost(imported)
    assert loss.startswith("m: a histogram has a bucket of ")
    assert [found.name for found in imported.carried] == ["good"]


def test_what_triton_would_refuse_is_carried_and_found_in_the_spec(repository: Repository) -> None:
    repository.add("m", f"{PYTHON} dynamic_batching {{ preferred_batch_size: [16] }}", "1/model.py")
    imported = repository.imported()
    assert lost(imported) == []
    assert [finding.place for finding in imported.report.errors] == ["models.m.batching.preferred_sizes.0"]
    assert not imported.complete


def test_files_without_which_a_model_does_not_load_are_named(repository: Repository) -> None:
    labelled = PYTHON.replace('name: "y"', 'name: "y" label_filename: "labels.txt"')
    given = 'data_type: TYPE_FP32 dims: 4 input_data_file: "x.bin"'
    warmup = f'model_warmup [{{ name: "w" batch_size: 1 inputs {{ key: "x" value {{ {given} }} }} }}]'
    repository.add("m", f"{labelled} {warmup}", "1/README")
    repository.add("n", PYTHON)
    assert repository.imported().unfit == [
        "m/labels.txt is missing",
        "m/warmup/x.bin is missing",
        "m/1/model.py is missing",
        "n holds no version",
    ]


@pytest.mark.parametrize("profile", ["embedded", "gpu"])
def test_code_that_the_server_misreads_is_told_from_files_that_are_missing(
    repository: Repository, profile: ProfileName
) -> None:
    """Only the wheel's Triton, that of the embedded profile, was compiled against NumPy 1."""
    labelled = PYTHON.replace('name: "y"', 'name: "y" label_filename: "labels.txt"')
    repository.add("m", labelled, "1/model.py")
    code = "class TritonPythonModel:\n    def execute(self, requests):\n        requests[0].as_numpy()\n"
    (repository.folder / "m/1/model.py").write_text(code)
    (repository.folder / "m/labels.txt").write_text("a\n")
    imported = repository.imported(profile)
    assert imported.unfit == []
    misread = "m/1/model.py calls as_numpy() in line 3: the python backend of Triton 2.51 and older"
    labels = "m/labels.txt has 1 labels for 4 values: labels and classes do not belong together"
    assert imported.doubtful[0] == labels
    assert [line.startswith(misread) for line in imported.doubtful[1:]] == ([True] if profile == "embedded" else [])


def test_a_folder_without_models_is_refused_with_what_is_expected(repository: Repository) -> None:
    repository.add("docs", None, "README.md")
    with pytest.raises(RepositoryError, match=r"there is no model in .*: expected .*/MODEL/config.pbtxt$"):
        repository.imported()


def test_a_single_models_folder_is_told_from_a_repository(repository: Repository) -> None:
    repository.add("m", PYTHON, "1/model.py")
    with pytest.raises(RepositoryError, match="is a single model; give the folder that it is in"):
        Repository(repository.folder / "m").imported()


def test_the_application_is_called_as_the_folder(repository: Repository) -> None:
    repository.add("m", PYTHON)
    assert repository.spec().application == "my_models_v2"


def test_completing_changes_nothing_of_what_is_there(repository: Repository) -> None:
    given = original(PYTHON, "m")
    before = given.SerializeToString()
    completed(Found("m", repository.folder, given), "cpu")
    assert given.SerializeToString() == before
