"""What native backends do with a model: accelerators and CUDA graphs; and what the python backend passes over.

Source of the accelerators' names and parameters: `src/onnxruntime.cc` of Triton's ONNX Runtime backend.
"""

from __future__ import annotations

from serve_app.spec.checks.registry import of_each_model
from serve_app.spec.findings import Faults, Place, error, warning
from serve_app.spec.model import PYTHON, Accelerator, Model
from serve_app.spec.resolved import Resolved
from serve_app.spec.schema import Spec

ONNXRUNTIME = "onnxruntime"
KNOWN = {"gpu_accelerators": ("tensorrt", "cuda"), "cpu_accelerators": ("openvino",)}
PRECISIONS = ("FP32", "FP16", "INT8")
TENSORRT_PARAMETERS = (
    "precision_mode", "max_workspace_size_bytes", "int8_calibration_table_name", "int8_use_native_calibration_table",
)  # fmt: skip

PASSED_OVER = warning(
    "T167", "Something for native backends at a model of the python backend", "the python backend passes over it",
    "remove it, or name another backend in a profile",
)  # fmt: skip
ACCELERATOR = error(
    "T168", "An execution accelerator that ONNX Runtime does not take", "Triton refuses to load the model", "correct it"
)
NO_CUDA_GRAPH = warning(
    "T169", "CUDA graphs that are never captured", "the model runs without them, and nothing says so", "remove it"
)


def _backends(spec: Spec, name: str) -> set[str]:
    return {Resolved(spec, name, profile).backend for profile in spec.profiles}


@of_each_model
def passed_over(spec: Spec, name: str, model: Model) -> Faults:
    if _backends(spec, name) != {PYTHON}:
        return
    place: Place = ("models", name)
    for field in ("batch_inputs", "batch_outputs"):
        if getattr(model, field):
            yield PASSED_OVER.at((*place, field), f"{field} is given, and {name} runs in the python backend")
    for field in ("graph_level", "cuda", "gpu_accelerators", "cpu_accelerators"):
        if getattr(model.optimization, field, None):
            yield PASSED_OVER.at(
                (*place, "optimization", field), f"{field} is given, and {name} runs in the python backend"
            )


@of_each_model
def accelerators(spec: Spec, name: str, model: Model) -> Faults:
    if model.optimization is None or ONNXRUNTIME not in _backends(spec, name):
        return
    for field, known in KNOWN.items():
        for index, accelerator in enumerate(getattr(model.optimization, field)):
            place = ("models", name, "optimization", field, index)
            if accelerator.name not in known:
                yield ACCELERATOR.at(
                    place, f"there is no accelerator {accelerator.name!r}", remedy=f"write {' or '.join(known)}"
                )
            elif accelerator.name == "tensorrt":
                yield from _tensorrt(place, accelerator)


def _tensorrt(place: Place, accelerator: Accelerator) -> Faults:
    for key, value in accelerator.parameters.items():
        if key not in TENSORRT_PARAMETERS and not key.startswith("trt_"):
            known = ", ".join(TENSORRT_PARAMETERS)
            yield ACCELERATOR.at(
                (*place, "parameters", key),
                f"TensorRT has no parameter {key!r}",
                remedy=f"write one of {known}, or one of ONNX Runtime's own, which begin with trt_",
            )
        elif key == "precision_mode" and value not in PRECISIONS:
            yield ACCELERATOR.at(
                (*place, "parameters", key),
                f"{value!r} is no precision",
                remedy=f"write one of {', '.join(PRECISIONS)}",
            )
        elif key == "max_workspace_size_bytes" and not value.isdecimal():
            yield ACCELERATOR.at(
                (*place, "parameters", key), f"{value!r} is no number of bytes", remedy="write a whole number"
            )


@of_each_model
def cuda_graphs(spec: Spec, name: str, model: Model) -> Faults:
    cuda = model.optimization.cuda if model.optimization else None
    if cuda is None:
        return
    place = ("models", name, "optimization", "cuda")
    backends = _backends(spec, name)
    if ONNXRUNTIME in backends and backends <= {ONNXRUNTIME, PYTHON}:
        yield NO_CUDA_GRAPH.at(
            place,
            "cuda is for models of the TensorRT backend",
            remedy="give the accelerator tensorrt the parameter trt_cuda_graph_enable instead",
        )
    if cuda.graph_specs and not cuda.graphs:
        yield NO_CUDA_GRAPH.at((*place, "graph_specs"), "graphs is not true", remedy="write graphs: true")
    largest = max(Resolved(spec, name, profile).max_batch for profile in spec.profiles)
    for index, graph in enumerate(cuda.graph_specs):
        if graph.batch > largest:
            yield NO_CUDA_GRAPH.at(
                (*place, "graph_specs", index, "batch"), f"the graph is for batches of {graph.batch}, and max_batch "
                f"is {largest}", remedy=f"write at most {largest}",
            )  # fmt: skip
