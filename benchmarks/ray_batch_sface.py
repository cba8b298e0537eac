"""The reference: SFace behind Ray Serve's own `@serve.batch`. `python ray_batch_sface.py PORT`.

Environment: MODEL, INSTANCES, THREADS. Takes and answers what mosec_sface.py does, at /.
"""

from __future__ import annotations

import os
import signal
import sys

import cv2
import numpy as np
import ray
from ort import load
from ray import serve
from starlette.requests import Request


@serve.deployment(
    num_replicas=int(os.environ["INSTANCES"]), max_ongoing_requests=64, ray_actor_options={"num_cpus": 0.1}
)
class Embed:
    def __init__(self) -> None:
        cv2.setNumThreads(1)
        self._session = load(os.environ["MODEL"], int(os.environ["THREADS"]))

    @serve.batch(max_batch_size=16, batch_wait_timeout_s=0.002)
    async def embed(self, pictures: list[bytes]) -> list[dict[str, list[float]]]:
        crops = [np.asarray(cv2.imdecode(np.frombuffer(each, np.uint8), cv2.IMREAD_COLOR)) for each in pictures]
        (embeddings,) = self._session.run(None, {"crop": np.stack(crops)})
        return [{"embedding": each.tolist()} for each in embeddings]

    async def __call__(self, request: Request) -> dict[str, list[float]]:
        return await self.embed(await request.body())


def main() -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    ray.init(address="local", include_dashboard=False, log_to_driver=False)
    try:
        serve.start(http_options={"host": "127.0.0.1", "port": int(sys.argv[1])})
        serve.run(Embed.bind())  # type: ignore[attr-defined]  # as Ray types its deployments
        signal.pause()
    finally:
        ray.shutdown()


if __name__ == "__main__":
    main()
