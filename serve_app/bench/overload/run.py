"""One run: how much the python backend takes, then each load against Triton alone, then against Tandem."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from serve_app.artefacts import find_triton
from serve_app.bench.error import BenchError
from serve_app.bench.overload.clients import Offered, Side, clients
from serve_app.bench.overload.deployment import CODE, MODEL, TIERS, Sleeper, bare_config, policies, spec_of
from serve_app.bench.overload.goals import Goal, tallies, trials, warm_up
from serve_app.bench.overload.loads import steady
from serve_app.bench.scratch import running
from serve_app.bench.server import GrpcServer, Work
from serve_app.identity import TIER
from serve_app.importing.yaml_text import yaml_lines
from serve_app.project import Project
from serve_app.spec import Spec
from serve_app.spec.document import read_document
from serve_app.triton.channel import grpc_channel
from serve_app.triton.launch import free_port
from serve_app.triton.server import TritonServer
from serve_app.weights.errors import Progress

# More than Triton answers; its queue is not bounded here, and has to be worked off.
_SATURATED, _SATURATED_S = 1.4, 3.0
_UNTIL_READY_S, _UNTIL_ENDED_S = 60.0, 5.0


@dataclass(frozen=True)
class Outcome:
    """What came of one load on one side; `work` is Triton's own count of it."""

    offered: Offered
    goals: list[Goal]
    work: Work


@dataclass(frozen=True)
class Comparison:
    """By side, by load."""

    sleeper: Sleeper
    clients: int
    sides: dict[str, dict[str, Outcome]]


def compare(source: Project, batch_time: float, count: int, progress: Progress) -> Comparison:
    """Everything that was started is ended then. `batch_time` is in seconds, `count` that of client processes."""
    spec = source.spec()
    if "embedded" not in spec.profiles:
        raise BenchError("the spec has no profile `embedded`, whose Triton this would run; add it")
    sleeper, bare = asyncio.run(_alone(spec, batch_time, count, progress))
    with tempfile.TemporaryDirectory(prefix="tandem-bench-") as folder:
        project = _project(source, Path(folder), sleeper)
        with running(project, progress):
            address = project.spec().grpc_address
            side = Side("Tandem", address, metadata={tier: {TIER: tier} for tier in TIERS})
            tandem = asyncio.run(_measured(side, sleeper, count, progress))
    return Comparison(sleeper, count, {"Tandem": tandem, "Triton alone": bare})


def _project(source: Project, root: Path, sleeper: Sleeper) -> Project:
    profile = (read_document(source.spec_file.read_text(encoding="utf-8-sig")).data or {})["profiles"]["embedded"]
    ports = {name: free_port() for name in ("http", "grpc", "ray", "dashboard")}
    project = Project(root)
    project.spec_file.parent.mkdir()
    project.spec_file.write_text("\n".join(yaml_lines(spec_of(sleeper, profile, ports))) + "\n")
    _place_model(project.repository)
    return project


def _place_model(repository: Path) -> Path:
    version = repository / MODEL / "1"
    version.mkdir(parents=True)
    shutil.copy(CODE, version / "model.py")
    return version.parent


async def _alone(spec: Spec, batch_time: float, count: int, progress: Progress) -> tuple[Sleeper, dict[str, Outcome]]:
    nominal = Sleeper(batch_time)
    async with clients(count) as processes:
        async with _triton(spec, bare_config(nominal, "")) as address:
            load = steady("saturation", {"standard": _SATURATED * nominal.capacity}, _SATURATED_S, 0.5)
            progress(f"Triton without any policy: {load.name}")
            rate = tallies(await processes.offer(load, Side("", address)))["standard"].rate
        sleeper = nominal.answering(rate)
        progress(f"{rate:.0f} answers/s: its python backend takes {sleeper.overhead * 1e3:.2f} ms of each batch")
    async with _triton(spec, bare_config(sleeper, policies())) as address:
        return sleeper, await _measured(Side("Triton alone", address, priorities=TIERS), sleeper, count, progress)


@asynccontextmanager
async def _triton(spec: Spec, config: str) -> AsyncIterator[str]:
    """A Triton of its own, with that model: its address."""
    installation = find_triton(spec.profiles["embedded"].triton, lambda _: None)
    with tempfile.TemporaryDirectory(prefix="tandem-bench-") as folder:
        repository = Path(folder) / "model_repository"
        (_place_model(repository) / "config.pbtxt").write_text(config)
        server = await TritonServer.start(
            installation,
            repository,
            models=[MODEL],
            ready_timeout=_UNTIL_READY_S,
            exit_timeout=_UNTIL_ENDED_S,
            log_directory=Path(folder),
            environment={},
        )
        try:
            yield server.address
        finally:
            await server.stop()


async def _measured(side: Side, sleeper: Sleeper, count: int, progress: Progress) -> dict[str, Outcome]:
    outcomes = {}
    async with clients(count) as processes, grpc_channel(side.address) as channel:
        server = GrpcServer(channel, side.address)
        await processes.offer(warm_up(sleeper), side)
        for trial in trials(sleeper):
            progress(f"{side.name}: {trial.load.name}")
            before = (await server.statistics())[MODEL]
            offered = await processes.offer(trial.load, side)
            work = (await server.statistics())[MODEL].since(before)
            outcomes[trial.load.name] = Outcome(offered, list(trial.judge(offered)), work)
    return outcomes
