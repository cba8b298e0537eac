"""How many replicas the ingress needs. Ray Serve does not see its requests, since none of them comes by a handle."""

from __future__ import annotations

from typing import Any

from ray.serve.config import AutoscalingContext

REQUESTS = "requests"


def by_requests(context: AutoscalingContext) -> tuple[float, dict[str, Any]]:
    """So many that each has `target_ongoing_requests`, counting those that wait.

    What each replica says of its requests is averaged over the look back; Ray Serve applies factors, delays and bounds.
    """
    if context.config is None:
        raise ValueError("the ingress has no autoscaling")
    requests = (context.aggregated_metrics or {}).get(REQUESTS, {})
    if not requests:  # none has said anything yet
        return context.target_num_replicas, {}
    return sum(requests.values()) / context.config.get_target_ongoing_requests(), {}
