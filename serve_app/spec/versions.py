"""Since which version the engines know a field, and which version a package carries.

Triton's: compared from the `model_config.proto` in the tritonclient wheels 2.41.0 to 2.73.0. A field that is not listed
is older than the oldest of them, and none was removed.
"""

from __future__ import annotations

import re

# Full name of a field of Triton's ModelConfig → the first server that knows it. Others refuse the whole file.
TRITON_FIELDS = {
    "ModelConfig.runtime": "2.42.0",
    "ModelInput.is_non_linear_format_io": "2.49.0",
    "ModelOutput.is_non_linear_format_io": "2.49.0",
    "ModelConfig.model_metrics": "2.52.0",
    "ModelEnsembling.max_inflight_requests": "2.63.0",
}
NEWEST_TRITON = "2.73.0"

# The container 25.08: the first with all fixes of August and September 2025 (CVE-2025-23310, -23311, -23316, -23317,
# -23319, -23320, -23334). 25.06 is 2.59.0.
SAFE_TRITON = "2.60.0"

# nvidia-pytriton's wheels → the server in them, read from its library.
PYTRITON = {
    "0.5.0": "2.41.0",
    "0.5.1": "2.42.0",
    "0.5.2": "2.42.0",
    "0.5.10": "2.48.0",
    "0.5.11": "2.49.0",
    "0.5.12": "2.50.0",
    "0.6.0": "2.51.0",
    "0.7.0": "2.51.0",
}


def older(version: str, than: str) -> bool:
    """Whether a version comes before another, by its first three numbers."""
    return _numbers(version) < _numbers(than)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", version)[:3]))


# Ray Serve's: compared from `ray/serve/schema.py` and `config.py` in the wheels 2.40.0 to 2.60.0; no patch release
# changed any. A field of serve_config.yaml → the first version that knows it. Older ones drop most of them in silence.
RAY_FIELDS = {
    "logging_config.additional_log_standard_attrs": "2.44.0",
    "request_router_config": "2.48.0",
    "autoscaling_config.downscale_to_zero_delay_s": "2.50.0",
    "autoscaling_config.aggregation_function": "2.51.0",
    "autoscaling_config.policy": "2.51.0",
    "autoscaling_policy": "2.51.0",
    "external_scaler_enabled": "2.53.0",
    "ray_actor_options.label_selector": "2.54.0",
    "ray_actor_options.fallback_strategy": "2.54.0",
    "placement_group_bundle_label_selector": "2.54.0",
    "autoscaling_config.policy.policy_kwargs": "2.55.0",
    "request_router_config.initial_backoff_s": "2.55.0",
    "request_router_config.backoff_multiplier": "2.55.0",
    "request_router_config.max_backoff_s": "2.55.0",
    "gang_scheduling_config": "2.55.0",
    "controller_options": "2.56.0",
    "rolling_update_percentage": "2.56.0",
    "backpressure_config": "2.58.0",
    "tracing_config": "2.59.0",
    "max_surge_percent": "2.60.0",
    "runtime_env.working_dir: local://": "2.60.0",
}
# Of these, what Tandem writes whatever the spec says.
RAY_ALWAYS = ("backpressure_config",)
NEWEST_RAY = "2.60.0"
