"""Models that misbehave: those whose requests are not answered, and what the others' see of it."""

from __future__ import annotations

import asyncio

from serve_app.bench.chaos.faults.fault import Fault, Scene
from serve_app.bench.chaos.load import VICTIM
from serve_app.bench.chaos.orders import GROWTH, Order
from serve_app.bench.chaos.traces import MORE_MEMORY

_TIMES = 5


class _Ordered(Fault):
    """So many requests tell the model what to do; what comes of them counts as that of others does."""

    order: Order
    times = _TIMES
    failing = False

    async def inject(self, scene: Scene) -> None:
        order = float(self.order)
        ask = [
            scene.load.once("orders", lambda: scene.clients.infer(VICTIM, order, failing=self.failing))
            for _ in range(self.times)
        ]
        await asyncio.gather(*ask)


class RaisingModel(_Ordered):
    """Its code raises: Triton answers 500 to all of the batch, and says why."""

    name = "model-raises"
    order = Order.RAISE
    failing = True


class WrongShape(_Ordered):
    """It answers twice as many numbers as its configuration says."""

    name = "model-answers-the-wrong-shape"
    order = Order.WRONG_SHAPE
    failing = True


class HangingModel(_Ordered):
    """Its code never returns; requests behind it wait until their deadline."""

    name = "model-hangs"
    order = Order.HANG
    times = 1
    limit = 90.0


class GrowingModel(_Ordered):
    """It keeps more memory with each request, to more than half of what the spec reserves for the server."""

    name = "model-grows"
    order = Order.GROW
    times = 2 * MORE_MEMORY // GROWTH
