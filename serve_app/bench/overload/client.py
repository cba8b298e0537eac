"""A client process: sends each request at its moment, over gRPC, and tells what came of it.

Orders come as lines of JSON on its input, answers go to its output: `{"address", "streams": {tier: {"metadata",
"priority", "moments"}}}` is answered `{}` when its connections stand, then the moment to begin at (CLOCK_MONOTONIC)
with `{"cpu", "wall", "shots": [[tier, due, sent, ended, kind], …]}`. It ends with its input.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Mapping
from typing import Any

import grpc
from tritonclient.grpc import service_pb2

from serve_app.bench.overload.deployment import MODEL
from serve_app.bench.overload.loads import all_moments
from serve_app.triton.channel import CallError, Channel

# The kernel gives each connection to one replica.
CONNECTIONS = 8
# For a service that does not answer at all.
SILENCE_S = 10.0
_KINDS = {
    grpc.StatusCode.RESOURCE_EXHAUSTED: "refused",
    grpc.StatusCode.UNAVAILABLE: "refused",
    grpc.StatusCode.DEADLINE_EXCEEDED: "late",
}


class Stream:
    """One tier's requests, in turn over its own connections."""

    def __init__(self, address: str, metadata: Mapping[str, str], priority: int | None):
        self._channels = [Channel(address, metadata) for _ in range(CONNECTIONS)]
        self._turn = 0
        self._request = service_pb2.ModelInferRequest(model_name=MODEL, raw_input_contents=[bytes(4)])
        self._request.inputs.add(name="x", datatype="FP32", shape=[1, 1])
        if priority is not None:
            self._request.parameters["priority"].uint64_param = priority

    async def connect(self) -> None:
        question, answer = service_pb2.ServerReadyRequest(), service_pb2.ServerReadyResponse
        await asyncio.gather(*(each.call("ServerReady", question, answer, SILENCE_S) for each in self._channels))

    async def send(self) -> str:
        """What came of one request: answered, refused, late or failed."""
        self._turn = (self._turn + 1) % CONNECTIONS
        channel = self._channels[self._turn]
        try:
            await channel.call("ModelInfer", self._request, service_pb2.ModelInferResponse, SILENCE_S)
        except CallError as error:
            return _KINDS.get(error.code(), "failed")
        return "answered"

    def close(self) -> None:
        for each in self._channels:
            each.close()


async def offer(streams: Mapping[str, Stream], moments: list[tuple[float, str]], begin: float) -> list[list[Any]]:
    """Send all of it; each request's tier, when it was due, sent and over, in seconds after `begin`, and its kind."""
    loop = asyncio.get_running_loop()
    shots: list[list[Any]] = []

    async def shoot(tier: str, due: float) -> None:
        sent = loop.time() - begin
        kind = await streams[tier].send()
        shots.append([tier, due, sent, loop.time() - begin, kind])

    flying = []
    for due, tier in moments:
        # Also where it is late already: answers have to be read between two requests.
        await asyncio.sleep(max(0.0, begin + due - loop.time()))
        flying.append(asyncio.ensure_future(shoot(tier, due)))
    await asyncio.gather(*flying)
    return shots


async def _obey(order: Mapping[str, Any]) -> dict[str, Any]:
    given = order["streams"]
    streams = {tier: Stream(order["address"], each["metadata"], each["priority"]) for tier, each in given.items()}
    try:
        await asyncio.gather(*(each.connect() for each in streams.values()))
        _tell({})
        begin = json.loads(await asyncio.to_thread(sys.stdin.readline))
        cpu, wall = time.process_time(), time.monotonic()
        shots = await offer(streams, all_moments({tier: each["moments"] for tier, each in given.items()}), begin)
        return {"cpu": time.process_time() - cpu, "wall": time.monotonic() - wall, "shots": shots}
    finally:
        for each in streams.values():
            each.close()


def _tell(answer: Mapping[str, Any]) -> None:
    print(json.dumps(answer), flush=True)


def main() -> None:
    for line in sys.stdin:
        _tell(asyncio.run(_obey(json.loads(line))))


if __name__ == "__main__":
    main()
