"""Surgery on ONNX graphs: reading them, putting pre- and post-processing around them, writing them.

Every function but `load` and `finish` changes the model that it is given and may leave unused nodes, initializers and
stale shapes behind, which `finish` clears away. What is put before or after a network is written in ONNX's own text
form (onnx.parser).
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import onnx
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper

from serve_app.model import Array

_FIRST_IR_WITH_OPSET_21 = 10


def load(source: bytes) -> ModelProto:
    """The model in `source`, with constants as initializers and nothing but real inputs as inputs.

    Exporters write constants as `Constant` nodes, files older than IR 4 list every initializer as an input too, and
    quantisers leave inputs behind that nothing reads.
    """
    model = onnx.load_from_string(source)
    graph = model.graph
    for node in [node for node in graph.node if node.op_type == "Constant"]:
        tensor = attribute(node, "value")
        if isinstance(tensor, TensorProto):
            tensor.name = node.output[0]
            graph.initializer.append(tensor)
            graph.node.remove(node)
    read = {name for node in graph.node for name in node.input}
    inputs = [entry for entry in graph.input if entry.name in read - set(initializers(model))]
    del graph.input[:]
    graph.input.extend(inputs)
    return model


def finish(model: ModelProto) -> bytes:
    """The model as a file, reduced to what its outputs need."""
    graph = model.graph
    wanted = {output.name for output in graph.output}
    nodes: list[NodeProto] = []
    for node in reversed(graph.node):
        if wanted.intersection(node.output):
            wanted.update(node.input)
            nodes.append(node)
    set_nodes(model, nodes[::-1])
    kept = [tensor for tensor in graph.initializer if tensor.name in wanted]
    del graph.initializer[:]
    graph.initializer.extend(kept)
    del graph.value_info[:]
    if any(entry.domain == "" and entry.version >= 21 for entry in model.opset_import):
        model.ir_version = max(model.ir_version, _FIRST_IR_WITH_OPSET_21)
    return model.SerializeToString()


def attribute(node: NodeProto, name: str) -> object:
    """The value of a node's attribute; None where it is not given."""
    return next((helper.get_attribute_value(entry) for entry in node.attribute if entry.name == name), None)


def initializers(model: ModelProto) -> dict[str, TensorProto]:
    """The model's constants by name."""
    return {tensor.name: tensor for tensor in model.graph.initializer}


def producer(model: ModelProto, name: str) -> NodeProto:
    """The node that computes `name`. Raises ValueError where none does."""
    for node in model.graph.node:
        if name in node.output:
            return node
    raise ValueError(f"no node of the graph computes {name!r}")


def rename(model: ModelProto, old: str, new: str) -> None:
    """Gives a value that a node computes another name."""
    outputs = producer(model, old).output
    outputs[list(outputs).index(old)] = new
    read_instead(model, old, new)


def append(model: ModelProto, text: str) -> None:
    """Puts a graph in ONNX's text form after the model: it reads the model's values and gives its outputs."""
    after = _parsed(text, "after")
    graph = model.graph
    graph.node.extend(after.node)
    graph.initializer.extend(after.initializer)
    del graph.output[:]
    graph.output.extend(after.output)


def prepend(model: ModelProto, text: str) -> None:
    """Puts a graph in ONNX's text form before the model: its only output feeds the model's only input."""
    before = _parsed(text, "before")
    graph = model.graph
    (network_input,), (output,) = graph.input, before.output
    read_instead(model, network_input.name, output.name)
    set_nodes(model, [*before.node, *graph.node])
    graph.initializer.extend(before.initializer)
    del graph.input[:]
    graph.input.extend(before.input)


def take_uint8_images(
    model: ModelProto, name: str, height: int | str, width: int | str, *, mean: float = 0.0, scale: float = 1.0
) -> None:
    """Gives the model one input `name`, uint8 [batch, height, width, 3], in place of its fp32 [N, 3, H, W] input.

    The network sees (image - mean) · scale, with the channels in the order that they came in.
    """
    centred = "centred = Sub (channels_first, mean)" if mean else "centred = Identity (channels_first)"
    scaled = f"{name}_for_network = Mul (centred, scale)" if scale != 1 else f"{name}_for_network = Identity (centred)"
    prepend(
        model,
        f"""
        image (uint8[batch, {height}, {width}, 3] {name}) => (float[batch, 3, {height}, {width}] {name}_for_network)
        <float mean = {{{mean!r}}}, float scale = {{{scale!r}}}>
        {{
            pixels = Cast <to = {TensorProto.FLOAT}> ({name})
            channels_first = Transpose <perm = [0, 3, 1, 2]> (pixels)
            {centred}
            {scaled}
        }}
        """,
    )


def reverse_input_channels(model: ModelProto) -> None:
    """Makes the network take BGR where it took RGB, or the reverse, by reordering its first Conv's weights.

    Between the model's input and that Conv only element-wise nodes may stand. Raises ValueError where others do.
    """
    reached = {model.graph.input[0].name}
    for node in model.graph.node:
        if not reached.intersection(node.input):
            continue
        if node.op_type == "Conv":
            weight = numpy_helper.to_array(initializers(model)[node.input[1]])
            node.input[1] = add_initializer(model, f"{node.input[1]}/reversed", weight[:, ::-1])
            return
        if node.op_type not in {"Sub", "Mul", "Add", "Div", "Identity"}:
            raise ValueError(f"{node.op_type} stands between the input and the first Conv")
        reached.update(node.output)
    raise ValueError("the input reaches no Conv")


def add_initializer(model: ModelProto, name: str, array: Array) -> str:
    """Adds a constant and answers its name."""
    model.graph.initializer.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
    return name


def set_nodes(model: ModelProto, nodes: Iterable[NodeProto]) -> None:
    """Makes `nodes` the nodes of the graph."""
    # Clearing the field empties the messages that it holds, so they are copied first.
    copies = [NodeProto.FromString(node.SerializeToString()) for node in nodes]
    del model.graph.node[:]
    model.graph.node.extend(copies)


def read_instead(model: ModelProto, old: str, new: str) -> None:
    """Has every node that reads `old` read `new`."""
    for node in model.graph.node:
        for index, name in enumerate(node.input):
            if name == old:
                node.input[index] = new


def _parsed(text: str, prefix: str) -> GraphProto:
    """The graph in `text`; the prefix keeps its inner values apart from those of the model that it joins."""
    graph = onnx.parser.parse_graph(text)
    made = {name for node in graph.node for name in node.output} | {tensor.name for tensor in graph.initializer}
    inner = made - {output.name for output in graph.output}

    def named(name: str) -> str:
        return f"{prefix}/{name}" if name in inner else name

    for node in graph.node:
        for names in (node.input, node.output):
            names[:] = [named(name) for name in names]
    for tensor in graph.initializer:
        tensor.name = named(tensor.name)
    return graph
