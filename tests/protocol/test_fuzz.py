"""Whatever comes in, the codec answers with a request that fits, or with a refusal; nothing else ever leaves it."""

from __future__ import annotations

import contextlib
import json
import math
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tritonclient.grpc import service_pb2 as pb

from serve_app.protocol.datatypes import BYTES, SIZES, split
from serve_app.protocol.grpc_request import parsed, rewritten
from serve_app.protocol.http_request import index_is_of_ready_models
from serve_app.protocol.refusals import Refusal
from tests.protocol.codec import LIMITS, SIGNATURES, add_json, add_message, context, one_input, read

FUZZ = settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
MODELS = st.sampled_from(["add", "every", "text", "scores", "tally"])

numbers = st.integers() | st.integers(0, 3) | st.floats()
scalars = st.none() | st.booleans() | numbers | st.text(max_size=5)
anything = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
)
names = st.sampled_from([name for model in SIGNATURES.values() for name in model.inputs]) | anything
wires = st.sampled_from(list(SIZES)) | anything
shapes = st.lists(st.integers(-1, 4), max_size=3) | anything
values = st.lists(scalars, max_size=4) | st.lists(st.lists(st.integers(0, 3), max_size=2), max_size=2) | anything
sizes = st.fixed_dictionaries({"binary_data_size": st.integers(-1, 12)})
members: dict[str, st.SearchStrategy[Any]] = {"name": names, "datatype": wires, "shape": shapes}
tensors = st.fixed_dictionaries(members, optional={"data": values, "parameters": sizes | anything}) | anything
known = st.sampled_from(["priority", "timeout", "sequence_id", "sequence_start", "binary_data_output"])
parameters = st.dictionaries(known | st.text(max_size=9), scalars, max_size=3)
bodies = st.fixed_dictionaries(
    {"inputs": st.lists(tensors, max_size=3) | anything},
    optional={
        "id": scalars,
        "parameters": parameters | anything,
        "outputs": st.lists(st.fixed_dictionaries({"name": names | st.just("OUTPUT_SUM")}), max_size=2) | anything,
    },
)


def check(request: pb.ModelInferRequest) -> None:
    """That Triton can take it, told by the spec alone."""
    signature = SIGNATURES[request.model_name]
    given = [tensor.name for tensor in request.inputs]
    assert len(set(given)) == len(given) == len(request.raw_input_contents)
    assert signature.required <= set(given) <= set(signature.inputs)
    batches = set()
    for tensor, raw in zip(request.inputs, request.raw_input_contents, strict=True):
        wanted = signature.inputs[tensor.name]
        assert tensor.datatype == wanted.wire
        assert len(tensor.shape) == len(wanted.dims)
        assert all(have > 0 and want in (-1, have) for have, want in zip(tensor.shape, wanted.dims, strict=True))
        elements = math.prod(tensor.shape)
        if wanted.wire == BYTES:
            assert len(split(raw)) == elements
        else:
            assert len(raw) == elements * SIZES[wanted.wire]
        if wanted.batched:
            batches.add(tensor.shape[0])
        assert not tensor.parameters
        assert not tensor.HasField("contents")
    assert len(batches) <= 1
    assert all(batch <= signature.max_batch for batch in batches)
    requested = [output.name for output in request.outputs]
    assert len(set(requested)) == len(requested)
    assert set(requested) <= set(signature.outputs)
    level = request.parameters["priority"].uint64_param if "priority" in request.parameters else None
    assert level is None or (signature.levels is not None and 1 <= level <= signature.levels)
    assert 0 < request.parameters["timeout"].int64_param <= 8_000_000
    assert not [name for name in request.parameters if name.startswith(("shared_memory", "triton_"))]


def http(body: bytes, length: int | None, model: str) -> bool:
    try:
        if length is None:
            request, _ = read(body, model)
        else:
            request, _ = read(body[:length], model, binary=body[length:])
    except Refusal as refusal:
        refused = refusal
    else:
        check(request)
        return True
    assert 400 <= refused.status < 500
    return False


@FUZZ
@given(body=st.binary(max_size=200), length=st.none() | st.integers(0, 200), model=MODELS)
def test_any_bytes_over_http(body: bytes, length: int | None, model: str) -> None:
    http(body, length, model)
    with contextlib.suppress(Refusal):
        index_is_of_ready_models(body, LIMITS)


@FUZZ
@given(body=bodies | anything, binary=st.none() | st.binary(max_size=16), model=MODELS)
def test_any_json_over_http(body: Any, binary: bytes | None, model: str) -> None:
    head = json.dumps(body).encode()
    http(head + (binary or b""), None if binary is None else len(head), model)


@FUZZ
@given(st.data())
def test_good_requests_over_http_with_one_thing_replaced(data: st.DataObject) -> None:
    model = data.draw(st.sampled_from(["add", "every"]))
    body = add_json(parameters={}) if model == "add" else one_input()
    replaced = data.draw(st.sampled_from(["name", "datatype", "shape", "data", "parameters", "id", "nothing"]))
    if replaced in ("id", "parameters"):
        body[replaced] = data.draw(parameters | anything)
    elif replaced != "nothing":
        body["inputs"][0][replaced] = data.draw({**members, "data": values}[replaced])
    accepted = http(json.dumps(body).encode(), None, model)
    assert accepted or replaced != "nothing"


parameter = st.builds(
    lambda choice: pb.InferParameter(**choice),
    st.sampled_from(["int64_param", "uint64_param"]).flatmap(
        lambda field: st.fixed_dictionaries({field: st.integers(0 if field[0] == "u" else -(2**63), 2**63 - 1)})
    )
    | st.fixed_dictionaries({"string_param": st.text(st.characters(exclude_categories=["Cs"]), max_size=5)})
    | st.fixed_dictionaries({"bool_param": st.booleans()})
    | st.fixed_dictionaries({"double_param": st.floats()})
    | st.just({}),
)
contents = st.builds(
    pb.InferTensorContents,
    int_contents=st.lists(st.integers(-(2**31), 2**31 - 1), max_size=3),
    fp32_contents=st.lists(st.floats(width=32), max_size=3),
    bytes_contents=st.lists(st.binary(max_size=3), max_size=3),
)
text_names = st.sampled_from([name for model in SIGNATURES.values() for name in model.inputs] + ["", "é"])
inputs = st.builds(
    pb.ModelInferRequest.InferInputTensor,
    name=text_names,
    datatype=st.sampled_from([*SIZES, ""]),
    shape=st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(0, 3), max_size=3),
    contents=st.none() | contents,
    parameters=st.dictionaries(st.sampled_from(["shared_memory_region", "x"]), parameter, max_size=1),
)
messages = st.builds(
    pb.ModelInferRequest,
    model_name=MODELS,
    model_version=st.sampled_from(["", "1", "2", "x"]),
    id=st.sampled_from(["", "a", "\0"]),
    parameters=st.dictionaries(
        st.sampled_from(["priority", "timeout", "sequence_id", "sequence_end", "mine", ""]), parameter, max_size=3
    ),
    inputs=st.lists(inputs, max_size=3),
    raw_input_contents=st.lists(st.binary(max_size=9), max_size=3),
)


def grpc(data: bytes) -> None:
    try:
        message = parsed(data, LIMITS)
        request = rewritten(message, SIGNATURES.find(message.model_name), context(), LIMITS)
    except Refusal as refusal:
        refused = refusal
    else:
        check(request)
        return
    assert 400 <= refused.status < 500


@FUZZ
@given(messages)
def test_any_message_over_grpc(message: pb.ModelInferRequest) -> None:
    grpc(message.SerializeToString())


@FUZZ
@given(st.data())
def test_bytes_of_a_good_message_changed_over_grpc(data: st.DataObject) -> None:
    raw = bytearray(add_message().SerializeToString())
    for _ in range(data.draw(st.integers(1, 4))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    grpc(bytes(raw[: data.draw(st.integers(0, len(raw)))]) if data.draw(st.booleans()) else bytes(raw))


@pytest.mark.parametrize("model", ["add", "every"])
def test_what_the_fuzz_starts_from_is_accepted(model: str) -> None:
    assert http(json.dumps(add_json() if model == "add" else one_input()).encode(), None, model)
