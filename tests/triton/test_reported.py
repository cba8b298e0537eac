"""What Triton reports of a model against what it was given; what it fills in by itself is no difference."""

from __future__ import annotations

from pathlib import Path

import pytest
import tritonclient.grpc as triton
from google.protobuf import text_format
from tritonclient.grpc import model_config_pb2 as pb

from serve_app.triton.error import TritonError
from serve_app.triton.message_differences import Difference
from serve_app.triton.reported import config_differences
from serve_app.triton.server import TritonServer

CODE = """
class TritonPythonModel:
    def execute(self, requests):
        return []
"""
TENSORS = (
    'input [{name: "x" data_type: TYPE_FP32 dims: [4]}] output [{name: "y" data_type: TYPE_FP32 dims: [4]}]'
    "version_policy {specific {versions: 1}}"
)
GROUP = "instance_group [{kind: KIND_CPU count: 1}]"
LOADED = {
    "plain": GROUP,
    "group_of_any_kind": "max_batch_size: 4 instance_group [{}]",
    "several_groups": 'max_batch_size: 4 instance_group [{kind: KIND_CPU count: 2}, {kind: KIND_CPU name: "own"}]',
    "batching": f"max_batch_size: 8 dynamic_batching {{max_queue_delay_microseconds: 7}} {GROUP}",
    "batching_with_sizes": f"max_batch_size: 8 dynamic_batching {{preferred_batch_size: [2, 4]}} {GROUP}",
    "batching_of_nothing": f"dynamic_batching {{}} {GROUP}",
    "priorities": f"max_batch_size: 8 dynamic_batching {{priority_levels: 2 default_priority_level: 1 "
    f"priority_queue_policy {{key: 2 value {{max_queue_size: 3}}}}}} {GROUP}",
    "direct": f"max_batch_size: 8 sequence_batching {{direct {{}}}} {GROUP}",
    "oldest": f"max_batch_size: 8 sequence_batching {{oldest {{max_candidate_sequences: 4}}}} {GROUP}",
    "memory": f"optimization {{input_pinned_memory {{enable: false}} cuda {{graphs: true}}}} {GROUP}",
    "cached": f"response_cache {{enable: true}} {GROUP}",
    "decoupled": f"model_transaction_policy {{decoupled: true}} {GROUP}",
    "tagged": f'metric_tags {{key: "a" value: "b"}} parameters {{key: "p" value {{string_value: "q"}}}} {GROUP}',
}


def config(text: str, name: str = "m") -> pb.ModelConfig:
    return text_format.Parse(f'name: "{name}" backend: "python" {TENSORS} {text}', pb.ModelConfig())


@pytest.mark.parametrize("name", LOADED)
def test_what_triton_fills_in_is_no_difference(name: str, server: TritonServer, shared_folder: Path) -> None:
    wanted = config(LOADED[name], f"reported_{name}")
    folder = shared_folder / "models" / wanted.name
    (folder / "1").mkdir(parents=True)
    (folder / "1" / "model.py").write_text(CODE)
    (folder / "config.pbtxt").write_text(text_format.MessageToString(wanted))
    with triton.InferenceServerClient(server.address) as client:
        client.load_model(wanted.name, client_timeout=20)
        reported = client.get_model_config(wanted.name).config
        client.unload_model(wanted.name)
    assert reported != wanted  # or there would be nothing to see here
    assert config_differences(wanted, reported) == []


@pytest.mark.parametrize(
    ("wanted", "reported", "expected"),
    [
        (
            "dynamic_batching {max_queue_delay_microseconds: 7}",
            "dynamic_batching {max_queue_delay_microseconds: 8}",
            ("dynamic_batching.max_queue_delay_microseconds", "7", "8"),
        ),
        ("dynamic_batching {}", "", ("dynamic_batching", "{}", "nothing")),
        ("", "dynamic_batching {}", ("dynamic_batching", "nothing", "{}")),
        ('parameters {key: "p" value {string_value: "q"}}', "", ("parameters['p']", '{string_value: "q"}', "nothing")),
        ('metric_tags {key: "p" value: "q"}', 'metric_tags {key: "p" value: "r"}', ("metric_tags['p']", "'q'", "'r'")),
        (
            "instance_group [{kind: KIND_CPU count: 2}]",
            'instance_group [{kind: KIND_CPU count: 1 name: "m_0"}]',
            ("instance_group[0].count", "2", "1"),
        ),
        (
            "instance_group [{kind: KIND_MODEL}]",
            'instance_group [{kind: KIND_CPU count: 1 name: "m_0"}]',
            ("instance_group[0].kind", "KIND_MODEL", "KIND_CPU"),
        ),
        ("", "response_cache {enable: true}", ("response_cache", "nothing", "{enable: true}")),
        (
            "optimization {input_pinned_memory {enable: false}}",
            "",
            ("optimization.input_pinned_memory.enable", "false", "true"),
        ),
    ],
)
def test_every_other_difference_is_told_with_both_values(
    wanted: str, reported: str, expected: tuple[str, str, str]
) -> None:
    pinned = "" if "optimization" in reported else "optimization {input_pinned_memory {enable: true} "
    pinned += "output_pinned_memory {enable: true}}"
    running = config(f'default_model_filename: "model.py" {reported} {pinned}')
    assert config_differences(config(wanted), running) == [Difference(*expected)]


def test_the_gpus_of_a_group_that_names_none_are_the_machines() -> None:
    wanted = config("instance_group [{kind: KIND_GPU}]")
    running = config('instance_group [{kind: KIND_GPU count: 1 gpus: [0, 1] name: "m_0"}]')
    running.optimization.input_pinned_memory.enable = running.optimization.output_pinned_memory.enable = True
    assert config_differences(wanted, running) == []


@pytest.mark.asyncio(loop_scope="session")
async def test_a_server_tells_the_configurations_of_its_ready_models(server: TritonServer) -> None:
    found = await server.configs(10)
    assert {"lookup", "reverse"} <= set(found)
    assert found["lookup"].dynamic_batching.max_queue_delay_microseconds == 100000


async def test_a_server_that_has_ended_tells_none(start, repository) -> None:  # type: ignore[no-untyped-def]
    repository.add_lookup()
    own = await start()
    await own.stop(0)
    with pytest.raises(TritonError, match="Triton does not run"):
        await own.configs(1)
