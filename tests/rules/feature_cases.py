"""What a single model does besides running: cache, decoupled answers, tensors of a batch, optimisation, metrics."""

from __future__ import annotations

from typing import Any

from tests.rules.case import MINIMAL, Case, merged
from tests.rules.pipeline_cases import served

GPU: dict[str, Any] = {
    **MINIMAL["profiles"]["embedded"],
    "device": "gpu",
    "onnx": "onnxruntime",
    "triton": {**MINIMAL["profiles"]["embedded"]["triton"], "gpus": 1},
}
FAMILY = "nv_inference_first_response_histogram_ms"
SEQUENCE = {"idle_timeout": "1s", "direct": {}}
ELEMENTS = {"kind": "element_count", "targets": ["n"], "type": "int32", "sources": ["x"]}


def model(**fields: Any) -> dict[str, Any]:
    return {"models": {"m": fields}}


def native(**fields: Any) -> dict[str, Any]:
    """The model in a profile with ONNX Runtime as Triton's backend."""
    return {"profiles": {"gpu": GPU}, "models": {"m": {"backend": "onnxruntime", **fields}}}


def tensorrt(**parameters: str) -> dict[str, Any]:
    return native(optimization={"gpu_accelerators": [{"name": "tensorrt", "parameters": parameters}]})


def batch_input(**changes: Any) -> dict[str, Any]:
    return model(batch_inputs=[{**ELEMENTS, **changes}])


def batch_output(**changes: Any) -> dict[str, Any]:
    return model(batch_outputs=[{"targets": ["y"], "sources": ["x"], **changes}])


def ensemble(**fields: Any) -> dict[str, Any]:
    step = {"model": "m", "takes": {"x": "x"}, "gives": {"y": "y"}}
    tensors = {"inputs": {"x": "float32[4]"}, "outputs": {"y": "float32[4]"}}
    return {"ensembles": {"e": {**tensors, "max_batch": 8, "steps": [step], **fields}}}


SCHEDULERS = {
    "two schedulers": Case(
        "T160",
        model(sequence=SEQUENCE),
        "models.m.sequence",
        "batching and sequence are given",
        refused="failed to read text proto",
        config='name: "m" backend: "python" dynamic_batching {} sequence_batching {direct {}}',
    ),
    "three schedulers": Case("T160", model(sequence=SEQUENCE, unscheduled=True), "models.m.unscheduled"),
    "a profile's delay of a model that does not batch": Case(
        "T161",
        model(batching=None, unscheduled=True, profiles={"embedded": {"queue_delay": "1ms"}}),
        "models.m.profiles.embedded.queue_delay",
        "m does not batch dynamically",
    ),
    "a profile's sizes of a model that keeps sequences": Case(
        "T161",
        model(batching=None, sequence=SEQUENCE, profiles={"embedded": {"preferred_sizes": [4]}}),
        "models.m.profiles.embedded.preferred_sizes",
    ),
    "threads of a model with code of its own": Case("T161", model(threads=2), "models.m.threads", loads=True),
    "threads of a native model": Case(
        "T161",
        {"profiles": {"gpu": GPU}, **model(backend="onnx", profiles={"gpu": {"threads": 2}})},
        "models.m.profiles.gpu.threads",
        "write parameters: {intra_op_thread_count: '2'}",
    ),
}

CACHES = {
    "a cached model without a cache": Case(
        "T162", model(cache=True), "models.m.cache", "profile embedded has no response_cache"
    ),
    "a cached ensemble without a cache": Case("T162", ensemble(cache=True), "ensembles.e.cache", model="e", loads=True),
    "a cache that no model uses": Case(
        "T163",
        {"profiles": {"embedded": {"triton": {"response_cache": "64MiB"}}}},
        "profiles.embedded.triton.response_cache",
    ),
    "a cached model that keeps sequences": Case(
        "T164",
        model(cache=True, batching=None, sequence=SEQUENCE),
        "models.m.cache",
        "m is cached and keeps sequences",
        refused="Response Cache does not currently support model m with sequence batching scheduler",
    ),
    "a cached model that is decoupled": Case(
        "T164",
        model(cache=True, decoupled=True),
        "models.m.cache",
        "m is cached, and m is decoupled",
        refused="Response Cache does not currently support model m with 'decoupled' transaction policy",
    ),
    "a cached ensemble of a decoupled model": Case(
        "T164",
        {**model(decoupled=True), **ensemble(cache=True)},
        "ensembles.e.cache",
        "e is cached, and m is decoupled",
        refused="Response Cache does not currently support model e with 'decoupled' transaction policy",
        model="e",
    ),
    # What Triton answers such a stage: tests/triton/test_traps.py.
    "a decoupled model that a stage calls": Case(
        "T177", served(model(decoupled=True)), "stages.echo.models", "echo calls m, and m is decoupled"
    ),
    "a decoupled ensemble that a stage calls": Case(
        "T177",
        served({**model(decoupled=True), **ensemble(), "stages": {"echo": {"models": ["e"]}}}),
        "stages.echo.models",
        "echo calls e, and m is decoupled",
    ),
    "a decoupled onnx model": Case("T178", model(backend="onnx", decoupled=True), "models.m.decoupled"),
}

BATCH_TENSORS = {
    "a batch input of two sources": Case(
        "T165",
        batch_input(sources=["x", "x"]),
        "models.m.batch_inputs.0.sources",
        "2 sources are given",
        refused="batch input kind 'BATCH_ELEMENT_COUNT' expects 1 source input, got 2",
    ),
    "a batch input of no input": Case(
        "T165",
        batch_input(sources=["z"]),
        "models.m.batch_inputs.0.sources",
        "'z' is no input",
        refused="unknown source input name 'z'",
    ),
    "a batch input of another type": Case(
        "T165",
        batch_input(type="int64"),
        "models.m.batch_inputs.0.type",
        "write int32 or float32",
        refused="batch input data type must be TYPE_INT32 or TYPE_FP32",
    ),
    "a batch output of two sources": Case(
        "T165",
        batch_output(sources=["x", "x"]),
        "models.m.batch_outputs.0.sources",
        refused="batch output kind 'BATCH_SCATTER_WITH_INPUT_SHAPE' expects 1 source input, got 2",
    ),
    "a batch output of no output": Case(
        "T165",
        batch_output(targets=["z"]),
        "models.m.batch_outputs.0.targets",
        "'z' is no output of m",
        refused="unknown target output name 'z'",
    ),
    "a batch output twice": Case(
        "T165",
        batch_output(targets=["y", "y"]),
        "models.m.batch_outputs.0.targets",
        "'y' is there twice",
        refused="target output name 'y' can only be specified once",
    ),
    "a batch input that is an input": Case(
        "T166", batch_input(targets=["x"]), "models.m.batch_inputs.0.targets", loads=True
    ),
    "a batch input in the python backend": Case("T167", batch_input(), "models.m.batch_inputs"),
    "a batch output in the python backend": Case("T167", batch_output(), "models.m.batch_outputs", loads=True),
}

OPTIMIZATION = {
    "an accelerator in the python backend": Case(
        "T167",
        model(optimization={"cpu_accelerators": ["nonsense"]}),
        "models.m.optimization.cpu_accelerators",
        "runs in the python backend",
        loads=True,
    ),
    "CUDA graphs in the python backend": Case(
        "T167", model(optimization={"cuda": {"graphs": True}}), "models.m.optimization.cuda", loads=True
    ),
    # T168 needs the ONNX Runtime backend, which the wheel does not have.
    "an unknown accelerator": Case(
        "T168",
        native(optimization={"gpu_accelerators": ["tensort"]}),
        "models.m.optimization.gpu_accelerators.0",
        "there is no accelerator 'tensort': Triton refuses to load the model; write tensorrt or cuda",
    ),
    "a GPU's accelerator for the CPU": Case(
        "T168",
        native(optimization={"cpu_accelerators": ["cuda"]}),
        "models.m.optimization.cpu_accelerators.0",
        "write openvino",
    ),
    "an unknown precision": Case(
        "T168",
        tensorrt(precision_mode="fp16"),
        "models.m.optimization.gpu_accelerators.0.parameters.precision_mode",
        "write one of FP32, FP16, INT8",
    ),
    "an unknown parameter of TensorRT": Case(
        "T168",
        tensorrt(workspace="1000"),
        "models.m.optimization.gpu_accelerators.0.parameters.workspace",
        "TensorRT has no parameter 'workspace'",
    ),
    "a size of TensorRT's workspace with a unit": Case(
        "T168",
        tensorrt(max_workspace_size_bytes="1GiB"),
        "models.m.optimization.gpu_accelerators.0.parameters.max_workspace_size_bytes",
        "'1GiB' is no number of bytes",
    ),
    "CUDA graphs of ONNX Runtime": Case(
        "T169",
        native(optimization={"cuda": {"graphs": True}}),
        "models.m.optimization.cuda",
        "trt_cuda_graph_enable",
    ),
    "CUDA graphs that are off": Case(
        "T169",
        model(backend="tensorrt", optimization={"cuda": {"graph_specs": [{"batch": 4}]}}),
        "models.m.optimization.cuda.graph_specs",
        "write graphs: true",
    ),
    "a CUDA graph of a batch that is never run": Case(
        "T169",
        model(backend="tensorrt", optimization={"cuda": {"graphs": True, "graph_specs": [{"batch": 16}]}}),
        "models.m.optimization.cuda.graph_specs.0.batch",
        "the graph is for batches of 16, and max_batch is 8",
    ),
}

UNREAD = {
    f"{field} in the backend {backend}": Case(
        "T151",
        {"profiles": {"gpu": GPU}, **model(backend=backend, optimization={field: value})},
        f"models.m.optimization.{field}",
        f"{field} is given, and m runs in the backend {backend}: it has no effect",
    )
    for backend, field, value in (
        ("tensorrt", "gpu_accelerators", ["tensorrt"]),
        ("tensorrt", "graph_level", 1),
        ("pytorch", "gpu_accelerators", ["auto_mixed_precision"]),
        ("pytorch", "cuda", {"graphs": True}),
        ("openvino", "cpu_accelerators", ["openvino"]),
        ("tensorflow", "cuda", {"graphs": True}),
        ("onnxruntime", "eager_batching", True),
    )
}
ACCELERATORS = {
    "eager batching in the python backend": Case(
        "T167", model(optimization={"eager_batching": True}), "models.m.optimization.eager_batching", loads=True
    ),
    "what neither backend of the profiles reads": Case(
        "T151",
        {
            "profiles": {"gpu": GPU},
            **model(optimization={"gpu_accelerators": ["cuda"]}, profiles={"gpu": {"backend": "pytorch"}}),
        },
        "models.m.optimization.gpu_accelerators",
        "m runs in the backend python and pytorch",
    ),
    # T152 needs the TensorFlow backend, which the wheel does not have.
    "an unknown accelerator of TensorFlow": Case(
        "T152",
        native(backend="tensorflow", optimization={"gpu_accelerators": ["tensorrt", "cuda"]}),
        "models.m.optimization.gpu_accelerators.1",
        "there is no accelerator 'cuda': Triton refuses to load the model; write tensorrt or gpu_io or auto_mixed",
    ),
    "an unknown parameter of TensorFlow's TensorRT": Case(
        "T152",
        native(
            backend="tensorflow",
            optimization={"gpu_accelerators": [{"name": "tensorrt", "parameters": {"segment_size": "3"}}]},
        ),
        "models.m.optimization.gpu_accelerators.0.parameters.segment_size",
        "write one of precision_mode, minimum_segment_size",
    ),
    "an accelerator of TensorFlow for the CPU": Case(
        "T152",
        native(backend="tensorflow", optimization={"cpu_accelerators": ["openvino"]}),
        "models.m.optimization.cpu_accelerators",
        "TensorFlow has no accelerators for the CPU",
    ),
    "a GPU's accelerators without a GPU": Case(
        "T153",
        model(backend="onnxruntime", optimization={"gpu_accelerators": ["cuda"]}),
        "models.m.optimization.gpu_accelerators",
        "all instances of m run on the CPU",
    ),
    "a GPU's accelerators of instances on the CPU": Case(
        "T153",
        native(instances=[{"kind": "cpu"}], optimization={"gpu_accelerators": ["cuda"]}),
        "models.m.optimization.gpu_accelerators",
    ),
}

METRICS = {
    "an unknown histogram": Case(
        "T170",
        model(decoupled=True, metrics={"nv_inference_queue_duration_us": {"buckets": ["1ms"]}}),
        "models.m.metrics.nv_inference_queue_duration_us",
        f"write {FAMILY}",
    ),
    "a histogram of a model that is not decoupled": Case(
        "T170", model(metrics={FAMILY: {"buckets": ["1ms"]}}), f"models.m.metrics.{FAMILY}", "m is not decoupled"
    ),
    # T171 needs Triton 2.52 or newer: the wheel's, 2.51, knows no histograms (T405).
    "no buckets": Case("T171", model(metrics={FAMILY: {"buckets": []}}), f"models.m.metrics.{FAMILY}.buckets"),
    "buckets that fall": Case(
        "T171",
        model(metrics={FAMILY: {"buckets": ["5ms", "2.5ms"]}}),
        f"models.m.metrics.{FAMILY}.buckets",
        "do not rise",
    ),
    "a bucket twice": Case(
        "T171",
        model(metrics={FAMILY: {"buckets": ["1ms", "1000us"]}}),
        f"models.m.metrics.{FAMILY}.buckets",
        "do not rise",
    ),
    "a tag that is no word": Case(
        "T172", model(metric_tags={"cost-centre": "7"}), "models.m.metric_tags.cost-centre", "'cost-centre' is no name"
    ),
    "a tag that begins with an underscore": Case(
        "T172", ensemble(metric_tags={"_team": "7"}), "ensembles.e.metric_tags._team"
    ),
}

PARAMETERS = {
    "the threads as a parameter": Case(
        "T176",
        model(backend="onnx", parameters={"intra_op_threads": "2"}),
        "models.m.parameters.intra_op_threads",
        "write threads instead",
    ),
    "a field that no message has": Case(
        "T173",
        model(triton={"model_operation": {}}),
        "models.m.triton.model_operation",
        "ModelConfig has no field 'model_operation': Triton could not read the configuration; "
        "did you mean model_operations?",
        refused="failed to read text proto",
        config='name: "m" backend: "python" model_operation {}',
    ),
    "a field of another type": Case(
        "T173",
        model(triton={"model_operations": {"op_library_filename": "ops.so"}}),
        "models.m.triton.model_operations",
        "write it as Triton's ModelConfig has it: {op_library_filename: …}",
        refused="failed to read text proto",
        config='name: "m" backend: "python" model_operations: "ops.so"',
    ),
    "a field of a field that there is not": Case(
        "T173",
        ensemble(triton={"model_repository_agents": {"agents": [{"nom": "checksum"}]}}),
        "ensembles.e.triton.model_repository_agents",
        'has no field named "nom"',
    ),
    "a number for a text": Case(
        "T173", model(triton={"runtime": 3}), "models.m.triton.runtime", "ModelConfig has it: a text"
    ),
    "an ensemble's platform of a model": Case(
        "T179",
        model(triton={"platform": "ensemble"}),
        "models.m.triton.platform",
        "platform is 'ensemble', and a model is no ensemble",
        refused="must have platform type 'ensemble' and empty backend type",
    ),
    "another platform of an ensemble": Case(
        "T179", ensemble(triton={"platform": "onnxruntime_onnx"}), "ensembles.e.triton.platform"
    ),
    "a runtime that is no library": Case(
        "T179",
        model(triton={"runtime": "nope"}),
        "models.m.triton.runtime",
        "write libtriton_NAME.so",
        refused="unable to find backend library 'nope'",
    ),
    "a runtime in the wheel's server": Case(
        "T179",
        {
            "profiles": {"embedded": {"triton": {"requirement": "nvidia-pytriton==0.7.0", "sha256": "0" * 64}}},
            **model(triton={"runtime": "libtriton_python.so"}),
        },
        "models.m.triton.runtime",
        refused="backend library name 'libtriton_python.so' escapes backend directory",
    ),
    "an agent without a name": Case(
        "T179",
        model(triton={"model_repository_agents": {"agents": [{}]}}),
        "models.m.triton.model_repository_agents",
        "an agent has no name",
        refused="unable to find 'libtritonrepoagent_.so'",
    ),
    "an agent that the wheel's server does not have": Case(
        "T430",
        merged(
            model(triton={"model_repository_agents": {"agents": [{"name": "checksum"}]}}),
            {"profiles": {"embedded": {"triton": {"requirement": "nvidia-pytriton==0.7.0", "sha256": "0" * 64}}}},
        ),
        "models.m.triton.model_repository_agents",
        "the server of embedded is from a wheel, which has no agents, and checksum is one",
        refused="unable to find 'libtritonrepoagent_checksum.so'",
    ),
    "a field that has a word": Case(
        "T174",
        model(triton={"max_batch_size": 8}),
        "models.m.triton.max_batch_size",
        "write max_batch instead",
    ),
}

CASES = {**SCHEDULERS, **CACHES, **BATCH_TENSORS, **OPTIMIZATION, **UNREAD, **ACCELERATORS, **METRICS, **PARAMETERS}
