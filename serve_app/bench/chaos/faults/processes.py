"""Processes that end, or stand still."""

from __future__ import annotations

import psutil

from serve_app.bench.chaos.faults.fault import Fault, Scene, found
from serve_app.bench.chaos.load import STEADY
from serve_app.bench.chaos.traces import MODEL, TRITON
from serve_app.bench.error import BenchError

_APPEARS_WITHIN_S = 30.0


async def _one(scene: Scene, role: str) -> psutil.Process:
    running = await (scene.model_processes(STEADY) if role == MODEL else scene.processes(role))
    if not running:
        raise BenchError(f"there is no process of {role}; see the logs of the service")
    return running[0]


class Killed(Fault):
    """A process of a role gets SIGKILL; the role '' is the first stage with processes of its own."""

    def __init__(self, name: str, role: str, what: str, *, limit: float = 30.0, resets: bool = False):
        self.name, self.limit, self.resets = name, limit, resets
        self.__doc__ = f"{what} gets SIGKILL."
        self._role = role

    def why_not(self, scene: Scene) -> str | None:
        return None if self._role_in(scene) else "no stage of the spec has processes of its own"

    async def inject(self, scene: Scene) -> None:
        (await _one(scene, self._role_in(scene))).kill()

    def _role_in(self, scene: Scene) -> str:
        stages = scene.project.spec().stages
        return self._role or next((name for name, stage in stages.items() if stage.runs_in != "ingress"), "")


class Stopped(Fault):
    """tritonserver gets SIGSTOP: it is there, and does nothing."""

    name = "triton-stopped"

    async def inject(self, scene: Scene) -> None:
        (await _one(scene, TRITON)).suspend()


class KilledWhileLoading(Fault):
    """tritonserver is killed, and so is the next one before its models are loaded."""

    name = "triton-killed-while-loading"

    async def inject(self, scene: Scene) -> None:
        first = await _one(scene, TRITON)
        first.kill()

        async def another() -> psutil.Process | None:
            return next((each for each in await scene.processes(TRITON) if each != first), None)

        (await found(another, _APPEARS_WITHIN_S, "no other tritonserver was started")).kill()
