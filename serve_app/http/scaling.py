"""How many replicas the ingress needs. Ray Serve does not see its requests, since none of them comes by a handle."""

from __future__ import annotations

import math
from typing import Any

from ray.serve.config import AutoscalingContext

REQUESTS = "requests"


def by_requests(context: AutoscalingContext) -> tuple[int, dict[str, Any]]:
    """So many that each has `target_ongoing_requests`, counting those that wait. Ray Serve applies bounds and delays."""
    requests = sum(((context.aggregated_metrics or {}).get(REQUESTS) or {}).values())
    return math.ceil(requests / context.config.target_ongoing_requests), {}
