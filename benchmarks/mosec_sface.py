"""The reference: SFace behind mosec. `python mosec_sface.py --address 127.0.0.1 --port PORT`.

Environment: MODEL, INSTANCES, THREADS. Takes a picture of an aligned crop as the body of POST /inference, and answers
its embedding as JSON, as /v1/faces/embed does.
"""

from __future__ import annotations

import os

import cv2
import numpy as np
from mosec import Server, Worker
from ort import load


class Embed(Worker):
    def __init__(self) -> None:
        cv2.setNumThreads(1)
        self._session = load(os.environ["MODEL"], int(os.environ["THREADS"]))

    def deserialize(self, data: bytes) -> np.ndarray:
        return np.asarray(cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR))

    def forward(self, crops: list[np.ndarray]) -> list[dict[str, list[float]]]:
        (embeddings,) = self._session.run(None, {"crop": np.stack(crops)})
        return [{"embedding": each.tolist()} for each in embeddings]


if __name__ == "__main__":
    server = Server()
    server.append_worker(Embed, num=int(os.environ["INSTANCES"]), max_batch_size=16, max_wait_time=2)
    server.run()
