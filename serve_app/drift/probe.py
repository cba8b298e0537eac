"""Ask the cluster, and every replica of the deployment that owns Triton, what runs there. Runs inside the cluster, as a
job of Ray's.

Prints the answers as the last line, after MARK: `replicas`, what each of them reports; `object_stores`, the bytes of
each node's; `tracing`, what Ray Serve was told of it last, where it is new enough to say so.
"""

from __future__ import annotations

import json
import logging
import sys
from typing import Any

MARK = "TANDEM-DRIFT "
ANSWER_S = 20.0


def main(application: str, deployment: str) -> None:
    import ray
    from ray import serve

    ray.init(log_to_driver=False, logging_level=logging.ERROR)
    answers = (
        serve.get_deployment_handle(deployment, application)
        .broadcast("report")
        .results(timeout_s=ANSWER_S, return_exceptions=True)
    )
    told = {"replicas": [_plain(answer) for answer in answers], "object_stores": _object_stores(), **_tracing()}
    print(MARK + json.dumps(told), flush=True)


def _object_stores() -> dict[str, int]:
    import ray

    alive = [node for node in ray.nodes() if node["Alive"]]  # type: ignore[no-untyped-call]
    return {node["NodeManagerAddress"]: int(node["Resources"].get("object_store_memory", 0)) for node in alive}


def _tracing() -> dict[str, Any]:
    import ray
    from ray.serve._private.constants import SERVE_CONTROLLER_NAME, SERVE_NAMESPACE

    controller = ray.get_actor(SERVE_CONTROLLER_NAME, namespace=SERVE_NAMESPACE)
    if not hasattr(controller, "get_tracing_config"):  # new in 2.59
        return {}
    config = ray.get(controller.get_tracing_config.remote(), timeout=ANSWER_S)
    return {"tracing": None if config is None else config.model_dump(mode="json")}


def _plain(answer: Any) -> Any:
    return {"failure": str(answer)} if isinstance(answer, BaseException) else answer


if __name__ == "__main__":
    main(*sys.argv[1:])
