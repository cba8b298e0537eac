"""One real Triton for the session, with its HTTP service on to compare with, and the door in front of it."""

from __future__ import annotations

import asyncio
import re
import socket
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import pytest_asyncio
import uvicorn
from tritonclient.grpc import InferenceServerClient, InferInput
from tritonclient.utils import InferenceServerException

from serve_app.admission import Admission, AdmissionLimits
from serve_app.artefacts import mirror_directory
from serve_app.grpc_server.server import GrpcServer
from serve_app.identity import Contexts
from serve_app.protocol.app import ProtocolApp
from serve_app.protocol.backend import TritonBackend
from serve_app.protocol.grpc_door import GrpcDoor
from serve_app.protocol.limits import Limits
from serve_app.protocol.signatures import Signatures
from serve_app.triton import launch, metrics
from serve_app.triton.client import WakeUpsOf
from serve_app.triton.connection import Connection
from serve_app.triton.find import find
from serve_app.triton.server import TritonServer
from serve_app.weights.archive import unpack_wheel
from serve_app.weights.fetch import cache_directory, fetch
from tests.protocol.served import NAMES, SPEC, write_repository

WHEEL = ("nvidia-pytriton==0.7.0", "21f063ff93bb426d0c06b7a55e7eb9efcfe62c0dddd9a908e9877e18710128df")


@dataclass(frozen=True)
class Bare:
    """A Triton without anything in front: the addresses of its two services, as host:port."""

    http: str
    grpc: str
    server: TritonServer
    models: Path
    gate: Path

    def cancelled(self, model: str) -> int:
        """How many of a model's requests Triton has cancelled."""
        assert self.server.metrics_port is not None
        text = metrics.read(self.server.metrics_port, 5)
        counted = rf'^nv_inference_request_failure{{model="{model}",reason="CANCELED",version="1"}} (\d+)$'
        (count,) = re.findall(counted, text, re.MULTILINE)
        return int(count)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def bare(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Bare]:
    unpacked = cache_directory() / "triton" / WHEEL[1]
    if not unpacked.is_dir():
        unpack_wheel(fetch(*WHEEL, "wheel", cache=cache_directory(), mirror=mirror_directory()), unpacked)
    folder = tmp_path_factory.mktemp("protocol")
    models, gate = folder / "models", folder / "gate"
    gate.mkdir()
    write_repository(models, gate)
    port = launch.free_port()
    embedded = launch.command

    def with_http(*arguments: Any, **options: Any) -> list[str]:
        kept = [word for word in embedded(*arguments, **options) if not word.startswith("--allow-http")]
        return [*kept, "--allow-http=true", "--http-address=127.0.0.1", f"--http-port={port}"]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(launch, "command", with_http)
        server = await TritonServer.start(
            find(unpacked),
            models,
            models=NAMES,
            ready_timeout=60,
            exit_timeout=10,
            log_directory=folder / "logs",
            environment={"CUDA_VISIBLE_DEVICES": ""},
            features=launch.Features(metrics=True),
        )
    yield Bare(f"127.0.0.1:{port}", server.address, server, models, gate)
    await server.stop(0)


@dataclass(frozen=True)
class Door:
    """The protocol's two halves in front of the bare server, as host:port."""

    http: str
    grpc: str


async def _serve(bare: Bare, http_port: int, grpc_port: int, started: threading.Event, ended: threading.Event) -> None:
    async def locate(lost: str | None) -> str:
        return bare.grpc

    connection = Connection(locate)
    backend = TritonBackend(connection, WakeUpsOf(connection, SPEC, "embedded").outstanding)
    admission = Admission(AdmissionLimits(100, 100, 429, 1))
    parts = Signatures(SPEC, "embedded"), backend, Contexts(SPEC), admission, Limits.of(SPEC)
    limits = Limits.of(SPEC)
    server = GrpcServer(GrpcDoor(*parts).methods(), limit=limits.body + limits.listed, within=8)
    await server.start(socket.create_server(("127.0.0.1", grpc_port)))
    config = uvicorn.Config(
        ProtocolApp(*parts), host="127.0.0.1", port=http_port, lifespan="off", log_level="warning", ws="none"
    )
    http = uvicorn.Server(config)
    serving = asyncio.create_task(http.serve())
    while not http.started:
        await asyncio.sleep(0.01)
    started.set()
    await asyncio.to_thread(ended.wait)
    http.should_exit = True
    await serving
    await server.stop(0)
    (await connection.channel(None, 10)).close()


@pytest.fixture(scope="session")
def door(bare: Bare) -> Iterator[Door]:
    """In a thread with a loop of its own, so that clients that block can call it."""
    ports = launch.free_port(), launch.free_port()
    started, ended = threading.Event(), threading.Event()
    thread = threading.Thread(target=asyncio.run, args=[_serve(bare, *ports, started, ended)])
    thread.start()
    assert started.wait(20)
    yield Door(*(f"127.0.0.1:{port}" for port in ports))
    ended.set()
    thread.join(20)


@dataclass(frozen=True)
class Gate:
    folder: Path

    def entered(self) -> bool:
        return (self.folder / "entered").exists()

    def open(self) -> None:
        (self.folder / "shut").unlink(missing_ok=True)


def _empty_its_queue(bare: Bare) -> None:
    """What was cancelled in another test keeps its place until a request that is accepted makes Triton look."""
    given = InferInput("x", [1, 1], "FP32").set_data_from_numpy(np.zeros((1, 1), np.float32))
    with InferenceServerClient(bare.grpc) as client:
        while True:
            try:
                client.infer("gate", [given])
            except InferenceServerException as full:
                assert "Exceeds maximum queue size" in str(full)  # noqa: PT017  # then it is tried again
            else:
                return


@pytest.fixture
def gate(bare: Bare) -> Iterator[Gate]:
    """The model `gate`, which works on nothing while it is shut."""
    _empty_its_queue(bare)
    (bare.gate / "entered").unlink(missing_ok=True)
    (bare.gate / "shut").touch()
    gate = Gate(bare.gate)
    yield gate
    gate.open()


@pytest.fixture(scope="session")
def eventually() -> Callable[..., None]:
    """Waits until a condition holds, and fails where it does not within `within` seconds."""

    def eventually(condition: Callable[[], object], within: float = 5.0) -> None:
        pause, waited = threading.Event(), 0.0
        while not condition():
            assert waited < within, f"not within {within} s"
            pause.wait(0.01)
            waited += 0.01

    return eventually
