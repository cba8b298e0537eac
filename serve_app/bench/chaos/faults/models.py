"""Models that misbehave, each at a word that `serve_app.bench.chaos.model` knows."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

from serve_app.bench.chaos.faults.fault import Fault, Scene
from serve_app.bench.chaos.load import VICTIM
from serve_app.bench.chaos.outcomes import Kind


class Told(Fault):
    """So many requests, all at once, tell the model what to do; what comes of them counts as that of others does."""

    word = ""
    times = 5
    failing = False

    async def inject(self, scene: Scene) -> None:
        def ask() -> Awaitable[tuple[Kind, str]]:
            return scene.clients.infer(VICTIM, self.word, failing=self.failing)

        await asyncio.gather(*(scene.load.once(self.name, ask) for _ in range(self.times)))


class RaisingModel(Told):
    """A model's code raises. Triton answers 500 to all of the batch, and says why."""

    name = "model-raises"
    word = "raise"
    failing = True


class WrongShape(Told):
    """A model answers two items to a request of one, which is passed on as it is."""

    name = "model-answers-wrong-shape"
    word = "double"
    failing = True


class HangingModel(Told):
    """A model's code never returns; requests behind it wait until their deadline, or until the watchdog acts."""

    name = "model-hangs"
    word = "hang"
    times = 1
    limit = 90.0


class GrowingModel(Told):
    """A model keeps 64 MiB more with each of twelve requests, until its process is killed."""

    name = "model-grows"
    word = "grow"
    times = 12
    lasts = 3.0

    async def mend(self, scene: Scene) -> None:
        for process in await scene.model_processes(VICTIM):
            process.kill()
