"""What Triton's metrics say of each model's work.

Only they tell how many requests wait: ModelStatistics, over gRPC, does not. Source: Triton's user guide, "Metrics".
"""

from __future__ import annotations

import http.client
import re
from collections import Counter

from serve_app.triton.stall import Work

_COUNTED = re.compile(
    r"^nv_inference_(?P<what>pending_request_count|exec_count)"
    r'\{(?:[^}]*,)?model="(?P<model>[^"]*)"[^}]*\} (?P<value>\S+)$',
    re.MULTILINE,
)


def work(text: str) -> dict[str, Work]:
    """Each model's work, all of its versions together, from metrics in Prometheus's text format."""
    counts = {"pending_request_count": Counter[str](), "exec_count": Counter[str]()}
    for found in _COUNTED.finditer(text):
        counts[found["what"]][found["model"]] += int(float(found["value"]))
    pending, executions = counts["pending_request_count"], counts["exec_count"]
    return {model: Work(pending[model], executions[model]) for model in pending}


def read(port: int, timeout: float) -> str:
    """The metrics of the server on this machine whose metrics port this is. OSError or HTTPException without any."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
    try:
        connection.request("GET", "/metrics")
        answer = connection.getresponse()
        if answer.status != 200:
            raise http.client.HTTPException(f"status {answer.status}")
        return answer.read().decode()
    finally:
        connection.close()
