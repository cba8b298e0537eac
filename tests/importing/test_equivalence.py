from __future__ import annotations

import pytest
from google.protobuf import text_format
from tritonclient.grpc import model_config_pb2 as pb

from serve_app.importing.equivalence import Device, normalised
from serve_app.triton.message_differences import differences


def parsed(text: str) -> pb.ModelConfig:
    return text_format.Parse(text, pb.ModelConfig())


@pytest.mark.parametrize(
    ("short", "long"),
    [
        ("", "version_policy { latest { num_versions: 1 } }"),
        ("", "instance_group [{ kind: KIND_AUTO count: 1 }]"),
        ("instance_group [{ kind: KIND_GPU }]", "instance_group [{ kind: KIND_GPU count: 1 }]"),
        ("instance_group [{ count: -3 }]", "instance_group [{ count: 1 }]"),
        (
            'backend: "onnxruntime" instance_group [{ kind: KIND_CPU }]',
            'backend: "onnxruntime" instance_group [{ kind: KIND_CPU count: 2 }]',
        ),
        ('platform: "tensorrt_plan"', 'backend: "tensorrt"'),
        ('backend: "python"', 'backend: "python" default_model_filename: "model.py"'),
        ('platform: "onnxruntime_onnx"', 'backend: "onnxruntime" default_model_filename: "model.onnx"'),
        ('platform: "tensorflow_graphdef"', 'backend: "tensorflow" default_model_filename: "model.graphdef"'),
        ("dynamic_batching {}", "dynamic_batching { default_queue_policy {} }"),
        ("dynamic_batching {}", "dynamic_batching { default_priority_level: 2 priority_queue_policy { key: 1 } }"),
        ("sequence_batching {}", "sequence_batching { direct {} max_sequence_idle_microseconds: 1000000 }"),
        ("", "model_transaction_policy { decoupled: false } response_cache {} optimization {} model_metrics {}"),
        ("ensemble_scheduling {}", 'ensemble_scheduling {} platform: "ensemble"'),
    ],
)
def test_what_triton_assumes_may_be_left_out(short: str, long: str) -> None:
    assert differences(normalised(parsed(short), "gpu"), normalised(parsed(long), "gpu")) == []


def test_only_where_version_1_is_alone_is_the_latest_version_1() -> None:
    first = parsed("version_policy { specific { versions: 1 } }")
    assert normalised(parsed(""), "gpu", ["1"]) == normalised(first, "gpu")
    assert differences(normalised(parsed(""), "gpu", ["1", "2"]), normalised(first, "gpu"))
    assert differences(normalised(parsed("version_policy { all {} }"), "gpu", ["1"]), normalised(first, "gpu"))


@pytest.mark.parametrize(
    ("device", "backend", "kind"),
    [("cpu", "python", "CPU"), ("cpu", "onnxruntime", "CPU"), ("gpu", "onnxruntime", "GPU"), ("gpu", "python", "AUTO")],
)
def test_where_a_model_without_instance_group_runs(device: Device, backend: str, kind: str) -> None:
    (group,) = normalised(parsed(f'backend: "{backend}"'), device).instance_group
    assert group.kind == pb.ModelInstanceGroup.Kind.Value(f"KIND_{kind}")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("", "optimization { input_pinned_memory {} }"),
        ('platform: "tensorflow_graphdef"', 'platform: "tensorflow_savedmodel"'),
        ("", "version_policy { latest { num_versions: 2 } }"),
        ("", "dynamic_batching {}"),
        ('input [{ name: "x" reshape {} }]', 'input [{ name: "x" }]'),
        ("instance_group [{ kind: KIND_CPU }]", "instance_group [{ kind: KIND_GPU }]"),
        ('backend: "pytorch" platform: "torch_aoti"', 'backend: "pytorch"'),
    ],
)
def test_what_means_something_else_differs(one: str, other: str) -> None:
    assert differences(normalised(parsed(one), "gpu"), normalised(parsed(other), "gpu"))


@pytest.mark.parametrize(("device", "count"), [("cpu", 2), ("gpu", 1)])
def test_how_many_instances_run_on_what_is_there_depends_on_the_device(device: Device, count: int) -> None:
    assert normalised(parsed('backend: "onnxruntime"'), device).instance_group[0].count == count
