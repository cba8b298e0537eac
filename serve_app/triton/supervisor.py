"""Keeps a Triton server running: starts it again when it ends or stops answering, up to a limit."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

import grpc

from serve_app.triton.error import TritonError
from serve_app.triton.stall import Work
from serve_app.triton.watchdog import Watchdog

_logger = logging.getLogger(__name__)


class Server(Protocol):
    """What the supervisor needs of a server; see `serve_app.triton.server.TritonServer`."""

    address: str

    def alive(self) -> bool: ...

    async def probe(self, timeout: float) -> bool: ...

    async def wait_exit(self) -> str: ...

    async def stop(self, drain: float | None = None) -> str: ...

    async def work(self, timeout: float) -> Mapping[str, Work]: ...

    async def reload(self, model: str, timeout: float) -> None: ...


@dataclass(frozen=True)
class RestartPolicy:
    """When a server counts as unresponsive, and when restarting it is no use. Times in seconds."""

    probe_interval: float = 1.0
    probe_timeout: float = 2.0
    unresponsive_after: float = 5.0
    max_restarts: int = 5
    window: float = 120.0


class TritonSupervisor:
    """One server at a time, each on an address of its own."""

    def __init__(self, start: Callable[[], Awaitable[Server]], policy: RestartPolicy, watchdog: Watchdog | None = None):
        """`start` answers a server that is ready, or raises TritonError. Its models are not watched by default."""
        self._start = start
        self._policy = policy
        self._watchdog = watchdog
        self._server: Server | None = None
        self._failure: TritonError | None = None
        self._changed = asyncio.Condition()
        self._restarts: deque[float] = deque()
        self._watch: asyncio.Task[None] | None = None

    @property
    def failure(self) -> TritonError | None:
        """Why there will be no server any more; None while there is one, or another try."""
        return self._failure

    async def start(self) -> None:
        """Start the first server and watch it from then on. Raises TritonError where it does not start."""
        await self._publish(await self._start())
        self._watch = asyncio.create_task(self._keep_running())
        self._watch.add_done_callback(self._watch_ended)

    async def address(self, deadline: float, *, other_than: str | None = None) -> str:
        """Where the server is, waiting for it while it restarts until `deadline` (the loop's time, in seconds).

        A caller that just failed to reach an address passes it as `other_than`: it may know of the server's end before
        the supervisor does. Raises TritonError where there is no server in time, or never again.
        """
        address = self._address(other_than)
        if address is not None:
            return address
        left = deadline - asyncio.get_running_loop().time()
        try:
            return await asyncio.wait_for(self._next_address(other_than), max(0.0, left))
        except asyncio.TimeoutError:
            raise TritonError("Triton is restarting and was not ready in time.") from None

    async def stop(self, drain: float | None = None) -> None:
        """End the server (see `TritonServer.stop`) and start no other."""
        if self._watch is not None:
            self._watch.cancel()
            await asyncio.wait([self._watch])
        server, self._server = self._server, None
        await self._fail(TritonError("Triton was stopped."))
        if server is not None:
            await server.stop(drain)

    def _address(self, other_than: str | None) -> str | None:
        if self._failure is not None:
            raise self._failure
        if self._server is None or not self._server.alive() or self._server.address == other_than:
            return None
        return self._server.address

    async def _next_address(self, other_than: str | None) -> str:
        async with self._changed:
            while (address := self._address(other_than)) is None:
                await self._changed.wait()
            return address

    async def _keep_running(self) -> None:
        while self._server is not None:
            reason = await self._until_lost(self._server)
            _logger.warning("Triton %s; starting it again", reason)
            await self._publish(await self._restarted(reason))

    async def _until_lost(self, server: Server) -> str:
        """Wait until the server has ended, or end it because it does not answer; answer what happened."""
        loop = asyncio.get_running_loop()
        ended = asyncio.create_task(server.wait_exit())
        watches = [] if self._watchdog is None else [asyncio.create_task(self._watchdog.given_up(server))]
        silent_since: float | None = None
        try:
            while True:
                await asyncio.wait(
                    [ended, *watches], timeout=self._policy.probe_interval, return_when=asyncio.FIRST_COMPLETED
                )
                if ended.done():
                    return ended.result()
                for watch in watches:
                    if watch.done():
                        reason = watch.result()
                        await server.stop(0)
                        return f"{reason}; it was killed"
                asked = loop.time()
                if await server.probe(self._policy.probe_timeout):
                    silent_since = None
                elif silent_since is None:
                    silent_since = asked
                if silent_since is not None and loop.time() - silent_since >= self._policy.unresponsive_after:
                    await server.stop(0)
                    return f"did not answer for {loop.time() - silent_since:.0f} s and was killed"
        finally:
            for task in (ended, *watches):
                task.cancel()

    async def _restarted(self, reason: str) -> Server | None:
        """Another server, or None where the policy allows no further try."""
        now = asyncio.get_running_loop().time
        await self._publish(None)
        while True:
            while self._restarts and now() - self._restarts[0] > self._policy.window:
                self._restarts.popleft()
            if len(self._restarts) >= self._policy.max_restarts:
                tries = f"{len(self._restarts)} restarts within {self._policy.window:.0f} s"
                await self._fail(TritonError(f"Triton is given up after {tries}; last, it {reason}"))
                _logger.error("%s", self._failure)
                return None
            self._restarts.append(now())
            try:
                return await self._start()
            except (TritonError, OSError, grpc.RpcError) as error:
                reason = f"could not be started: {error}"
                _logger.warning("Triton %s", reason)

    def _watch_ended(self, watch: asyncio.Task[None]) -> None:
        """A watch that fails for a reason nobody thought of must not look like a server that is well."""
        if not watch.cancelled() and (error := watch.exception()) is not None:
            _logger.error("the watch over Triton failed", exc_info=error)
            self._failure = TritonError(f"Triton is not watched any more: {error!r}; its owner has to be replaced")

    async def _publish(self, server: Server | None) -> None:
        async with self._changed:
            self._server = server
            self._changed.notify_all()

    async def _fail(self, failure: TritonError) -> None:
        async with self._changed:
            self._failure = failure
            self._changed.notify_all()
