"""A steady, small load from outside: the same requests over and over, at their own rate, whatever the service does."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import aiohttp
import httpx

from serve_app.bench.chaos.outcomes import GRPC, Kind, Seen, healthy_since, of_http
from serve_app.bench.clients import GrpcClient, GrpcRequest
from serve_app.bench.requests import Content, grpc_infer, http_infer
from serve_app.spec import Spec
from serve_app.spec.pipeline import Pipeline

STEADY, VICTIM = "chaos_steady", "chaos_victim"
# Requests a second: of the steady model over each protocol, of one that may be told to misbehave, of all routes.
MODEL_RATE, VICTIM_RATE, ROUTE_RATE = 5.0, 1.0, 1.5
# Beyond its SLA, after which a request without an answer has been forgotten.
PATIENCE_S = 5.0
MOST_WAITING = 64
# How long a connection without a request is kept.
KEPT_S = 2.0
# Of the models, which take milliseconds.
AT_ONCE_S = 1.0
WORD = Content("WORD", "UINT8", [1, 4], b"word")

Send = Callable[[], Awaitable[tuple[Kind, str]]]


@dataclass(frozen=True)
class Target:
    """One request that is sent again and again, so many times a second; answered `within` where the service is well."""

    name: str
    rate: float
    send: Send
    within: float = math.inf


@dataclass
class Load:
    """The targets, and everything that came of their requests and of the faults' own."""

    seen: list[Seen] = field(default_factory=list)
    targets: list[Target] = field(default_factory=list)
    _running: list[asyncio.Task[None]] = field(default_factory=list)
    _flying: list[float] = field(default_factory=list)

    def healthy_since(self, start: float) -> float | None:
        """See `outcomes.healthy_since`; None also while a request from before that moment has no outcome yet."""
        since = healthy_since(self.seen, [target.name for target in self.targets], start)
        return None if since is None or min(self._flying, default=since) < since else since

    async def once(self, name: str, send: Send, within: float = math.inf) -> None:
        """Send a request, and keep what came of it."""
        clock = asyncio.get_running_loop().time
        sent = clock()
        self._flying.append(sent)
        try:
            kind, code = await send()
        finally:
            self._flying.remove(sent)
        self.seen.append(Seen(name, sent, clock(), kind, code, within))

    async def _repeat(self, target: Target) -> None:
        clock = asyncio.get_running_loop().time
        waiting: set[asyncio.Task[None]] = set()
        due = clock()
        try:
            while True:
                due = max(due + 1 / target.rate, clock())
                await asyncio.sleep(due - clock())
                if len(waiting) < MOST_WAITING:
                    task = asyncio.create_task(self.once(target.name, target.send, target.within))
                    waiting.add(task)
                    task.add_done_callback(waiting.discard)
        finally:
            await asyncio.gather(*waiting)

    async def stop(self) -> None:
        """Send no more; what is on its way is awaited."""
        for task in self._running:
            task.cancel()
        await asyncio.wait(self._running)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Within the block the targets' requests are sent. What a task of it raises comes up at its end."""
        self._running = [asyncio.create_task(self._repeat(target)) for target in self.targets]
        try:
            yield
        finally:
            await self.stop()


class Clients:
    """Requests to one service. An async context manager, with connections that are kept."""

    def __init__(self, spec: Spec):
        self.spec = spec
        self._patience = spec.longest_sla.total_seconds() + PATIENCE_S

    async def __aenter__(self) -> Clients:
        self._session = aiohttp.ClientSession(
            # Those of requests that had to wait are not to be taken for the service's own.
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=KEPT_S),
            timeout=aiohttp.ClientTimeout(total=self._patience),
        )
        message = grpc_infer(self.spec.grpc_address, STEADY, [WORD], {}).message
        self._grpc = GrpcClient(GrpcRequest(self.spec.grpc_address, message), 2)
        await self._grpc.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._grpc.__aexit__(None, None, None)
        await self._session.close()

    async def post(
        self, path: str, body: bytes, headers: Mapping[str, str], *, failing: bool = False
    ) -> tuple[Kind, str, bytes]:
        """What came of a POST, and the answer's body."""
        protocol = path.startswith("/v2/")
        try:
            async with self._session.post(self.spec.url + path, data=body, headers=headers) as answer:
                content = await answer.read()
        except asyncio.TimeoutError:
            return "undocumented", "no answer", b""
        except aiohttp.ClientError:
            return "reset", "connection reset or refused", b""
        return (*of_http(answer.status, content, protocol=protocol, failing=failing), content)

    async def infer(self, model: str, word: str, *, failing: bool = False) -> tuple[Kind, str]:
        """One word to a model that answers it again; `failing`, where it was told to do otherwise."""
        letters = list(word.encode())
        tensor = {"name": "WORD", "shape": [1, len(letters)], "datatype": "UINT8", "data": letters}
        body = json.dumps({"inputs": [tensor]}).encode()
        kind, code, content = await self.post(f"/v2/models/{model}/infer", body, {}, failing=failing)
        if kind == "answered" and not failing and json.loads(content)["outputs"][0]["data"] != letters:
            return "undocumented", "200 with another answer"
        return kind, code

    async def infer_large(self, model: str, size: int) -> tuple[Kind, str]:
        """A word of so many letters."""
        request = http_infer(self.spec.url, model, [Content("WORD", "UINT8", [1, size], bytes(size))], {})
        kind, code, content = await self.post(f"/v2/models/{model}/infer", request.body, request.headers, failing=True)
        return (
            ("undocumented", "200 with another answer") if kind == "answered" and size > len(content) else (kind, code)
        )

    async def infer_over_grpc(self) -> tuple[Kind, str]:
        outcome = await self._grpc.send()
        if outcome.kind == "answered":
            return "answered", "200"
        return ("refused" if outcome.code in GRPC else "undocumented"), outcome.code

    async def route(self, path: str, body: bytes, headers: Mapping[str, str]) -> tuple[Kind, str]:
        kind, code, _ = await self.post(path, body, headers)
        return kind, code


async def targets(clients: Clients, pictures: Sequence[Path]) -> list[Target]:
    """The steady model over both protocols, the one that is made to misbehave, and the routes that can judge a sample.

    `pictures`: of a selfie and of a document.
    """
    routes = []
    for name, pipeline in clients.spec.pipelines.items():
        for form in _forms(pipeline, pictures):
            send = _route(clients, pipeline.route, form)
            if await send() == ("answered", "200"):
                routes.append((name, send))
                break
    numbers = count()

    async def steady() -> tuple[Kind, str]:
        return await clients.infer(STEADY, f"word {next(numbers)}")

    async def victim() -> tuple[Kind, str]:
        return await clients.infer(VICTIM, f"word {next(numbers)}")

    return [
        Target("HTTP", MODEL_RATE, steady, AT_ONCE_S),
        Target("gRPC", MODEL_RATE, clients.infer_over_grpc, AT_ONCE_S),
        Target("victim", VICTIM_RATE, victim, AT_ONCE_S),
        *(Target(name, ROUTE_RATE / len(routes), send) for name, send in routes),
    ]


def _forms(pipeline: Pipeline, pictures: Sequence[Path]) -> list[list[tuple[str, Path]]]:
    """The forms worth a try: each picture in the field of its name, and one picture in all of them."""
    needed = [(field, index) for field, images in pipeline.images.items() for index in range(images.fewest)]
    by_name = {picture.stem: picture for picture in pictures}
    named = [(field, by_name.get(field, pictures[0])) for field, _ in needed]
    return [named, *([(field, picture) for field, _ in needed] for picture in pictures)]


def _route(clients: Clients, path: str, form: Sequence[tuple[str, Path]]) -> Send:
    parts = [(field, (picture.name, picture.read_bytes())) for field, picture in form]
    request = httpx.Request("POST", clients.spec.url + path, files=parts)
    body, headers = request.read(), {"Content-Type": request.headers["Content-Type"]}

    async def send() -> tuple[Kind, str]:
        return await clients.route(path, body, headers)

    return send
