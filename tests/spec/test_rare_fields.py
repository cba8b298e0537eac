"""The rare rest of a model's configuration, in Triton's own terms."""

from __future__ import annotations

from typing import Any

import pytest
from tritonclient.grpc import model_config_pb2 as pb

from serve_app.spec.checks.rare_fields import WORDS
from serve_app.spec.model import RARE_FIELDS
from tests.rules.case import report


def test_every_field_of_a_model_configuration_has_a_word_or_is_a_rare_one() -> None:
    assert sorted([*WORDS, *RARE_FIELDS]) == sorted(pb.ModelConfig.DESCRIPTOR.fields_by_name)


@pytest.mark.parametrize(
    "fields",
    [
        {"model_operations": {"op_library_filename": ["ops.so"]}},
        {"cc_model_filenames": {"7.5": "turing.plan"}},
        {"model_repository_agents": {"agents": [{"name": "checksum", "parameters": {"MD5:1/model.onnx": "0"}}]}},
        {"runtime": "libtriton_python.so"},
    ],
    ids=lambda fields: next(iter(fields)),
)
def test_a_rare_field_as_triton_has_it_is_taken(fields: dict[str, Any]) -> None:
    assert report({"models": {"m": {"triton": fields}}}).findings == []


@pytest.mark.parametrize("field", RARE_FIELDS)
@pytest.mark.parametrize(
    "value", [3, True, [1], [None], {"a": {"b": [1]}}, {"agents": ["x"]}, {"op_library_filename": [None]}], ids=repr
)
def test_a_value_of_another_type_is_one_clear_finding(field: str, value: object) -> None:
    (found,) = report({"models": {"m": {"triton": {field: value}}}}).findings
    assert (found.code, found.place) == ("T173", f"models.m.triton.{field}")
    assert "Available Fields" not in found.message
