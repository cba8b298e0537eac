"""Models: weights, files, versions, parameters, overrides, instances and warm-up."""

from __future__ import annotations

from typing import Any

from tests.rules.case import Case, merged
from tests.rules.server_cases import GPU
from tests.rules.tensor_cases import ONNX

HASH = "0" * 64
PREPARE = "serve_app.kyc.antifraud:build_onnx"


def model(**fields: Any) -> dict[str, Any]:
    return {"models": {"m": fields}}


def weights(**fields: Any) -> dict[str, Any]:
    return model(backend="onnx", weights=fields)


def group(**fields: Any) -> dict[str, Any]:
    return model(instances=[fields])


def warmed(x: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """The model m with a warm-up that fills x as said."""
    return model(warmup=[{"name": "first", "inputs": {"x": x}, **fields}])


def on_gpu(**fields: Any) -> dict[str, Any]:
    return {**group(kind="gpu", **fields), "profiles": {"gpu": GPU}, "models": {"m": {"profiles": {"gpu": {
        "instances": [{"kind": "gpu", **fields}]}}}}}  # fmt: skip


GROUP = "models.m.instances.0"
GPU_GROUP = "models.m.profiles.gpu.instances.0"
WARMUP = "models.m.warmup.0"

WEIGHTS = {
    "an onnx model without weights": Case("W001", model(backend="onnx"), "models.m", "m has no weights"),
    "weights of nothing": Case("W002", weights(), "models.m.weights", "neither file nor prepare is given"),
    "a package without the file in it": Case(
        "W003", weights(package="some==1", sha256=HASH, prepare=PREPARE), "models.m.weights", "which file of some==1"
    ),
    "a file without its sha256": Case("W004", weights(file="m.onnx"), "models.m.weights", "the file has no sha256"),
    "a package without its sha256": Case(
        "W004", weights(package="some==1", file="m.onnx"), "models.m.weights", "the package has no sha256"
    ),
    "a kind of package without a package": Case(
        "W005", weights(kind="sdist", file="m.onnx", sha256=HASH), "models.m.weights.kind"
    ),
    "weights of a backend that reads none": Case(
        "W006",
        model(backend="tensorrt", weights={"prepare": PREPARE}),
        "models.m.weights",
        "the backend of m is tensorrt: they become a model.onnx that nothing loads",
    ),
    "a package without its version": Case(
        "W007", weights(package="some", file="m.onnx", sha256=HASH), "models.m.weights.package"
    ),
    "a sha256 of no file": Case("W008", weights(prepare=PREPARE, sha256=HASH), "models.m.weights.sha256"),
}
VERSIONS = {
    "no choice of versions": Case("T195", model(versions={}), "models.m.versions", "none is chosen"),
    "two choices of versions": Case(
        "T195", model(versions={"all": True, "latest": 2}), "models.m.versions", "all and latest are given", loads=True
    ),
    "the latest none of the versions": Case(
        "T196",
        model(versions={"latest": 0}),
        "models.m.versions.latest",
        refused="at least one version must be available under the version policy",
    ),
    "none of the versions": Case(
        "T196",
        model(versions={"only": []}),
        "models.m.versions.only",
        refused="at least one version must be available under the version policy",
    ),
    "a version that Tandem does not prepare": Case(
        "T197",
        model(versions={"only": [2]}, **ONNX),
        "models.m.versions.only",
        "versions [2] are wanted, and Tandem makes version 1",
        refused="at least one version must be available under the version policy",
    ),
    "a file name for what Tandem prepares": Case(
        "T198", model(file="net.onnx", **ONNX), "models.m.file", "file is net.onnx, and m an ONNX model"
    ),
    "a parameter that is neither yes nor no": Case(
        "T199",
        model(parameters={"FORCE_CPU_ONLY_INPUT_TENSORS": "true"}),
        "models.m.parameters.FORCE_CPU_ONLY_INPUT_TENSORS",
        "write yes or no",
        refused="Incorrect value for FORCE_CPU_ONLY_INPUT_TENSORS: true",
    ),
    "an environment that is nowhere": Case(
        "T199",
        model(parameters={"EXECUTION_ENV_PATH": "environment.tar.gz"}),
        "models.m.parameters.EXECUTION_ENV_PATH",
        "write a path from /",
        refused="Failed to get the canonical path for environment.tar.gz",
    ),
    "an override for a profile that is not there": Case(
        "T410",
        model(profiles={"gpu": {"max_batch": 4}}),
        "models.m.profiles.gpu",
        "there is no profile 'gpu'; there is embedded",
    ),
    "an override that takes the batch away": Case(
        "T411",
        model(profiles={"embedded": {"max_batch": 0}}),
        "models.m.profiles.embedded.max_batch",
        "max_batch is 0 here, and 8 in the model",
        loads=True,
    ),
}
INSTANCES = {
    "instances for a GPU that is not there": Case(
        "T180",
        group(kind="gpu"),
        f"{GROUP}.kind",
        "kind is gpu, and the device of embedded cpu",
        refused="has kind KIND_GPU but no GPUs are available",
    ),
    "GPUs of instances for CPUs": Case(
        "T181", group(kind="cpu", gpus=[0]), f"{GROUP}.gpus", refused="has kind KIND_CPU but specifies one or more GPUs"
    ),
    "GPUs of instances that place themselves": Case(
        "T181",
        group(kind="model", gpus=[0]),
        f"{GROUP}.gpus",
        refused="has kind KIND_MODEL but specifies one or more GPUs",
    ),
    "GPUs where there are none": Case(
        "T181", group(kind="auto", gpus=[0]), f"{GROUP}.gpus", refused="specifies one or more GPUs"
    ),
    "optimisation profiles outside TensorRT": Case(
        "T182",
        group(profiles=["0"]),
        f"{GROUP}.profiles",
        "the backend is python in embedded",
        refused="specifies profile field which is only supported for TensorRT models",
    ),
    "a GPU beyond those asked for": Case(
        "T183", on_gpu(gpus=[0, 1]), f"{GPU_GROUP}.gpus", "GPU 1 is wanted, and gpu asks for 1"
    ),  # Triton's refusal needs a GPU
    "GPUs that no instance runs on": Case(
        "R062",
        merged(on_gpu(gpus=[0]), {"profiles": {"gpu": {"triton": {"gpus": 4}}}}),
        "profiles.gpu.triton.gpus",
        "4 GPUs are asked for, and instances run on GPU 0 alone",
    ),
    "a GPU named twice": Case("T184", on_gpu(gpus=[0, 0]), f"{GPU_GROUP}.gpus", "GPU 0 is named 2 times"),
    "no instances": Case("T185", group(count=0), f"{GROUP}.count", "count is 0", loads=True),
    "fewer than no instances": Case("T185", model(instances=-3), f"{GROUP}.count", "count is -3", loads=True),
    "groups with the same name": Case(
        "T186",
        model(instances=[{"name": "one"}, {"name": "one"}]),
        "models.m.instances.1.name",
        "another group is called 'one' too",
        loads=True,
    ),
    "instances that are all passive": Case("T187", group(passive=True), "models.m.instances", loads=True),
    "NVDLA cores outside TensorRT": Case("T188", group(nvdla=[0]), f"{GROUP}.nvdla", loads=True),
    "a host policy that the server is not told": Case(
        "T188", group(host_policy="far"), f"{GROUP}.host_policy", loads=True
    ),
}
ZEROS = {"fill": "zeros"}
WARMUPS = {
    "a warm-up of an input that is not there": Case(
        "T189",
        model(warmup=[{"name": "first", "inputs": {"x": ZEROS, "z": {**ZEROS, "tensor": "float32[4]"}}}]),
        f"{WARMUP}.inputs.z",
        "m has only x",
    ),
    "a warm-up without an input": Case(
        "T190",
        {"models": {"m": {"inputs": {"z": "float32[4]"}, "warmup": [{"name": "first", "inputs": {"x": ZEROS}}]}}},
        f"{WARMUP}.inputs",
        "z is missing",
        refused="missing required input(s) ['z']",
    ),
    # T191 may end Triton, so that it has a server of its own: tests/triton/test_model_traps.py.
    "a warm-up with too large a batch": Case(
        "T191",
        warmed(ZEROS, batch=9),
        f"{WARMUP}.batch",
        "a batch of 9, where max_batch is 8 in embedded",
    ),
    "a warm-up with a batch of a model without batches": Case(
        "T191",
        model(max_batch=0, unscheduled=True, warmup=[{"name": "first", "batch": 2, "inputs": {"x": ZEROS}}]),
        f"{WARMUP}.batch",
    ),
    "a warm-up of other dimensions": Case(
        "T192",
        warmed({"tensor": "float32[3]"}),
        f"{WARMUP}.inputs.x.tensor",
        "float32[3] is no float32[4]",
        refused="unexpected shape for input 'x'",
    ),
    "a warm-up of another type": Case(
        "T192",
        warmed({"tensor": "int32[4]"}),
        f"{WARMUP}.inputs.x.tensor",
        refused="data-type is 'INT32', but model 'm' expects 'FP32'",
    ),
    "a warm-up that is filled and read": Case(
        "T193",
        warmed({"fill": "random", "file": "gone"}),
        f"{WARMUP}.inputs.x",
        refused="failed to open text file for read",
    ),
    "a warm-up of a varying input without dimensions": Case(
        "T194",
        {"models": {"m": {"inputs": {"x": "float32[-1]"}, "warmup": [{"name": "first", "inputs": {"x": ZEROS}}]}}},
        f"{WARMUP}.inputs.x",
        "x is a float32[-1]",
        refused="all variable-size dimensions are specified for input 'x'",
    ),
}
CASES = {**WEIGHTS, **VERSIONS, **INSTANCES, **WARMUPS}
