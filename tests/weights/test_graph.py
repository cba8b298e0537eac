from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from serve_app.weights import graph

NETWORK = """
<ir_version: 8, opset_import: ["": 17]>
network (float[N, 3, H, W] x) => (float[N, 2, H, W] y)
<float half = {0.5}>
{ centred = Sub (x, half)
  y = Conv <kernel_shape = [3, 3], pads = [1, 1, 1, 1]> (centred, w) }
"""


@pytest.fixture
def weight(random):
    return random.standard_normal((2, 3, 3, 3)).astype(np.float32)


@pytest.fixture
def model(weight):
    model = onnx.parser.parse_model(NETWORK)
    model.graph.initializer.append(numpy_helper.from_array(weight, "w"))
    return model


def reloaded(model) -> onnx.ModelProto:
    return graph.load(model.SerializeToString())


def test_constants_and_stray_entries_are_no_inputs_of_a_loaded_model(model):
    for name in ("w", "left_behind"):
        model.graph.input.append(helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [1]))
    assert [entry.name for entry in reloaded(model).graph.input] == ["x"]


def test_constant_nodes_become_initializers(model, runner, random):
    x = random.random((1, 3, 4, 4), np.float32)
    (expected,) = runner(model.SerializeToString())(x=x)
    kept = [tensor for tensor in model.graph.initializer if tensor.name != "half"]
    half = helper.make_node("Constant", [], ["half"], value=numpy_helper.from_array(np.float32(0.5)))
    del model.graph.initializer[:]
    model.graph.initializer.extend(kept)
    model.graph.node.insert(0, half)
    loaded = reloaded(model)
    assert "Constant" not in [node.op_type for node in loaded.graph.node]
    (actual,) = runner(graph.finish(loaded))(x=x)
    np.testing.assert_array_equal(actual, expected)


def test_a_finished_model_has_only_what_its_outputs_need(model):
    graph.append(model, "half_way () => (float[N, 3, H, W] centred) { unused = Relu (y) }")
    finished = onnx.load_from_string(graph.finish(model))
    assert [node.op_type for node in finished.graph.node] == ["Sub"]
    assert [tensor.name for tensor in finished.graph.initializer] == ["half"]


def test_a_model_of_opset_21_gets_the_ir_version_that_knows_it(model):
    assert onnx.load_from_string(graph.finish(model)).ir_version == 8
    model.opset_import[0].version = 21
    assert onnx.load_from_string(graph.finish(model)).ir_version == 10


def test_uint8_images_are_normalised_and_turned_to_channels_first(model, runner, random):
    images = random.integers(0, 256, (2, 5, 4, 3), np.uint8)
    (expected,) = runner(model.SerializeToString())(
        x=((images - np.float32(100)) * np.float32(0.25)).transpose(0, 3, 1, 2)
    )
    graph.take_uint8_images(model, "image", "height", 4, mean=100.0, scale=0.25)
    finished = graph.finish(model)
    (actual,) = runner(finished)(image=images)
    np.testing.assert_array_equal(actual, expected)
    (entry,) = onnx.load_from_string(finished).graph.input
    assert [dim.dim_param or dim.dim_value for dim in entry.type.tensor_type.shape.dim] == ["batch", "height", 4, 3]


def test_a_network_with_reversed_channels_sees_bgr_as_it_saw_rgb(model, runner, random):
    image = random.random((1, 3, 4, 4), np.float32)
    (expected,) = runner(model.SerializeToString())(x=image)
    graph.reverse_input_channels(model)
    (actual,) = runner(graph.finish(model))(x=image[:, ::-1])
    np.testing.assert_allclose(actual, expected, atol=1e-6)


def test_channels_are_not_reversed_through_a_node_that_mixes_them():
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 17]> n (float[N, 3, 4, 4] x) => (float[N, 3, 4, 4] y) { y = Softmax (x) }'
    )
    with pytest.raises(ValueError, match=r"^Softmax stands between the input and the first Conv$"):
        graph.reverse_input_channels(model)


def test_a_value_that_no_node_computes_is_named(model):
    with pytest.raises(ValueError, match=r"^no node of the graph computes 'cls_8'$"):
        graph.producer(model, "cls_8")
