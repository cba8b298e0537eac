"""One fault after the other, in deployments of their own: calm, the fault, and calm again within its limit."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from serve_app.bench.chaos import room
from serve_app.bench.chaos.faults.fault import Fault, Scene
from serve_app.bench.chaos.load import STEADY, VICTIM, Clients, Load, targets
from serve_app.bench.chaos.outcomes import Tally, tally
from serve_app.bench.chaos.traces import Traces, left, left_by_ended, look
from serve_app.bench.error import BenchError
from serve_app.bench.scratch import AddedModel, copied, running
from serve_app.cluster.error import ClusterError
from serve_app.cluster.head import find_head, home
from serve_app.cluster.sample import fetch_photos, write_sample
from serve_app.project import Project
from serve_app.weights.errors import Progress

# So long everything has to be answered, before a fault and after it.
QUIET_S = 3.0
CALM_WITHIN_S = 60.0
# How long what a fault has left may take to go.
SETTLED_WITHIN_S = 10.0
_LOOK_S = 0.5
_MODEL = {
    "backend": "python",
    "inputs": {"WORD": "uint8[-1]"},
    "outputs": {"ECHO": "uint8[-1]"},
    "max_batch": 4,
    "latency_budget": "20ms",
    "exposed": True,
}
_ADDED = AddedModel(_MODEL, Path(__file__).with_name("model.py"))
MODELS = {STEADY: _ADDED, VICTIM: _ADDED}
# Beside what Ray's object store may take: the models' segments, and what the fault of a full one fills.
_ROOM_FOR_MODELS = 2**28
_ROOM_FOR_LOGS = 2**27


@dataclass(frozen=True)
class Result:
    """What a fault did. `healthy_s`: seconds until all was well again, None where it was not within `limit_s`.

    `skipped`: why it was not done. `failed`: why it could not be.
    """

    fault: str
    limit_s: float
    seen: Tally = field(default_factory=Tally)
    healthy_s: float | None = None
    leaks: Sequence[str] = ()
    skipped: str = ""
    failed: str = ""

    @property
    def is_well(self) -> bool:
        """Whether nothing was seen that should not be."""
        if self.skipped:
            return True
        return self.healthy_s is not None and not (self.seen.undocumented or self.leaks or self.failed)


@contextmanager
def place(source: Project, progress: Progress) -> Iterator[Project]:
    """A copy of the project that is up, in a room of its own where there can be one."""
    with copied(source, MODELS) as project:
        shared = project.spec().ray.object_store + _ROOM_FOR_MODELS
        with (
            room.mounted(room.SHARED_MEMORY, shared),
            room.mounted(home(project), _ROOM_FOR_LOGS),
            running(project, progress),
        ):
            yield project


def chaos(source: Project, faults: Sequence[Fault], tell: Callable[[Result], None], progress: Progress) -> None:
    """Tells each fault's result. One that the service does not recover from ends its deployment, not the run."""
    waiting = deque(faults)
    photos = fetch_photos(progress)
    while waiting:
        with place(source, progress) as project:
            pictures = write_sample(project.root.parent / "sample", photos)
            asyncio.run(_in_turn(project, waiting, pictures, tell, progress))


async def _in_turn(
    project: Project,
    waiting: deque[Fault],
    pictures: Sequence[Path],
    tell: Callable[[Result], None],
    progress: Progress,
) -> None:
    """Until none waits, or the deployment is of no more use."""
    head = find_head(project)
    if head is None:
        raise BenchError("the deployment is gone before a fault was done to it; see its logs")
    async with Clients(project.spec()) as clients:
        load = Load(targets=await targets(clients, pictures))
        scene = Scene(project, head, clients, load, room.is_inside())
        async with load.running():
            while waiting:
                fault = waiting.popleft()
                tell(result := await _result(scene, fault))
                progress(f"{fault.name}: {_short(result)}")
                if not result.skipped and (fault.ends or result.healthy_s is None):
                    return


def _short(result: Result) -> str:
    if result.skipped or result.failed:
        return result.skipped or result.failed
    return "not healthy again" if result.healthy_s is None else f"healthy after {result.healthy_s:.1f} s"


async def _result(scene: Scene, fault: Fault) -> Result:
    clock = asyncio.get_running_loop().time
    if reason := fault.why_not(scene):
        return Result(fault.name, fault.limit, skipped=reason)
    if await _until_healthy(scene, clock(), CALM_WITHIN_S) is None:
        return Result(fault.name, fault.limit, failed=f"the service was not calm within {CALM_WITHIN_S:g} s before it")
    before = await asyncio.to_thread(look, scene.head)
    began = clock()
    failed = ""
    try:
        await asyncio.wait_for(fault.inject(scene), fault.limit + SETTLED_WITHIN_S)
        await asyncio.sleep(fault.lasts)
    except (BenchError, ClusterError, OSError, asyncio.TimeoutError) as error:
        failed = str(error) or f"it took more than {fault.limit:g} s"
    finally:
        await fault.mend(scene)
    # A fault that lasts is over when it is mended.
    start = clock() if fault.lasts else began
    if fault.ends:
        since: float | None = clock()
        await scene.load.stop()
        leaks: list[str] = await asyncio.to_thread(left_by_ended, scene.head, scene.project, before)
    else:
        since, leaks = await _again(scene, start, fault.limit, before)
    seen = tally([each for each in scene.load.seen if each.ended >= began], resets=fault.resets)
    healthy_s = None if since is None else since - start
    return Result(fault.name, fault.limit, seen, healthy_s, leaks, failed=failed)


async def _again(scene: Scene, start: float, limit: float, before: Traces) -> tuple[float | None, list[str]]:
    """Since when everything was answered and the service was as before, and what is not as before."""
    clock = asyncio.get_running_loop().time
    while True:
        whole = since = await _until_healthy(scene, start, limit)
        leaks = left(before, await asyncio.to_thread(look, scene.head))
        answered = clock()
        while since is not None and leaks and clock() < answered + SETTLED_WITHIN_S:
            await asyncio.sleep(_LOOK_S)
            leaks = left(before, await asyncio.to_thread(look, scene.head))
            whole = clock()
        # What was lost meanwhile belongs to the fault as well.
        if since is None or scene.load.healthy_since(start) == since:
            return since if leaks else whole, leaks


async def _until_healthy(scene: Scene, start: float, limit: float) -> float | None:
    """Since when everything has been answered, once that has held for a while; None `limit` seconds after `start`."""
    clock = asyncio.get_running_loop().time
    while True:
        since = scene.load.healthy_since(start)
        if since is not None and clock() - since >= QUIET_S:
            return since
        if clock() - start > limit + QUIET_S:
            return None
        await asyncio.sleep(_LOOK_S)
