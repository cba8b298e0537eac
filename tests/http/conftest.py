"""What stands behind the ingress in these tests, and the ingress on a socket of its own in front of it."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from serve_app.admission import Admission, AdmissionLimits
from serve_app.context import RequestContext, Timings
from serve_app.http.app import build_app
from serve_app.http.front import Front
from serve_app.http.listener import Listener
from serve_app.identity import Contexts
from serve_app.kyc.answers import FaceComparison
from serve_app.protocol.app import ProtocolApp
from serve_app.protocol.grpc_door import GrpcDoor
from serve_app.spec import Spec, load_spec
from serve_app.spec.pipeline import Pipeline
from tests.protocol.asgi import Behind
from tests.protocol.codec import LIMITS, SIGNATURES

SPEC_FILE = Path(__file__).parents[2] / "cluster" / "spec.yaml"
SPEC = load_spec(SPEC_FILE)
ANSWER = FaceComparison(similarity=0.5, threshold=0.3, match=True)
PICTURE = b"picture"
BOTH = {"a": PICTURE, "b": PICTURE}


class Service:
    """Stands for everything behind the ingress: it notes what it was asked and answers as it is told."""

    def __init__(self) -> None:
        self.inputs: dict[str, Any] = {}
        self.contexts: list[RequestContext] = []
        self.answer: Callable[[], Any] = lambda: ANSWER
        self.asked = asyncio.Event()
        self.cancelled = asyncio.Event()

    @property
    def context(self) -> RequestContext:
        return self.contexts[-1]

    async def run(self, pipeline: Pipeline, inputs: dict[str, Any], context: RequestContext, timings: Timings) -> Any:
        self.inputs = inputs
        self.contexts.append(context)
        self.asked.set()
        with timings.measure("faces"):
            try:
                result = self.answer()
                return await result if asyncio.iscoroutine(result) else result
            except asyncio.CancelledError:
                self.cancelled.set()
                raise

    async def ready(self) -> None:
        self.answer()

    def hold(self) -> asyncio.Event:
        """Answer nothing before the event is set."""
        released = asyncio.Event()

        async def answer() -> FaceComparison:
            await released.wait()
            return ANSWER

        self.answer = answer
        return released


@pytest.fixture
async def service() -> Service:
    return Service()


@pytest.fixture
async def behind() -> Behind:
    return Behind()


def problem_code(response: httpx.Response, status: int) -> str:
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    body = response.json()
    assert body["status"] == status
    assert body["request_id"] == response.headers["x-request-id"]
    assert body["detail"]
    return str(body["code"])


def failing(problem: Exception) -> Callable[[], Any]:
    def fail() -> Any:
        raise problem

    return fail


@dataclass(frozen=True)
class Listening:
    """The ingress as it listens, with its `host` and `port` for HTTP."""

    listener: Listener
    admission: Admission
    spec: Spec

    @property
    def host(self) -> str:
        return self.spec.service.host

    @property
    def port(self) -> int:
        return self.spec.service.port

    @property
    def grpc(self) -> str:
        return f"{self.host}:{self.spec.service.grpc.port}"

    def client(self, **options: Any) -> httpx.AsyncClient:
        return httpx.AsyncClient(base_url=self.spec.url, timeout=20, **options)

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection(self.host, self.port)


Listen = Callable[..., Awaitable[Listening]]


def free_ports(host: str = "127.0.0.1") -> list[int]:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listeners = [socket.create_server((host, 0), family=family) for _ in range(2)]
    ports = [listener.getsockname()[1] for listener in listeners]
    for listener in listeners:
        listener.close()
    return ports


@pytest.fixture
async def listen(service: Service, behind: Behind) -> AsyncIterator[Listen]:
    """Starts an ingress; its arguments are what differs in the spec's `service`."""
    async with AsyncExitStack() as stack:

        async def listen(limits: AdmissionLimits | None = None, **changes: Any) -> Listening:
            port, grpc_port = free_ports(changes.get("host", "127.0.0.1"))
            data = yaml.safe_load(SPEC_FILE.read_text())
            data["service"] |= {"port": port, "grpc": {"port": grpc_port}, **changes}
            spec = Spec.model_validate(data)
            admission = Admission(limits or AdmissionLimits.of(spec))
            protocol = SIGNATURES, behind, Contexts(spec), admission, LIMITS
            api = build_app(spec, service.run, service.ready, admission)
            listener = Listener(Front(api, ProtocolApp(*protocol)), GrpcDoor(*protocol), spec)
            await listener.start()
            stack.push_async_callback(listener.drain)
            return Listening(listener, admission, spec)

        yield listen


@pytest.fixture
async def listening(listen: Listen) -> Listening:
    return await listen()
