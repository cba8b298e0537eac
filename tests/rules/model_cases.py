"""Models: names, backends, batching, instances, and what surrounds them."""

from __future__ import annotations

from tests.rules.case import Case

CASES = {
    "a queue delay longer than the latency budget": Case(
        "T101", {"models": {"m": {"batching": {"queue_delay": "101ms"}}}}, "models.m.batching.queue_delay", loads=True
    ),
    "a queue delay longer than the queue timeout": Case(
        "T102",
        {
            "models": {
                "m": {"latency_budget": "1s", "batching": {"queue_delay": "300ms", "queue": {"timeout": "100ms"}}}
            }
        },
        "models.m.batching.queue_delay",
        "a lone request will always fail after 100ms",
        loads=True,
    ),
    "a queue shorter than a batch": Case(
        "T103", {"models": {"m": {"batching": {"queue": {"size": 7}}}}}, "models.m.batching.queue.size", loads=True
    ),
    "an onnx model without weights": Case(
        "W001", {"models": {"m": {"backend": "onnx"}}}, "models.m", "m has no weights"
    ),
}
