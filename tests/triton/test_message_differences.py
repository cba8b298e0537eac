from __future__ import annotations

from google.protobuf import text_format
from tritonclient.grpc import model_config_pb2 as pb

from serve_app.triton.message_differences import Difference, differences


def parsed(text: str) -> pb.ModelConfig:
    return text_format.Parse(text, pb.ModelConfig())


def test_a_difference_names_its_field_and_both_values() -> None:
    first = parsed(
        'max_batch_size: 4 input [{ name: "x" dims: [3, 4] }, { name: "z" data_type: TYPE_FP32 }] '
        'parameters { key: "a" value { string_value: "1" } } '
        "dynamic_batching { preferred_batch_size: [1] }"
    )
    second = parsed('max_batch_size: 8 input [{ name: "x" dims: [3] }] metric_tags { key: "a" value: "b" }')
    assert differences(first, second) == [
        Difference("max_batch_size", "4", "8"),
        Difference("input[0].dims", "[3, 4]", "[3]"),
        Difference("input[1]", '{name: "z" data_type: TYPE_FP32}', "nothing"),
        Difference("dynamic_batching", "{preferred_batch_size: 1}", "nothing"),
        Difference("metric_tags['a']", "nothing", "'b'"),
        Difference("parameters['a']", '{string_value: "1"}', "nothing"),
    ]


def test_enums_and_flags_are_told_by_their_names() -> None:
    first = parsed('input [{ name: "x" format: FORMAT_NCHW optional: true }]')
    assert differences(first, parsed('input [{ name: "x" }]')) == [
        Difference("input[0].format", "FORMAT_NCHW", "FORMAT_NONE"),
        Difference("input[0].optional", "true", "false"),
    ]


def test_the_same_message_does_not_differ_from_itself() -> None:
    assert differences(parsed("dynamic_batching {}"), parsed("dynamic_batching {}")) == []
