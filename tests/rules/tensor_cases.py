"""Tensors and names."""

from __future__ import annotations

from typing import Any

from tests.rules.case import GONE, MINIMAL, Case, merged
from tests.rules.pipeline_cases import served

ENSEMBLE = {
    "inputs": {"x": "float32[4]"},
    "outputs": {"y": "float32[4]"},
    "max_batch": 8,
    "steps": [{"model": "m", "takes": {"x": "x"}, "gives": {"y": "y"}}],
}
ONNX = {"backend": "onnx", "weights": {"prepare": "serve_app.kyc.antifraud:build_onnx"}}
WHEEL = {"requirement": "nvidia-pytriton==0.7.0", "sha256": "0" * 64}


def takes(**entry: Any) -> dict[str, Any]:
    """The model m, with more to its input x."""
    return {"models": {"m": {"inputs": {"x": {"tensor": "float32[4]", **entry}}}}}


def gives(**entry: Any) -> dict[str, Any]:
    return {"models": {"m": {"outputs": {"y": {"tensor": "float32[4]", **entry}}}}}


def named(name: str) -> dict[str, Any]:
    """The model m under another name."""
    return {"models": {"m": GONE, name: MINIMAL["models"]["m"]}}


def called(name: str) -> dict[str, Any]:
    """The model m under another name, in a stage."""
    patch: dict[str, Any] = merged(served(named(name)), {"stages": {"echo": {"models": [name]}}})
    return patch


NAMES = {
    "a stage's model with a dot in its name": Case(
        "T121",
        called("m.2"),
        "models.m.2",
        "stage echo uses it, and 'm.2' is no name in Python: the stage's constructor cannot take it by name",
        loads=True,
        model="m.2",
    ),
    "a stage's model called like a word of Python's": Case("T121", called("lambda"), "models.lambda"),
    "a model's name with a space": Case("T122", named("two words"), "models.two words", "so that loading hangs"),
    "a model's name outside of ASCII": Case(
        "T122", named("größe"), "models.größe", refused="codec can't encode", model="größe"
    ),
    "a model's name that is no folder's": Case("T122", named("a/b"), "models.a/b"),
    "a model's name longer than a folder's": Case("T122", named("m" * 256), "models." + "m" * 256, "mmm…'"),
    "a model's name that begins with a hyphen": Case("T122", named("-m"), "models.-m", loads=True, model="-m"),
    "a model and an ensemble with the same name": Case(
        "T123", {"ensembles": {"m": ENSEMBLE}}, "ensembles.m", "a model is called m too"
    ),
    "two models with names that differ in case": Case(
        "T124", {"models": {"M": MINIMAL["models"]["m"]}}, "models.M", "there is m too", loads=True, model="M"
    ),
    "a tensor with a line end in its name": Case(
        "T125", {"models": {"m": {"outputs": {"a\nb": "float32[4]"}}}}, r"models.m.outputs.'a\nb'", loads=True
    ),
}
# What the spec cannot say at all, and Triton is told here.
UNSAYABLE = {
    "a dimension of zero": Case(
        "Y022",
        takes(tensor="float32[0]"),
        "models.m.inputs.x.tensor",
        config='backend: "python" input [{name: "x" data_type: TYPE_FP32 dims: [0]}]',
        refused="dimension must be integer >= 1, or -1",
    ),
    "a tensor without dimensions": Case(
        "Y022",
        takes(tensor="float32"),
        "models.m.inputs.x.tensor",
        config='backend: "python" input [{name: "x" data_type: TYPE_FP32}]',
        refused="must specify 'dims'",
    ),
    "a tensor without a type": Case(
        "Y022",
        takes(tensor="[4]"),
        "models.m.inputs.x.tensor",
        config='backend: "python" input [{name: "x" dims: [4]}]',
        refused="must specify 'data_type'",
    ),
    "a negative batch": Case(
        "Y013",
        {"models": {"m": {"max_batch": -1}}},
        "models.m.max_batch",
        config='backend: "python" max_batch_size: -1',
        refused="'max_batch_size' must be non-negative value",
    ),
}
SHAPES = {
    "an input and an output with the same name": Case(
        "T120",
        {"models": {"m": {"outputs": {"y": GONE, "x": "float32[4]"}}}},
        "models.m.outputs.x",
        "an input of m is called x too",
        loads=True,
    ),
    "a picture's format of a row": Case(
        "T128",
        takes(format="NHWC"),
        "models.m.inputs.x.format",
        "float32[4] has 1 dimensions",
        refused="require 3 dims",
    ),
    "a reshape of an input to other elements": Case(
        "T129",
        takes(reshape=[3]),
        "models.m.inputs.x.reshape",
        "float32[4] cannot be reshaped to [3]",
        refused="has different size for dims and reshape",
    ),
    "a reshape of an output to other elements": Case(
        "T129", gives(reshape=[2, 3]), "models.m.outputs.y.reshape", refused="has different size for dims and reshape"
    ),
    "a reshape to an element less": Case(
        "T129", takes(reshape=[]), "models.m.inputs.x.reshape", refused="has different size for dims and reshape"
    ),
    "a reshape with a dimension of zero": Case(
        "T129", takes(reshape=[0, 4]), "models.m.inputs.x.reshape", refused="must be integer >= 1, or -1"
    ),
    "a reshape that varies where the tensor does not": Case(
        "T129",
        takes(reshape=[-1]),
        "models.m.inputs.x.reshape",
        refused="has different size for dims and reshape",
    ),
    "a reshape that moves elements past one that varies": Case(
        "T129",
        takes(tensor="float32[-1, 4]", reshape=[4, -1]),
        "models.m.inputs.x.reshape",
        refused="has different size for dims and reshape",
    ),
    "an ensemble's reshape to other elements": Case(
        "T129",
        {"ensembles": {"e": {**ENSEMBLE, "inputs": {"x": {"tensor": "float32[4]", "reshape": [3]}}}}},
        "ensembles.e.inputs.x.reshape",
        model="e",
        refused="has different size for dims and reshape",
    ),
    "an empty reshape without a batch": Case(
        "T130",
        {
            "models": {
                "m": {
                    "inputs": {"x": {"tensor": "float32[1]", "reshape": []}},
                    "max_batch": 0,
                    "batching": GONE,
                    "unscheduled": True,
                }
            }
        },
        "models.m.inputs.x.reshape",
        refused="cannot have empty reshape for non-batching model",
    ),
    "largest dimensions of a fixed tensor": Case(
        "T131", takes(largest=[5]), "models.m.inputs.x.largest", "float32[4] is never as large as [5]"
    ),
    "largest dimensions of another rank": Case(
        "T131", takes(tensor="float32[-1]", largest=[5, 5]), "models.m.inputs.x.largest"
    ),
    "a label file that is not in the folder": Case(
        "T138",
        gives(labels="/etc/labels.txt"),
        "models.m.outputs.y.labels",
        "'/etc/labels.txt' is not in the model's folder",
        refused="failed to open text file for read",
    ),
    "a label file above the folder": Case(
        "T138", gives(labels="../m/config.pbtxt"), "models.m.outputs.y.labels", loads=True
    ),
}
BACKENDS = {
    "strings in the wheel's python backend": Case(
        "T126",
        {**takes(tensor="string[1]"), "profiles": {"embedded": {"triton": WHEEL}}},
        "models.m.inputs.x",
        "x is a string[1]",
        loads=True,
    ),
    "strings out of the wheel's python backend": Case(
        "T126", {**gives(tensor="string[1]"), "profiles": {"embedded": {"triton": WHEEL}}}, "models.m.outputs.y"
    ),
    "strings of Tandem's ONNX code": Case(
        "T127", {"models": {"m": {**ONNX, "outputs": {"y": "string[4]"}}}}, "models.m.outputs.y"
    ),
    "bfloat16 of Tandem's ONNX code": Case(
        "T127", {"models": {"m": {**ONNX, "inputs": {"x": "bfloat16[4]"}}}}, "models.m.inputs.x"
    ),
    "a shape tensor outside TensorRT": Case(
        "T132",
        takes(tensor="int32[4]", shape_tensor=True),
        "models.m.inputs.x.shape_tensor",
        "the backend is python in embedded",
        refused="only supported for TensorRT",
    ),
    "a non-linear output outside TensorRT": Case(
        "T132",
        gives(non_linear=True),
        "models.m.outputs.y.non_linear",
        refused="is only supported for the TensorRT platform",
    ),
    "inputs that are all optional": Case(
        "T133", takes(optional=True), "models.m.inputs", "every input of m is optional", loads=True
    ),
    "an optional input of Tandem's ONNX code": Case(
        "T134",
        {"models": {"m": {**ONNX, "inputs": {"z": {"tensor": "float32[4]", "optional": True}}}}},
        "models.m.inputs.z.optional",
        "embedded runs m in the python backend",
    ),
    "a ragged input of Tandem's ONNX code": Case(
        "T135",
        {"models": {"m": {**ONNX, "inputs": {"x": {"tensor": "float32[-1]", "ragged": True}}}}},
        "models.m.inputs.x.ragged",
    ),
    "a ragged input that does not vary": Case("T136", takes(ragged=True), "models.m.inputs.x.ragged", loads=True),
    "batches of a model whose input varies": Case(
        "T137",
        {"models": {"m": {"inputs": {"x": "float32[-1]"}, "batching": {"queue_delay": "5ms"}}}},
        "models.m.inputs.x",
        "the dimensions of x vary from request to request: only requests of the same dimensions share a batch, and one "
        "without its like may wait 5ms for nothing; bring the input",
        loads=True,
    ),
    "preferred sizes of a model whose input varies": Case(
        "T137",
        {"models": {"m": {"inputs": {"x": "float32[-1]"}, "batching": {"queue_delay": "0s", "preferred_sizes": [4]}}}},
        "models.m.inputs.x",
        "share a batch, and a preferred size is met by chance; bring",
        loads=True,
    ),
    "a varying input beside one that is ragged": Case(
        "T137",
        {"models": {"m": {"inputs": {"x": {"tensor": "float32[-1]", "ragged": True}, "z": "float32[-1, 4]"}}}},
        "models.m.inputs.z",
        loads=True,
    ),
    "batches of a model with an optional input": Case(
        "T150",
        {"models": {"m": {"inputs": {"z": {"tensor": "float32[4]", "optional": True}}}}},
        "models.m.inputs.z.optional",
        "a request may leave out z: only requests with the same inputs share a batch",
        loads=True,
    ),
}
CASES = {**NAMES, **UNSAYABLE, **SHAPES, **BACKENDS}
