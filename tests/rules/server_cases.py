"""Profiles: the server of each, its version, its resources."""

from __future__ import annotations

from typing import Any

from tests.rules.case import MINIMAL, Case, merged
from tests.rules.tensor_cases import ENSEMBLE, ONNX

GPU = merged(
    MINIMAL["profiles"]["embedded"],
    {"device": "gpu", "onnx": "onnxruntime", "triton": {"version": "2.60.0", "gpus": 1, "memory": "4GiB"}},
)
HASH = "0" * 64
TRITON = "profiles.embedded.triton"


def triton(**fields: Any) -> dict[str, Any]:
    return {"profiles": {"embedded": {"triton": fields}}}


def limited(*groups: dict[str, Any], stock: dict[str, Any], rate_limit: bool = True) -> dict[str, Any]:
    """The model m with instances that want resources."""
    instances = [{"rate_limiter": {"resources": wanted}} for wanted in groups]
    return {**triton(rate_limit=rate_limit, resources=stock), "models": {"m": {"instances": instances}}}


SERVERS = {
    "a memory limit that the server meets in its ordinary work": Case(
        "T419",
        triton(memory="1GiB", memory_limit="512MiB"),
        f"{TRITON}.memory_limit",
        "it is 512MiB, and memory is 1GiB",
    ),
    "a watchdog that does not wait for an SLA": Case(
        "T409",
        merged(triton(watchdog={"limit": "2s"}), {"service": {"sla": "2s"}}),
        f"{TRITON}.watchdog.limit",
        "it is 2s, and the longest SLA is 2s",
    ),
    "a wheel without its sha256": Case(
        "T401", triton(requirement="nvidia-pytriton==0.7.0"), f"{TRITON}.requirement", "only requirement is given"
    ),
    "a sha256 without its wheel": Case("T401", triton(sha256=HASH), f"{TRITON}.sha256"),
    "a profile for a GPU without GPUs": Case(
        "T402",
        {"profiles": {"embedded": {"device": "gpu"}}, "models": {"m": {"instances": [{"kind": "gpu"}]}}},
        f"{TRITON}.gpus",
        "device is gpu and gpus is 0",
        refused="has kind KIND_GPU but no GPUs are available",
    ),
    "a profile for CPUs with GPUs": Case("T402", triton(gpus=1), f"{TRITON}.gpus", "device is cpu and gpus is 1"),
    "ONNX Runtime in the wheel's server": Case(
        "T403",
        {
            "profiles": {
                "embedded": {
                    "onnx": "onnxruntime",
                    "triton": {"requirement": "nvidia-pytriton==0.7.0", "sha256": HASH},
                }
            },
            "models": {"m": ONNX},
        },
        "profiles.embedded.onnx",
        refused="unable to find backend library for backend 'onnxruntime'",
    ),
    "a backend that the server does not have": Case(
        "T404",
        {**triton(backends=["python"]), "models": {"m": {"backend": "pytorch"}}},
        "models.m.backend",
        "the server of embedded has python, not pytorch",
        refused="unable to find backend library for backend 'pytorch'",
    ),
    "a backend that the wheel's server does not have": Case(
        "T404",
        {**triton(requirement="nvidia-pytriton==0.7.0", sha256=HASH), "models": {"m": {"backend": "tensorrt"}}},
        "models.m.backend",
        refused="unable to find backend library for backend 'tensorrt'",
    ),
    "ONNX Runtime that a server does not have": Case(
        "T404",
        {"profiles": {"gpu": merged(GPU, {"triton": {"backends": ["tensorrt"]}})}, "models": {"m": ONNX}},
        "profiles.gpu.onnx",
        "the server of gpu has tensorrt, not onnxruntime",
    ),
    "a backend whose name is nearly one of Triton's": Case(
        "T440",
        {"profiles": {"gpu": GPU}, "models": {"m": {"profiles": {"gpu": {"backend": "onnxruntim"}}}}},
        "models.m.profiles.gpu.backend",
        "did you mean onnxruntime? If not, name it among all that the server has in profiles.gpu.triton.backends",
    ),
    "a backend that is nearly one of Triton's, in every profile": Case(
        "T440",
        {"models": {"m": {"backend": "pytorchh"}}},
        "models.m.backend",
        refused="unable to find backend library for backend 'pytorchh'",
    ),
    "a backend that is none of Triton's": Case(
        "T441",
        {"models": {"m": {"backend": "nonsuch"}}},
        "models.m.backend",
        "name it among all that the server has in profiles.embedded.triton.backends",
        refused="unable to find backend library for backend 'nonsuch'",
    ),
    "a misspelt backend of a server whose backends are known": Case(
        "T404",
        {**triton(backends=["python", "onnxruntime"]), "models": {"m": {"backend": "onnxruntim"}}},
        "models.m.backend",
    ),
    "a Triton for GPUs with holes": Case(
        "T406",
        {"profiles": {"gpu": merged(GPU, {"triton": {"version": "2.59.0"}})}},
        "profiles.gpu.triton.version",
        "Triton 2.59.0 is allowed",
    ),
    "a wheel that carries another Triton": Case(
        "T407",
        triton(requirement="nvidia-pytriton==0.7.0", sha256=HASH, version="2.52.0"),
        f"{TRITON}.version",
        "nvidia-pytriton==0.7.0 carries Triton 2.51.0, not 2.52.0",
    ),
    "an exit timeout shorter than the SLA": Case(
        "T408", triton(exit_timeout="7s"), f"{TRITON}.exit_timeout", "it is 7s, and a request may take 8s"
    ),
    "a wheel without its version": Case(
        "T412", triton(requirement="nvidia-pytriton", sha256=HASH), f"{TRITON}.requirement"
    ),
}
VERSIONS = {
    "histograms on a server that does not know them": Case(
        "T405",
        {"models": {"m": {"metrics": {"nv_inference_first_response_histogram_ms": {"buckets": ["1ms", "10ms"]}}}}},
        "models.m.metrics",
        "metrics came with Triton 2.52.0, and embedded is for 2.51.0",
        refused='has no field named "model_metrics"',
    ),
    "a limit of requests in flight on a server that does not know it": Case(
        "T405",
        {"ensembles": {"e": {**ENSEMBLE, "max_inflight_requests": 4}}},
        "ensembles.e.max_inflight_requests",
        "max_inflight_requests came with Triton 2.63.0",
        model="e",
        refused='has no field named "max_inflight_requests"',
    ),
    "a non-linear input on a server that does not know it": Case(
        "T405",
        {
            **triton(version="2.48.0"),
            "models": {"m": {"backend": "tensorrt", "inputs": {"x": {"tensor": "float32[4]", "non_linear": True}}}},
        },
        "models.m.inputs.x.non_linear",
    ),
    "a runtime on a server that does not know it": Case(
        "T405",
        {**triton(version="2.41.0"), "models": {"m": {"triton": {"runtime": "libtriton_python.so"}}}},
        "models.m.triton.runtime",
        "runtime came with Triton 2.42.0",
    ),
    "a server that Tandem does not know": Case(
        "T425",
        triton(version="9.9.9"),
        f"{TRITON}.version",
        "embedded is for Triton 9.9.9, and Tandem knows the fields up to 2.73.0",
    ),
}
RATE_LIMITS = {
    "resources without the rate limiter": Case(
        "T413", triton(resources={"memory": 4}), f"{TRITON}.resources", "embedded has resources, and rate_limit is off"
    ),
    "resources that instances want without the rate limiter": Case(
        "T413",
        {"models": {"m": {"instances": [{"rate_limiter": {"resources": {"memory": 1}}}]}}},
        "models.m.instances.0.rate_limiter.resources.memory",
        loads=True,
    ),
    "a share of the runs without the rate limiter": Case(
        "T424",
        {"models": {"m": {"instances": [{"rate_limiter": {"priority": 2}}]}}},
        "models.m.instances.0.rate_limiter.priority",
        "the priority is 2, and rate_limit is off in every profile",
        loads=True,
    ),
    "a profile's share of the runs without the rate limiter": Case(
        "T424",
        {"models": {"m": {"profiles": {"embedded": {"instances": [1, {"rate_limiter": {"priority": 3}}]}}}}},
        "models.m.profiles.embedded.instances.1.rate_limiter.priority",
        loads=True,
    ),
    # T414 and T415 on a Triton with a rate limiter: tests/triton/test_model_traps.py.
    "a resource of each device and of all": Case(
        "T414",
        limited({"memory": 1}, {"memory": {"count": 1, "all_devices": True}}, stock={}),
        "models.m.instances.1.rate_limiter.resources.memory",
        "others take memory from one for each device",
    ),
    "more of a resource than there is": Case(
        "T415",
        limited({"memory": 5}, stock={"memory": 4}),
        "models.m.instances.0.rate_limiter.resources.memory",
        "it wants 5 of memory, and embedded has 4",
    ),
    "a resource that is not among those there are": Case(
        "T415",
        limited({"memory": 4, "disk": 1}, stock={"memory": 4}),
        "models.m.instances.0.rate_limiter.resources.disk",
        "it wants 1 of disk, and embedded has 0",
    ),
    "a resource that nobody wants": Case(
        "T416", triton(rate_limit=True, resources={"memory": 4}), f"{TRITON}.resources.memory", "nobody wants memory"
    ),
}
CASES = {**SERVERS, **VERSIONS, **RATE_LIMITS}
