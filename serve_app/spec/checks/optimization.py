"""What native backends do with a model: accelerators and CUDA graphs; and what each backend passes over.

Source of what each reads, and of the accelerators' names and parameters: `src/onnxruntime.cc`,
`src/tensorrt_model.cc`, `src/tensorflow.cc`, `src/libtorch.cc` and `src/openvino.cc` of Triton's backends of these
names.
"""

from __future__ import annotations

from collections.abc import Iterator

from serve_app.spec.checks.registry import of_each_model
from serve_app.spec.checks.tensors import TENSORRT
from serve_app.spec.findings import Faults, Place, error, warning
from serve_app.spec.model import PYTHON, Accelerator, Model, Optimization
from serve_app.spec.part import UNKNOWN
from serve_app.spec.resolved import Resolved
from serve_app.spec.schema import Spec

ONNXRUNTIME = "onnxruntime"
TENSORFLOW = "tensorflow"
_ACCELERATED = ("graph_level", "gpu_accelerators", "cpu_accelerators")
# Backend → what it reads of `optimization`, beside the pinned memory that all native ones use. Nothing is known of
# backends that are not here.
READS = {
    PYTHON: (),
    ONNXRUNTIME: _ACCELERATED,
    TENSORFLOW: _ACCELERATED,
    TENSORRT: ("cuda", "gather_kernel_buffer_threshold", "eager_batching"),
    "pytorch": (),
    "openvino": (),
}
KNOWN = {"gpu_accelerators": ("tensorrt", "cuda"), "cpu_accelerators": ("openvino",)}
PRECISIONS = ("FP32", "FP16", "INT8")
TENSORRT_PARAMETERS = (
    "precision_mode", "max_workspace_size_bytes", "int8_calibration_table_name", "int8_use_native_calibration_table",
)  # fmt: skip
OF_TENSORFLOW = ("tensorrt", "gpu_io", "auto_mixed_precision")
TENSORFLOW_PARAMETERS = ("precision_mode", "minimum_segment_size", "max_workspace_size_bytes", "max_cached_engines")

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
NOT_READ = warning(
    "T151", "An optimisation that no backend of the model reads", "it has no effect, and nothing says so",
    "remove it, or name a backend that reads it in a profile",
)  # fmt: skip
OTHER_ACCELERATOR = error(
    "T152", "An execution accelerator that TensorFlow does not take", "Triton refuses to load the model", "correct it"
)
NO_GPU = warning(
    "T153", "A GPU's accelerators for a model that never runs on one", "they have no effect: the backend looks at them "
    "for instances on a GPU only",
    "remove them, or run the model on a GPU in a profile",
)  # fmt: skip


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
    for field in _given(model.optimization):
        yield PASSED_OVER.at(
            (*place, "optimization", field), f"{field} is given, and {name} runs in the python backend"
        )


def _given(optimization: Optimization | None) -> Iterator[str]:
    """What is asked for beyond the defaults, of all that not every backend reads."""
    for field in dict.fromkeys(field for fields in READS.values() for field in fields):
        value = None if optimization is None else getattr(optimization, field)
        if value is not UNKNOWN and value:
            yield field


@of_each_model
def not_read(spec: Spec, name: str, model: Model) -> Faults:
    backends = _backends(spec, name)
    if backends == {PYTHON} or not backends <= set(READS):
        return
    read = {field for backend in backends for field in READS[backend]}
    for field in _given(model.optimization):
        if field not in read and not (field == "cuda" and ONNXRUNTIME in backends):
            yield NOT_READ.at(
                ("models", name, "optimization", field),
                f"{field} is given, and {name} runs in the backend {' and '.join(sorted(backends))}",
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


@of_each_model
def accelerators_of_tensorflow(spec: Spec, name: str, model: Model) -> Faults:
    if model.optimization is None or TENSORFLOW not in _backends(spec, name):
        return
    place: Place = ("models", name, "optimization")
    if model.optimization.cpu_accelerators:
        yield OTHER_ACCELERATOR.at(
            (*place, "cpu_accelerators"), "TensorFlow has no accelerators for the CPU", remedy="remove them"
        )
    for index, accelerator in enumerate(model.optimization.gpu_accelerators):
        if accelerator.name not in OF_TENSORFLOW:
            yield OTHER_ACCELERATOR.at(
                (*place, "gpu_accelerators", index),
                f"there is no accelerator {accelerator.name!r}",
                remedy=f"write {' or '.join(OF_TENSORFLOW)}",
            )
        for key in accelerator.parameters if accelerator.name == "tensorrt" else ():
            if key not in TENSORFLOW_PARAMETERS:
                yield OTHER_ACCELERATOR.at(
                    (*place, "gpu_accelerators", index, "parameters", key),
                    f"TensorRT has no parameter {key!r} there",
                    remedy=f"write one of {', '.join(TENSORFLOW_PARAMETERS)}",
                )


@of_each_model
def no_gpu(spec: Spec, name: str, model: Model) -> Faults:
    if model.optimization is None or not model.optimization.gpu_accelerators:
        return
    found = [Resolved(spec, name, profile) for profile in spec.profiles]
    readers = [each for each in found if "gpu_accelerators" in READS.get(each.backend, ("gpu_accelerators",))]
    if readers and all(_on_cpus(each) for each in readers):
        yield NO_GPU.at(("models", name, "optimization", "gpu_accelerators"), f"all instances of {name} run on the CPU")


def _on_cpus(found: Resolved) -> bool:
    """Whether no instance can be on a GPU, in a backend that goes by that."""
    cpus = ("cpu", "auto") if found.spec.profiles[found.profile].device == "cpu" else ("cpu",)
    return found.backend in READS and all(group.kind in cpus for group in found.instances)


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
    if ONNXRUNTIME in backends and all("cuda" not in READS.get(backend, ("cuda",)) for backend in backends):
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
