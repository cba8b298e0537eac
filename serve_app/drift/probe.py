"""Ask every replica of the deployment that owns Triton what runs there. Runs inside the cluster, as a job of Ray's.

Prints the answers as the last line, after MARK.
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
    print(MARK + json.dumps([_plain(answer) for answer in answers]), flush=True)


def _plain(answer: Any) -> Any:
    return {"failure": str(answer)} if isinstance(answer, BaseException) else answer


if __name__ == "__main__":
    main(*sys.argv[1:])
