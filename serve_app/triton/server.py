"""One Triton server: a process on this machine, from its start to its last trace."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import grpc
from tritonclient.grpc import model_config_pb2, service_pb2, service_pb2_grpc

from serve_app.triton import guard, launch, metrics, preflight
from serve_app.triton.channel import grpc_channel
from serve_app.triton.complaint import STACK, complaint
from serve_app.triton.error import TritonError
from serve_app.triton.find import Installation
from serve_app.triton.stall import Work

NO_FEATURES = launch.Features()
_LOG_LIMIT = 10 * 1024 * 1024
_PORT_ATTEMPTS = 5
# How long the guard may take to clean up, beyond the time that the server is given.
GUARD_GRACE = 10.0
_KEPT_LINES = 40
# The python backend's process of a model without requests ends within two seconds.
_UNLOADED_WITHIN_S = 5.0
# What every server without a GPU says, and the frames of a model's traceback.
_NO_FAULT = re.compile(r"CudaDriverHelper has not been initialized|pinned memory pool|^At:$|^\S.*\(\d+\): \S+$")
_GIVES_UP = ("error: creating server", "failed to start GRPC service")
_RECONNECTION = (
    ("grpc.initial_reconnect_backoff_ms", 50),
    ("grpc.min_reconnect_backoff_ms", 50),
    ("grpc.max_reconnect_backoff_ms", 200),
)


class TritonServer:
    """A running server; made by `start`, which answers when it is ready."""

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        log: Path,
        scratch: Path,
        drain: float,
        memory_limit: int,
        metrics_port: int | None,
    ):
        """Start the process. `scratch` is removed with it. `memory_limit` is bytes; 0 is none."""
        self.address = ""
        self._drain = drain
        self.metrics_port = metrics_port
        self._scratch = scratch
        self._pid = 0
        self._prefix = ""
        self._status: int | None = None
        self._reason = ""
        self._lines: deque[str] = deque(maxlen=_KEPT_LINES)
        self._gives_up = asyncio.Event()
        self._watched = asyncio.Event()
        self._released: dict[str, asyncio.Event] = {}
        self._gone = asyncio.Event()
        self._channel: grpc.aio.Channel | None = None
        self._guard = subprocess.Popen(
            [
                *(sys.executable, "-I", "-S", guard.__file__),
                *(str(os.getpid()), str(log), str(_LOG_LIMIT), str(drain), str(memory_limit), str(scratch)),
                *command,
            ],
            env=dict(environment),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self._end = asyncio.create_task(self._follow())

    @classmethod
    async def start(
        cls,
        installation: Installation,
        repository: Path,
        *,
        models: Sequence[str],
        config_name: str | None = None,
        ready_timeout: float,
        exit_timeout: float,
        log_directory: Path,
        environment: Mapping[str, str],
        features: launch.Features = NO_FEATURES,
    ) -> TritonServer:
        """Start a server on a port of the loopback interface and wait until all of `models` are ready.

        What servers of dead owners left is removed first. Times are seconds; `exit_timeout` has to be longer than the
        queues drain and the models unload. The log is `log_directory`/triton-PID.log, PID being this process.
        `environment` is added to this process's own (CUDA_VISIBLE_DEVICES belongs there). Raises TritonError with the
        reason and what the log says about it.
        """
        faults = preflight.findings(repository, models, config_name)
        if faults:
            raise TritonError("\n".join(["the model repository cannot be loaded:", *faults]))
        await asyncio.to_thread(guard.remove_orphans)
        log_directory.mkdir(parents=True, exist_ok=True)
        log = log_directory / f"triton-{os.getpid()}.log"
        loop = asyncio.get_running_loop()
        deadline = loop.time() + ready_timeout
        for _ in range(_PORT_ATTEMPTS):
            port = launch.free_port()
            metrics_port = launch.free_port() if features.metrics else None
            scratch = Path(tempfile.mkdtemp(prefix=guard.name_prefix(os.getpid())))
            backends = installation.make_backend_directory(scratch)
            # The python backend hands its processes the path through a shell, which takes it apart at spaces.
            linked = scratch / "repository"
            linked.symlink_to(repository.resolve())
            server = cls(
                launch.command(
                    installation,
                    backends,
                    linked,
                    models=models,
                    config_name=config_name,
                    port=port,
                    metrics_port=metrics_port,
                    exit_timeout=exit_timeout,
                    features=features,
                ),
                launch.environment(installation, environment),
                log,
                scratch,
                exit_timeout,
                features.memory_limit or 0,
                metrics_port,
            )
            try:
                await server._await_ready(f"127.0.0.1:{port}", models, deadline)
            except _PortTakenError:
                await server.stop(0)
            except BaseException:
                await server.stop(0)
                raise
            else:
                return server
        raise TritonError(f"Triton did not start: {_PORT_ATTEMPTS} ports in a row were taken before it could use them.")

    @property
    def pid(self) -> int:
        """The process id of tritonserver."""
        return self._pid

    @property
    def prefix(self) -> str:
        """What the names of its shared memory begin with; also among the arguments of its processes."""
        return self._prefix

    def alive(self) -> bool:
        """Whether the server has not ended yet."""
        return self._status is None and not self._end.done()

    async def probe(self, timeout: float) -> bool:
        """Whether the server answers that it is live, within `timeout` seconds."""
        if self._channel is None:
            return False
        try:
            answer = await _stub(self._channel).ServerLive(service_pb2.ServerLiveRequest(), timeout=timeout)
        except grpc.aio.AioRpcError:
            return False
        return bool(answer.live)

    async def configs(self, timeout: float) -> dict[str, model_config_pb2.ModelConfig]:
        """What the server says of every model that is ready, by name.

        TritonError where it does not answer each question within `timeout` seconds.
        """
        if self._channel is None:
            raise TritonError("Triton does not run.")
        stub = _stub(self._channel)
        try:
            index = await stub.RepositoryIndex(service_pb2.RepositoryIndexRequest(ready=True), timeout=timeout)
            names = {model.name for model in index.models}
            requests = {name: service_pb2.ModelConfigRequest(name=name) for name in sorted(names)}
            return {name: (await stub.ModelConfig(each, timeout=timeout)).config for name, each in requests.items()}
        except grpc.aio.AioRpcError as error:
            raise TritonError(f"Triton does not answer: {error.details()}") from None

    async def work(self, timeout: float) -> dict[str, Work]:
        """Each model's work by now, where the server was started with metrics.

        TritonError where it does not tell within `timeout` seconds.
        """
        if self.metrics_port is None:
            raise TritonError("Triton was started without metrics.")
        try:
            return metrics.work(await asyncio.to_thread(metrics.read, self.metrics_port, timeout))
        except (OSError, http.client.HTTPException) as error:
            raise TritonError(f"Triton does not tell its metrics: {error}") from None

    async def reload(self, model: str, timeout: float) -> None:
        """Load a model anew and wait until what ran of it before has ended.

        Requests that it has taken stay with what runs of it; those that come until it is loaded are told that it is
        not there. TritonError where it is not loaded within `timeout` seconds, or its old processes do not end soon
        after.
        """
        if self._channel is None:
            raise TritonError("Triton does not run.")
        stub = _stub(self._channel)
        self._order(f"release {model}")
        released = self._released[model] = asyncio.Event()
        try:
            # Triton does nothing to load a model whose files are as they were, unless it is unloaded.
            await stub.RepositoryModelUnload(
                service_pb2.RepositoryModelUnloadRequest(model_name=model), timeout=timeout
            )
            await stub.RepositoryModelLoad(service_pb2.RepositoryModelLoadRequest(model_name=model), timeout=timeout)
        except grpc.aio.AioRpcError as error:
            raise TritonError(f"{model} could not be loaded anew: {error.details()}") from None
        self._order("watch")
        try:
            await asyncio.wait_for(released.wait(), _UNLOADED_WITHIN_S)
        except asyncio.TimeoutError:
            raise TritonError(f"{model} was loaded anew, and what ran of it before does not end") from None

    async def wait_exit(self) -> str:
        """Wait until the server has ended and its traces are gone; answer how it ended."""
        return await asyncio.shield(self._end)

    async def stop(self, drain: float | None = None) -> str:
        """End the server: no new requests, those in flight may finish within `drain` seconds (default: exit_timeout).

        Answers how it ended, when nothing is left of it.
        """
        seconds = self._drain if drain is None else drain
        if not self._end.done():
            self._order(f"stop {seconds}")
            done, _ = await asyncio.wait([self._end], timeout=seconds + GUARD_GRACE)
            if not done:
                self._guard.kill()
        return await self.wait_exit()

    def recent_errors(self) -> list[str]:
        """What the log said lately that was not routine, cleaned and without repetition."""
        cleaned = dict.fromkeys(map(complaint, self._lines))
        lines = [line for line in cleaned if line and not _NO_FAULT.search(line)]
        loads = [line for line in lines if line.startswith("failed to load")]
        return loads or lines  # the rest only says again that these failed

    def forget_errors(self) -> None:
        """Let `recent_errors` begin anew, with what comes from now on."""
        self._lines.clear()

    # -- what the guard tells

    async def _follow(self) -> str:
        """Read what the guard tells until it ends, then see that nothing is left."""
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(limit=2**20)
        transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), self._guard.stdout)
        try:
            async for line in reader:
                word, _, text = line.decode(errors="replace").rstrip("\n").partition(" ")
                self._heed(word, text)
        finally:
            transport.close()
        await asyncio.to_thread(self._guard.wait)
        self._gone.set()
        if self._guard.stdin is not None:
            with contextlib.suppress(BrokenPipeError):  # an order that nobody was left to read
                self._guard.stdin.close()
        if self._status is None and self._prefix:  # the guard was killed, and could not clean up
            await asyncio.to_thread(guard.sweep, self._prefix)
        shutil.rmtree(self._scratch, ignore_errors=True)
        channel, self._channel = self._channel, None
        if channel is not None:
            await channel.close(GUARD_GRACE)  # calls in flight fail by themselves; cancelled, they would cancel callers
        return _describe(self._status, self._reason)

    def _heed(self, word: str, text: str) -> None:
        if word == "started":
            pid, self._prefix = text.split(" ")
            self._pid = int(pid)
        elif word == "watching":
            self._watched.set()
        elif word == "released":
            self._released[text].set()
        elif word == "exited":
            status, _, self._reason = text.partition(" ")
            self._status = int(status)
        elif word == "log":
            if not STACK.match(text):  # which would push out the reason
                self._lines.append(text)
            if any(sign in text for sign in _GIVES_UP):
                self._gives_up.set()

    def _order(self, order: str) -> None:
        assert self._guard.stdin is not None
        try:
            self._guard.stdin.write(f"{order}\n".encode())
            self._guard.stdin.flush()
        except BrokenPipeError:
            return  # it has ended

    # -- start

    async def _await_ready(self, address: str, models: Sequence[str], deadline: float) -> None:
        """Wait for the server to be ready, for its end, or for it to say that it gives up, whichever comes first."""
        ready = asyncio.create_task(self._become_ready(address, models))
        ends = [asyncio.create_task(event.wait()) for event in (self._gives_up, self._gone)]
        left = max(0.0, deadline - asyncio.get_running_loop().time())
        try:
            await asyncio.wait([ready, *ends], timeout=left, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (ready, *ends):
                task.cancel()  # nothing to one that is done; the channel of a server that is gone waits for the others
        if ready.done() and not self._gives_up.is_set():
            return ready.result()
        if any("already in use" in line for line in self._lines):
            raise _PortTakenError
        if self._gives_up.is_set():
            reason = "it could not load its models"
        elif self._gone.is_set():
            reason = f"it {await self.wait_exit()}"
        else:
            reason = "it was not ready in time"
        raise TritonError("\n".join([f"Triton did not start: {reason}.", *self.recent_errors()]))

    async def _become_ready(self, address: str, models: Sequence[str]) -> None:
        self.address = address
        self._channel = grpc_channel(address, *_RECONNECTION)
        stub = _stub(self._channel)
        metadata = await stub.ServerMetadata(service_pb2.ServerMetadataRequest(), wait_for_ready=True)
        if metadata.name != self._prefix:
            raise _PortTakenError  # by another server, which the readiness of this one must not be read from
        for model in models:
            answer = await stub.ModelReady(service_pb2.ModelReadyRequest(name=model))
            if not answer.ready:
                raise TritonError(f"Triton did not start: it runs, but its model {model!r} is not ready.")
        self._order("watch")
        await self._watched.wait()


class _PortTakenError(Exception):
    """Another process listens on the port that was free a moment ago."""


def _stub(channel: grpc.aio.Channel) -> Any:
    return service_pb2_grpc.GRPCInferenceServiceStub(channel)


def _describe(status: int | None, reason: str) -> str:
    if status is None:
        return "was killed together with its guard"
    how = f"was killed by {signal.Signals(status - 128).name}" if status > 128 else f"ended with status {status}"
    return f"{how}, because {reason}" if reason else how
