"""An ONNX file, read and never run: its graph, or why it has none."""

from __future__ import annotations

from pathlib import Path

import onnx
from google.protobuf.message import DecodeError

from serve_app.files import read_file

# Of any protobuf message: https://protobuf.dev/programming-guides/proto-limits
LARGEST = 2**31


class NotOnnx(ValueError):
    """Says what is wrong with a file that should be an ONNX model."""


def read_graph(path: Path, *, whole: bool = False) -> onnx.GraphProto:
    """The graph in the file; weights that it has in other files stay there. OSError; NotOnnx where it holds none.

    With `whole`, NotOnnx also where no runtime takes what is in it.
    """
    model = read_model(read_file(path, LARGEST))
    if whole:
        check_model(model)
    return model.graph


def read_model(content: bytes) -> onnx.ModelProto:
    """The model that the bytes are. NotOnnx, also where it is stamped with an opset that does not exist."""
    try:
        model = onnx.load_from_string(content)
    except DecodeError as broken:
        raise NotOnnx(str(broken)) from None
    if not model.HasField("graph"):
        raise NotOnnx("it holds no graph")
    for opset in model.opset_import:
        domain = opset.domain or "ai.onnx"
        newest = max((version for each, version in onnx.helper.OP_SET_ID_VERSION_MAP if each == domain), default=None)
        if newest is not None and opset.version > newest:
            known = f"the newest that onnx {onnx.__version__} knows is {newest}"
            raise NotOnnx(f"it is stamped with opset {opset.version} of {domain}, and {known}")
    return model


def check_model(model: onnx.ModelProto) -> None:
    """NotOnnx where no runtime takes the model."""
    try:
        onnx.checker.check_model(model, full_check=True)
    except (ValueError, onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as broken:
        raise NotOnnx(" ".join(str(broken).split())) from None
