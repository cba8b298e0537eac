from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from onnx.reference import ReferenceEvaluator

from serve_app.weights import fold, graph


def parse(text: str, **constants) -> onnx.ModelProto:
    model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["": 21]> {text}')
    model.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in constants.items())
    return model


def operators(model) -> list[str]:
    return [node.op_type for node in onnx.load_from_string(graph.finish(model)).graph.node]


@pytest.mark.parametrize(
    ("scale_shape", "attributes"),
    [
        pytest.param((), "", id="per tensor"),
        pytest.param((6,), "<axis = 1>", id="per axis"),
        pytest.param((6,), "", id="per axis, by default the second"),
        pytest.param((4, 2), "<axis = 1, block_size = 3>", id="per block"),
        pytest.param((4, 2), "<axis = 1, block_size = 4>", id="per block, the last one shorter"),
        pytest.param((2, 6), "<axis = 0, block_size = 2>", id="per block along the first axis"),
    ],
)
@pytest.mark.parametrize("zero_point", ["", ", z"])
def test_dequantized_and_reshaped_constants_fold_to_what_onnx_computes(random, scale_shape, attributes, zero_point):
    model = parse(
        f"""n (float[8, 3] x) => (float[8, 3] y)
        {{ d = DequantizeLinear {attributes} (q, s{zero_point})
           r = Reshape (d, shape)
           y = Add (x, r) }}""",
        q=random.integers(-128, 128, (4, 6), np.int8),
        s=random.random(scale_shape, np.float32),
        z=random.integers(-128, 128, scale_shape).astype(np.int8),
        shape=np.array([8, -1]),
    )
    x = random.random((8, 3), np.float32)
    (expected,) = ReferenceEvaluator(model).run(None, {"x": x})
    fold.fold_constants(model)
    assert operators(model) == ["Add"]
    (actual,) = ReferenceEvaluator(model).run(None, {"x": x})
    np.testing.assert_array_equal(actual, expected)


def normalised(random, channels: int) -> dict[str, np.ndarray]:
    return {name: (random.random(channels) + 0.5).astype(np.float32) for name in ("gamma", "beta", "mean", "variance")}


NORM = "y = BatchNormalization <epsilon = 0.001> (c, gamma, beta, mean, variance)"
LAYERS = {
    "Conv": (f"{{ c = Conv (x, w) {NORM} }}", (2, 3, 5, 5), (4, 3, 2, 2)),
    "Conv with bias": (f"{{ c = Conv (x, w, b) {NORM} }}", (2, 3, 5, 5), (4, 3, 2, 2)),
    "depth-wise Conv": (f"{{ c = Conv <group = 4> (x, w) {NORM} }}", (2, 4, 5, 5), (4, 1, 2, 2)),
    "Gemm": (f"{{ c = Gemm (x, w, b) {NORM} }}", (2, 3), (3, 4)),
    "Gemm, transposed": (f"{{ c = Gemm <transB = 1> (x, w, b) {NORM} }}", (2, 3), (4, 3)),
}


@pytest.mark.parametrize("layer", LAYERS)
def test_batch_normalization_merges_into_the_layer_before_it(random, layer):
    body, x_shape, w_shape = LAYERS[layer]
    rank = "N, C, H, W" if len(x_shape) == 4 else "N, C"
    constants = {"w": random.standard_normal(w_shape).astype(np.float32), "b": random.random(4, np.float32)}
    model = parse(f"n (float[{rank}] x) => (float[{rank}] y) {body}", **constants, **normalised(random, 4))
    x = random.standard_normal(x_shape).astype(np.float32)
    (expected,) = ReferenceEvaluator(model).run(None, {"x": x})
    fold.fold_batch_normalization(model)
    assert operators(model) == [layer.split()[0].strip(",") if layer != "depth-wise Conv" else "Conv"]
    (actual,) = ReferenceEvaluator(model).run(None, {"x": x})
    np.testing.assert_allclose(actual, expected, atol=1e-5)


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(f"{{ c = Conv (x, w) {NORM} z = Relu (c) }}", id="others read the layer too"),
        pytest.param(f"{{ a = Conv (x, w) c = Relu (a) {NORM} z = Identity (x) }}", id="not directly after a layer"),
    ],
)
def test_batch_normalization_stays_where_merging_would_change_the_result(random, body):
    weight = random.random((4, 3, 2, 2), np.float32)
    model = parse(
        f"n (float[N, C, H, W] x) => (float[N, C, H, W] y, float[N, D, K, L] z) {body}",
        w=weight,
        **normalised(random, 4),
    )
    before = operators(model)
    fold.fold_batch_normalization(model)
    assert operators(model) == before


def test_a_gemm_with_a_factor_keeps_its_batch_normalization(random):
    model = parse(
        f"n (float[N, C] x) => (float[N, D] y) {{ c = Gemm <alpha = 0.5> (x, w) {NORM} }}",
        w=random.random((3, 4), np.float32),
        **normalised(random, 4),
    )
    fold.fold_batch_normalization(model)
    assert operators(model) == ["Gemm", "BatchNormalization"]


def test_a_rewritten_prelu_computes_the_same(random):
    slope = random.uniform(-1, 2, (3, 1, 1)).astype(np.float32)
    model = parse("n (float[N, 3, 4, 4] x) => (float[N, 3, 4, 4] y) { y = PRelu (x, slope) }", slope=slope)
    x = random.standard_normal((2, 3, 4, 4)).astype(np.float32)
    fold.rewrite_prelu(model)
    assert "PRelu" not in operators(model)
    (actual,) = ReferenceEvaluator(model).run(None, {"x": x})
    np.testing.assert_allclose(actual, np.where(x < 0, slope * x, x), atol=1e-6)


def test_a_prelu_whose_slope_is_computed_stays():
    model = parse("n (float[N, 3] x, float[3] s) => (float[N, 3] y) { y = PRelu (x, s) }")
    fold.rewrite_prelu(model)
    assert operators(model) == ["PRelu"]


def test_dropout_goes(random):
    model = parse("n (float[N, 3] x) => (float[N, 3] y) { d = Dropout (x) y = Relu (d) }")
    fold.drop_dropout(model)
    assert operators(model) == ["Relu"]
