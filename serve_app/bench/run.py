"""One request under one load after the other."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import httpx

from serve_app.bench.clients import Client, GrpcClient, GrpcRequest, HttpClient, HttpRequest
from serve_app.bench.error import BenchError
from serve_app.bench.loops import ClosedLoop, Load
from serve_app.bench.report import Result
from serve_app.bench.requests import contents_for, grpc_infer, http_infer, of_files
from serve_app.bench.server import ANSWER_WITHIN_S, GrpcServer, HttpServer, Server
from serve_app.bench.windows import Plan, measure
from serve_app.cluster.verify import is_this_machine
from serve_app.triton.channel import grpc_channel

# An open loop's requests come from many clients; so many connections carry them.
OPEN_CONNECTIONS = 16


@dataclass(frozen=True)
class Target:
    """What is measured: a route (`/v1/verify`) with its files, or a model by its name.

    `url`: http://…, https://… or grpc://HOST:PORT. `headers`: those of every request; metadata over gRPC.
    """

    what: str
    url: str
    files: Sequence[tuple[str, Path]] = ()
    shapes: Mapping[str, Sequence[int]] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_route(self) -> bool:
        return self.what.startswith("/")


def bench(target: Target, loads: Sequence[Load], plan: Plan, progress: Callable[[str], None]) -> list[Result]:
    """Measure the target under each load. BenchError where it does not answer the first request."""
    return asyncio.run(_bench(target, loads, plan, progress))


async def _bench(target: Target, loads: Sequence[Load], plan: Plan, progress: Callable[[str], None]) -> list[Result]:
    results: list[Result] = []
    async with _server(target.url) as server:
        request = await _request(target, server)
        progress(f"{request}, {request.size} bytes")
        for load in loads:
            connections = load.clients if isinstance(load, ClosedLoop) else OPEN_CONNECTIONS
            client: Client = (
                HttpClient(request, trusting=is_this_machine(target.url))
                if isinstance(request, HttpRequest)
                else GrpcClient(request, connections)
            )
            async with client:
                first = await client.send()
                if first.kind != "answered":
                    raise BenchError(f"{request} is not answered: {first.code}: {first.detail}")
                progress(str(load))
                results.append(
                    Result(request, load, await measure(load, client.send, plan, server.statistics, progress))
                )
    return results


@asynccontextmanager
async def _server(given: str) -> AsyncIterator[Server]:
    url = urlsplit(given)
    if url.scheme == "grpc":
        async with grpc_channel(url.netloc) as channel:
            yield GrpcServer(channel, url.netloc)
    else:
        verify = not is_this_machine(given)
        async with httpx.AsyncClient(verify=verify, timeout=ANSWER_WITHIN_S, trust_env=False) as client:
            yield HttpServer(client, given.rstrip("/"))


async def _request(target: Target, server: Server) -> HttpRequest | GrpcRequest:
    url = target.url.rstrip("/")
    if target.is_route:
        return of_files(url + target.what, target.files, target.headers)
    inputs = contents_for(await server.config(target.what), target.shapes)
    if url.startswith("grpc://"):
        return grpc_infer(urlsplit(url).netloc, target.what, inputs, target.headers)
    return http_infer(url, target.what, inputs, target.headers)
