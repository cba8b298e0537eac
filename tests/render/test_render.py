from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from google.protobuf import text_format
from ray.serve.schema import ServeDeploySchema
from tritonclient.grpc import model_config_pb2 as pb

from serve_app.project import Project, stale_files, write_files
from serve_app.render import render
from serve_app.spec import Spec, digest, load_spec

PROJECT = Project(Path(__file__).parents[2])


@pytest.fixture(scope="module")
def spec() -> Spec:
    return PROJECT.spec()


def config(spec: Spec, path: str) -> pb.ModelConfig:
    return text_format.Parse(render(spec)[f"model_repository/{path}"], pb.ModelConfig())


def test_the_committed_files_are_what_the_spec_says(spec: Spec) -> None:
    assert stale_files(PROJECT, spec) == {}


def test_rendering_is_deterministic(spec: Spec) -> None:
    assert render(spec) == render(PROJECT.spec())


def test_a_generated_file_says_from_what_and_by_which_command(spec: Spec) -> None:
    for name, text in render(spec).items():
        assert text.startswith("#"), name
        assert "# Generated from cluster/spec.yaml by `tandem render`; change that file, not this one.\n" in text, name


def test_tensors_are_rendered_without_the_batch_dimension(spec: Spec) -> None:
    rec = config(spec, "paddleocr_rec/config.pbtxt")
    assert [(i.name, i.data_type, list(i.dims)) for i in rec.input] == [("crop", pb.TYPE_UINT8, [48, -1, 3])]
    assert [(o.name, o.data_type, list(o.dims), o.label_filename) for o in rec.output] == [
        ("indices", pb.TYPE_INT32, [-1], "labels.txt"),
        ("confidences", pb.TYPE_FP32, [-1], ""),
    ]


def test_the_queue_delay_is_30_percent_of_the_budget_unless_given(spec: Spec) -> None:
    assert spec.models["arcface"].latency_budget.total_seconds() == 0.15
    assert config(spec, "arcface/configs/gpu.pbtxt").dynamic_batching.max_queue_delay_microseconds == 45_000
    assert config(spec, "arcface/config.pbtxt").dynamic_batching.max_queue_delay_microseconds == 2_000


def test_the_queue_timeout_is_the_sla_less_the_budgets_of_the_longest_path(spec: Spec) -> None:
    """verify: face_detector 100, arcface 150, liveness 30, antifraud 30 ms of 8 s; embed alone would allow 1.75 s."""
    policy = config(spec, "arcface/config.pbtxt").dynamic_batching.default_queue_policy
    assert policy.default_timeout_microseconds == 8_000_000 - 310_000
    assert policy.allow_timeout_override
    assert policy.timeout_action == pb.ModelQueuePolicy.REJECT
    assert policy.max_queue_size == 128


def test_every_tier_has_its_priority_level_and_wake_ups_one_below(spec: Spec) -> None:
    batching = config(spec, "arcface/config.pbtxt").dynamic_batching
    assert (batching.priority_levels, batching.default_priority_level) == (4, 2)
    assert list(batching.priority_queue_policy) == [4]
    assert batching.priority_queue_policy[4].default_timeout_microseconds == 1


def test_profiles_differ_in_backend_and_sizes_and_not_in_tensors(spec: Spec) -> None:
    for name in spec.models:
        embedded, gpu = config(spec, f"{name}/config.pbtxt"), config(spec, f"{name}/configs/gpu.pbtxt")
        assert list(embedded.input) == list(gpu.input)
        assert list(embedded.output) == list(gpu.output)
        assert embedded.backend == "python"
        assert embedded.instance_group[0].kind == pb.ModelInstanceGroup.KIND_CPU
    assert config(spec, "arcface/configs/gpu.pbtxt").backend == "onnxruntime"
    assert config(spec, "arcface/configs/gpu.pbtxt").instance_group[0].kind == pb.ModelInstanceGroup.KIND_GPU
    assert config(spec, "liveness/configs/gpu.pbtxt").backend == "python"


def test_an_onnx_model_gets_its_code_and_a_python_model_keeps_its_own(spec: Spec) -> None:
    files = render(spec)
    assert "from serve_app.triton.backend.onnx_model import" in files["model_repository/arcface/1/model.py"]
    assert "model_repository/liveness/1/model.py" not in files


def test_serve_config_is_valid_and_holds_the_specs_values(spec: Spec) -> None:
    data = yaml.safe_load(render(spec)["serve_config.yaml"])
    schema = ServeDeploySchema.model_validate(data)
    assert schema.http_options.port == spec.service.port
    assert data["http_options"]["request_timeout_s"] == 12
    application = data["applications"][0]
    assert application["args"] == {"profile": "embedded", "spec": digest(spec)}
    deployments = {deployment["name"]: deployment for deployment in application["deployments"]}
    assert list(deployments) == ["Triton", "faces", "documents", "liveness", "Ingress"]
    faces = spec.stages["faces"].replicas
    assert faces is not None
    assert deployments["faces"]["max_ongoing_requests"] == faces.max_ongoing_requests
    assert deployments["faces"]["autoscaling_config"]["max_replicas"] == faces.autoscaling.max_replicas
    assert deployments["faces"]["ray_actor_options"]["memory"] == faces.memory
    assert deployments["Ingress"]["max_queued_requests"] == spec.ingress.max_queued_requests


def test_writing_makes_stale_files_current_and_touches_no_other(tmp_path: Path, spec: Spec) -> None:
    project = Project(tmp_path)
    project.spec_file.parent.mkdir()
    project.spec_file.write_text(PROJECT.spec_file.read_text())
    assert set(write_files(project, spec)) == set(render(spec))
    assert write_files(project, spec) == []
    changed = project.root / "model_repository/arcface/config.pbtxt"
    changed.write_text(changed.read_text().replace("max_batch_size: 16", "max_batch_size: 32"))
    diff = stale_files(project, load_spec(project.spec_file))
    assert list(diff) == ["model_repository/arcface/config.pbtxt"]
    assert "-max_batch_size: 32\n+max_batch_size: 16\n" in diff["model_repository/arcface/config.pbtxt"]
    assert write_files(project, spec) == ["model_repository/arcface/config.pbtxt"]
