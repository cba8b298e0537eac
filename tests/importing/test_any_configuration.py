"""Whatever a config.pbtxt says: it is carried, or it is said that it is not."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from google.protobuf import text_format
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tritonclient.grpc import model_config_pb2 as pb

from serve_app.importing.conversion import import_repository
from serve_app.importing.equivalence import normalised
from serve_app.render.triton import model_config

SCALARS = {
    FieldDescriptor.CPPTYPE_BOOL: st.booleans(),
    FieldDescriptor.CPPTYPE_INT32: st.sampled_from([-1, 0, 1, 2, 8, -(2**31), 2**31 - 1]),
    FieldDescriptor.CPPTYPE_INT64: st.sampled_from([-1, 0, 1, 3, 224, 2**63 - 1]),
    FieldDescriptor.CPPTYPE_UINT32: st.sampled_from([0, 1, 2, 100, 2**32 - 1]),
    FieldDescriptor.CPPTYPE_UINT64: st.sampled_from([0, 1, 2, 1500, 10**6, 2**64 - 1]),
    FieldDescriptor.CPPTYPE_FLOAT: st.floats(width=32),
    FieldDescriptor.CPPTYPE_DOUBLE: st.floats(),
    FieldDescriptor.CPPTYPE_STRING: st.sampled_from(["", "x", "y", "1", "no", "model.onnx"]) | st.text(max_size=3),
}


@st.composite
def messages(draw: Any, descriptor: Descriptor) -> dict[str, Any]:
    """The fields of a message, as its constructor takes them; one of each group of which only one may be there."""
    fields: dict[str, Any] = {}
    chosen: set[str] = set()
    some = (
        st.lists(st.sampled_from(list(descriptor.fields)), unique=True, max_size=7)
        if descriptor.fields
        else st.just([])
    )
    for field in draw(some):
        group = field.containing_oneof.name if field.containing_oneof else field.name
        if group not in chosen:
            chosen.add(group)
            fields[field.name] = draw(values(field))
    return fields


def values(field: FieldDescriptor) -> st.SearchStrategy[Any]:
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        key, value = field.message_type.fields
        return st.dictionaries(SCALARS[key.cpp_type], one(value), max_size=2)
    return st.lists(one(field), max_size=2) if field.is_repeated else one(field)


def one(field: FieldDescriptor) -> st.SearchStrategy[Any]:
    if field.message_type is not None:
        return st.deferred(lambda: messages(field.message_type))
    if field.enum_type is not None:
        return st.sampled_from([value.number for value in field.enum_type.values])
    return SCALARS[field.cpp_type]


TENSOR = {"name": "x", "data_type": pb.TYPE_FP32, "dims": [4]}
CONFIGS = st.tuples(
    st.just({"backend": "python", "input": [TENSOR], "output": [TENSOR]}), messages(pb.ModelConfig.DESCRIPTOR)
)


@settings(max_examples=100)
@example(
    {
        "backend": "python",
        "input": [TENSOR],
        "output": [TENSOR],
        "dynamic_batching": {"priority_levels": 1, "priority_queue_policy": {2**64 - 1: {}}},
    }
)
@given(CONFIGS.map(lambda parts: {**parts[0], **parts[1]}))
def test_any_configuration_is_carried_or_said_not_to_be(fields: dict[str, Any]) -> None:
    config = pb.ModelConfig(**fields)
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "m/1").mkdir(parents=True)
        (Path(folder) / "m/config.pbtxt").write_text(text_format.MessageToString(config), encoding="utf-8")
        imported = import_repository(Path(folder))
    if imported.not_carried:
        return
    spec = imported.report.spec
    assert spec is not None
    profile = spec.primary_profile
    config.name = "m"
    device = spec.profiles[profile].device
    assert normalised(config, device, ["1"]) == normalised(model_config(spec, "m", profile), device)
