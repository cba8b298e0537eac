"""What was probably meant: names that are nearly right, and the words of Triton's and Ray Serve's configurations."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

# Triton's ModelConfig and Ray Serve's schema → the spec. The value under the key means the same.
KEYS = {
    "max_batch_size": "max_batch",
    "platform": "backend",
    "dynamic_batching": "batching",
    "sequence_batching": "sequence",
    "ensemble_scheduling": "steps",
    "step": "steps",
    "instance_group": "instances",
    "input": "inputs",
    "output": "outputs",
    "batch_input": "batch_inputs",
    "batch_output": "batch_outputs",
    "default_model_filename": "file",
    "version_policy": "versions",
    "model_warmup": "warmup",
    "model_metrics": "metrics",
    "model_operations": "triton",
    "preferred_batch_size": "preferred_sizes",
    "default_queue_policy": "queue",
    "priority_queue_policy": "queues",
    "timeout_action": "on_timeout",
    "allow_timeout_override": "allow_override",
    "max_queue_size": "size",
    "control_input": "controls",
    "state": "states",
    "iterative_sequence": "iterative",
    "max_candidate_sequences": "max_candidates",
    "use_same_buffer_for_input_output": "same_buffer",
    "use_growable_memory": "growable",
    "input_name": "input",
    "output_name": "output",
    "initial_state": "initial",
    "input_map": "takes",
    "output_map": "gives",
    "model_name": "model",
    "model_version": "version",
    "model_namespace": "namespace",
    "allow_ragged_batch": "ragged",
    "is_shape_tensor": "shape_tensor",
    "is_non_linear_format_io": "non_linear",
    "is_optional": "optional",
    "label_filename": "labels",
    "target_name": "targets",
    "source_input": "sources",
    "global": "all_devices",
    "profile": "profiles",
    "graph_spec": "graph_specs",
    "graph_lower_bound": "lower_bound",
    "gpu_execution_accelerator": "gpu_accelerators",
    "cpu_execution_accelerator": "cpu_accelerators",
    "max_concurrent_queries": "max_ongoing_requests",
    "num_cpus": "cpus",
    "num_gpus": "gpus",
    "autoscaling_config": "autoscaling",
    "target_num_ongoing_requests_per_replica": "target_ongoing_requests",
    "graceful_shutdown_wait_loop_s": "drain_wait",
    "graceful_shutdown_timeout_s": "shutdown_timeout",
    "backpressure_config": "backpressure",
    "status_code": "status",
    "look_back_period_s": "look_back",
    "aggregation_function": "aggregation",
    "policy_function": "code",
    "policy_kwargs": "arguments",
    "request_router_config": "router",
    "request_router_class": "code",
    "request_router_kwargs": "arguments",
    "logging_config": "logging",
    "log_level": "level",
    "enable_access_log": "access_log",
    "additional_log_standard_attrs": "attributes",
    "tracing_config": "tracing",
    "exporter_import_path": "exporter",
    "http_options": "http",
    "grpc_options": "grpc",
    "keep_alive_timeout_s": "keep_alive",
    "ssl_certfile": "certificate",
    "ssl_keyfile": "key",
    "external_scaler_enabled": "external_scaler",
    "env_vars": "environment",
    "label_selector": "labels",
    "fallback_strategy": "fallback",
    "max_replicas_per_node": "max_per_node",
    "gang_scheduling_config": "gang",
    "gang_size": "size",
    "import_path": "code",
    "func_or_class": "code",
    "deployments": "stages",
    "route_prefix": "route",
    "http_port": "port",
    "image_uri": "image",
}
# Theirs → the spec's, and how its value is written there.
OTHERWISE = {
    "dims": ("tensor", "the type and dimensions together, as float32[3]"),
    "data_type": ("tensor", "the type and dimensions together, as float32[3]"),
    "response_cache": ("cache", "true or false"),
    "model_transaction_policy": ("decoupled", "true or false"),
    "max_queue_delay_microseconds": ("queue_delay", "a duration with its unit, as 5ms"),
    "max_sequence_idle_microseconds": ("idle_timeout", "a duration with its unit, as 5s"),
    "default_timeout_microseconds": ("timeout", "a duration with its unit, as 100ms"),
    "priority_levels": ("priorities", "tiers, none, or {levels: 3, default: 2}"),
    "default_priority_level": ("priorities", "tiers, none, or {levels: 3, default: 2}"),
    "secondary_devices": ("nvdla", "the cores' numbers"),
    "execution_accelerators": ("gpu_accelerators", "a list of names"),
    "ray_actor_options": ("cpus", "a number; memory, gpus, environment and node stand beside it"),
    "runtime_env": ("environment", "variables here; packages and folders in ray.runtime_environment, for all"),
    "placement_group_strategy": ("placement", "{strategy: pack, beside: [{cpus: 1}]}"),
    "num_replicas": ("count", "a number, or autoscaling instead"),
    "rolling_update_percentage": ("rolling_update", "{at_once: 20%}"),
    "max_surge_percent": ("rolling_update", "{surge: 20%}"),
    "placement_group_bundles": ("placement", "{beside: [{cpus: 1}]}, without the replica's own"),
    "sampling_ratio": ("sampling", "a percentage, as 1%"),
    "request_timeout_s": ("sla", "a duration with its unit, as 8s"),
    "request_timeout": ("sla", "a duration with its unit, as 8s"),
}
# Theirs that the spec leaves out on purpose → why, and what to do instead.
LEFT_OUT = {
    **dict.fromkeys(
        ("proxy_location", "location"),
        (
            "the ingress listens itself, and Ray Serve's proxies are off",
            "write its address in service.host, and its nodes in ingress.node",
        ),
    ),
    "deployment_actors": (
        "a stage is a plain class that knows nothing of Ray", "make what it needs in its constructor",
    ),
    "logs_dir": ("Ray's dashboard finds logs in Ray's own folder only", "remove it"),
    "smoothing_factor": (
        "Ray Serve has given it up", "write upscaling_factor and downscaling_factor, in autoscaling",
    ),
    "upscale_smoothing_factor": ("Ray Serve has given it up", "write upscaling_factor, in autoscaling"),
    "downscale_smoothing_factor": ("Ray Serve has given it up", "write downscaling_factor, in autoscaling"),
    **dict.fromkeys(
        ("conda", "py_executable"),
        (
            "it would be another Python, in which neither Tandem nor Triton is installed",
            "install packages with pip, or give a whole image, both in ray.runtime_environment",
        ),
    ),
    "container": ("Ray has given it up", "write image, in ray.runtime_environment"),
    "uv": ("it installs what pip does", "write pip, in ray.runtime_environment"),
    "excludes": (
        "Ray Serve takes no folder of this machine, of which something could be left out",
        "leave it out of the archive at working_dir",
    ),
    "java_jars": ("stages are Python", "remove it"),
    "worker_process_setup_hook": (
        "what prepares a process would be in two places", "prepare it in the stage's constructor",
    ),
    "eager_install": ("Ray Serve starts its processes at once", "remove it"),
    "log_files": ("Ray's own files say how the preparation went", "remove it"),
    "model_control_mode": (
        "Tandem's Triton loads the models of the spec, and takes orders from Tandem alone",
        "remove it; `exposed` says which models clients can call",
    ),
    **dict.fromkeys(
        ("strict_model_config", "disable_auto_complete_config"),
        ("configurations are rendered in full, and Triton completes none", "remove it"),
    ),
    "strict_readiness": ("it is always on: the service is ready when all its models are", "remove it"),
}  # fmt: skip
_UNIT = re.compile(r"_(s|sec|seconds|ms|milliseconds|us|microseconds|bytes|byte_size|kb|mb|gb|mib|gib)$")
_PREFIXES = ("kind_", "type_", "format_", "model_", "priority_", "control_sequence_", "batch_", "data_type_")
# Other names of values: of Triton's, NumPy's and ONNX's types, and of devices.
_VALUES = {
    "fp16": "float16", "half": "float16", "fp32": "float32", "float": "float32", "fp64": "float64",
    "double": "float64", "bf16": "bfloat16", "int": "int32", "long": "int64", "bytes": "string", "str": "string",
    "object": "string", "boolean": "bool", "cuda": "gpu",
    "u8": "uint8", "u16": "uint16", "u32": "uint32", "u64": "uint64", "i8": "int8", "i16": "int16", "i32": "int32",
    "i64": "int64", "f16": "float16", "f32": "float32", "f64": "float64",
}  # fmt: skip


def closest(word: str, known: Iterable[str]) -> str | None:
    """The known name that `word` is probably meant to be, or None."""
    names = {_folded(name): name for name in known}
    folded = _folded(word)
    bare = next((folded.removeprefix(prefix) for prefix in _PREFIXES if folded.startswith(prefix)), folded)
    for candidate in (folded, bare, _VALUES.get(bare)):
        if candidate in names:
            return names[candidate]
    close = difflib.get_close_matches(folded, names, 1, 0.65)
    return names[close[0]] if close else None


def did_you_mean(word: object, known: Iterable[str]) -> str | None:
    """A remedy that names what was probably meant; None where nothing is near."""
    found = closest(str(word), known)
    return None if found is None else f"did you mean {found}?"


def in_the_specs_words(key: str, fields: Iterable[str] = ()) -> tuple[str, str | None] | None:
    """The spec's word for a key of Triton's or Ray Serve's, and how its value is written where that differs.

    A key that carries its unit in its name is found among `fields`, which need none there.
    """
    if key in KEYS:
        return KEYS[key], None
    if key in OTHERWISE:
        return OTHERWISE[key]
    bare = _UNIT.sub("", key)
    if bare != key and bare in fields:
        return bare, "with the unit at the value, as 5s or 10MiB"
    return None


def _folded(word: str) -> str:
    """Without differences of case and of how words are joined."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", word).lower().replace("-", "_").replace(" ", "_")
