"""Simplifying networks without changing what they compute: constants folded, layers merged, slow operators rewritten.

Every function changes the model that it is given; `graph.finish` clears away what it leaves behind.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

from serve_app.model import Array
from serve_app.weights import graph


def dequantize(quantized: Array, scale: Array, zero_point: Array, axis: int, block_size: int) -> Array:
    """DequantizeLinear as of ONNX opset 21: (x - zero_point) · scale, per tensor, per axis, or per block along it."""

    def spread(parameter: Array) -> Array:
        if block_size:
            index = [slice(None)] * quantized.ndim
            index[axis] = slice(quantized.shape[axis])
            return np.repeat(parameter, block_size, axis=axis)[tuple(index)]
        if parameter.ndim == 0:
            return parameter
        shape = [1] * quantized.ndim
        shape[axis] = -1
        return parameter.reshape(shape)

    shifted = quantized.astype(np.int32) - spread(zero_point.astype(np.int32))
    return shifted.astype(np.float32) * spread(scale.astype(np.float32))


def fold_constants(model: ModelProto) -> None:
    """Replaces DequantizeLinear and Reshape of constants by initializers."""
    nodes = model.graph.node
    known = graph.initializers(model)
    for node in list(nodes):
        if node.op_type not in {"DequantizeLinear", "Reshape"} or not all(name in known for name in node.input):
            continue
        first, second, *rest = (numpy_helper.to_array(known[name]) for name in node.input)
        if node.op_type == "Reshape":
            folded = first.reshape(second.tolist())
        else:
            axis, block_size = graph.attribute(node, "axis"), graph.attribute(node, "block_size")
            zero_point = rest[0] if rest else np.zeros_like(second, first.dtype)
            folded = dequantize(
                first,
                second,
                zero_point,
                axis if isinstance(axis, int) else 1,
                block_size if isinstance(block_size, int) else 0,
            )
        graph.add_initializer(model, node.output[0], folded)
        known[node.output[0]] = model.graph.initializer[-1]
        nodes.remove(node)


def drop_dropout(model: ModelProto) -> None:
    """Takes Dropout nodes out, which do nothing outside training."""
    for node in [node for node in model.graph.node if node.op_type == "Dropout"]:
        graph.read_instead(model, node.output[0], node.input[0])
        model.graph.node.remove(node)


def fold_batch_normalization(model: ModelProto) -> None:
    """Merges each BatchNormalization that directly follows a Conv or Gemm of constants into its weight and bias.

    y = gamma · (x - mean) / sqrt(variance + epsilon) + beta (Ioffe and Szegedy 2015, at inference) is affine in x: it
    scales the weight's rows and moves the bias.
    """
    nodes = model.graph.node
    known = graph.initializers(model)
    made_by = {name: node for node in nodes for name in node.output}
    uses = Counter(name for node in nodes for name in node.input)
    uses.update(output.name for output in model.graph.output)
    for norm in [node for node in nodes if node.op_type == "BatchNormalization"]:
        layer = made_by.get(norm.input[0])
        if layer is None or uses[norm.input[0]] != 1 or not _can_take_an_affine(layer, known):
            continue
        gamma, beta, mean, variance = (numpy_helper.to_array(known[name]).astype(np.float64) for name in norm.input[1:])
        weight = numpy_helper.to_array(known[layer.input[1]])
        bias = numpy_helper.to_array(known[layer.input[2]]) if len(layer.input) > 2 else np.zeros_like(gamma)
        epsilon = graph.attribute(norm, "epsilon")
        scale = gamma / np.sqrt(variance + (epsilon if isinstance(epsilon, float) else 1e-5))
        in_columns = layer.op_type == "Gemm" and not graph.attribute(layer, "transB")
        rows = scale if in_columns else scale.reshape(-1, *[1] * (weight.ndim - 1))
        name = norm.output[0]
        parameters = [
            graph.add_initializer(model, f"{name}/weight", (weight * rows).astype(np.float32)),
            graph.add_initializer(model, f"{name}/bias", ((bias - mean) * scale + beta).astype(np.float32)),
        ]
        del layer.input[1:]
        layer.input.extend(parameters)
        layer.output[0] = name
        nodes.remove(norm)


def _can_take_an_affine(layer: NodeProto, known: dict[str, TensorProto]) -> bool:
    plain = all(graph.attribute(layer, name) in {None, 1.0} for name in ("alpha", "beta"))
    return layer.op_type in {"Conv", "Gemm"} and plain and all(name in known for name in layer.input[1:])


def rewrite_prelu(model: ModelProto) -> None:
    """Writes PRelu(x) = s·x + (1 - s)·Relu(x), which ONNX Runtime's CPU kernels compute in half the time."""
    known = graph.initializers(model)

    def rewritten(node: NodeProto) -> list[NodeProto]:
        if node.op_type != "PRelu" or node.input[1] not in known:
            return [node]
        (x, slope), y = node.input, node.output[0]
        rest = graph.add_initializer(model, f"{y}/rest", (1 - numpy_helper.to_array(known[slope])).astype(np.float32))
        return [
            helper.make_node("Relu", [x], [f"{y}/relu"]),
            helper.make_node("Mul", [f"{y}/relu", rest], [f"{y}/positive"]),
            helper.make_node("Mul", [x, slope], [f"{y}/linear"]),
            helper.make_node("Add", [f"{y}/linear", f"{y}/positive"], [y]),
        ]

    graph.set_nodes(model, [new for node in model.graph.node for new in rewritten(node)])
