"""Watches the models of a server that answers, and loads one that stands still anew."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Protocol

from serve_app.triton.error import TritonError
from serve_app.triton.stall import Stall, StallWatch, Work

_logger = logging.getLogger("ray.serve")
_LONGEST_INTERVAL_S = 1.0
_LOOKS = 5  # at the least within a limit
_ANSWER_S = 2.0


class Watched(Protocol):
    """What the watchdog needs of a server; see `serve_app.triton.server.TritonServer`."""

    async def work(self, timeout: float) -> Mapping[str, Work]: ...

    async def reload(self, model: str, timeout: float) -> None: ...


class Watchdog:
    """Tells what a standstill is by `limits`, in seconds by model; a model may take `reload_timeout` seconds to load.

    `count` is called with each standstill.
    """

    def __init__(self, limits: Mapping[str, float], reload_timeout: float, count: Callable[[Stall], None]):
        self._limits = limits
        self._reload_timeout = reload_timeout
        self._count = count

    async def given_up(self, server: Watched) -> str:
        """Watch the server's models; answer why the server has to be ended when reloading one of them did not help."""
        interval = min([_LONGEST_INTERVAL_S, *(limit / _LOOKS for limit in self._limits.values())])
        watch = StallWatch(self._limits, interval)
        clock = asyncio.get_running_loop().time
        while True:
            await asyncio.sleep(interval)
            try:
                work = await server.work(_ANSWER_S)
            except TritonError:  # whether the server answers at all is the supervisor's question
                work = {}
            for stall in watch.observe(clock(), work):
                self._count(stall)
                if not stall.reload:
                    return f"stood still: {stall}, again soon after it was reloaded"
                _logger.warning("%s; it is loaded anew", stall)
                try:
                    await server.reload(stall.model, self._reload_timeout)
                except TritonError as error:
                    return f"stood still: {stall}; {error}"
                watch.reloaded(stall.model, clock())
                _logger.warning("%s was loaded anew", stall.model)
