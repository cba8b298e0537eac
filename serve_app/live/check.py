"""The live check: prepare, start, load, compare, run, and clean up, with a finding for all that goes wrong."""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

from tritonclient.grpc import model_config_pb2 as pb

from serve_app.artefacts import find_triton, mirror_directory
from serve_app.live import findings as found
from serve_app.live.loading import load_fault
from serve_app.live.order import in_order, needed, place_of
from serve_app.live.ray_schema import schema_faults
from serve_app.live.repository import write_repository
from serve_app.live.running import Run
from serve_app.live.session import Died, Hung, Refused, Session
from serve_app.live.trials import trials
from serve_app.project import Project
from serve_app.render.triton import model_config
from serve_app.spec import ProfileName, Spec
from serve_app.spec.findings import Fault, Faults, Place
from serve_app.spec.units import show_duration
from serve_app.triton import guard
from serve_app.triton.error import TritonError
from serve_app.triton.find import Installation
from serve_app.triton.launch import Features
from serve_app.triton.model_folder import served_versions
from serve_app.triton.reported import config_differences
from serve_app.triton.server import TritonServer
from serve_app.weights.errors import Progress, WeightsError
from serve_app.weights.fetch import cache_directory
from serve_app.weights.prepare import prepare
from serve_app.weights.sources import sources

PROFILE: ProfileName = "embedded"
# The spec's words for the parts of ModelConfig that have one.
_WORDS = {
    "input": "inputs", "output": "outputs", "max_batch_size": "max_batch", "dynamic_batching": "batching",
    "sequence_batching": "sequence", "instance_group": "instances", "version_policy": "versions",
    "model_warmup": "warmup", "optimization": "optimization", "parameters": "parameters", "response_cache": "cache",
    "default_model_filename": "file", "backend": "backend", "metric_tags": "metric_tags",
}  # fmt: skip


def live_faults(project: Project, spec: Spec, progress: Progress) -> list[Fault]:
    """What a real Triton and the installed Ray find wrong with a valid spec of this project.

    Where the spec has no profile that can be tried here, Ray alone is asked. Nothing but prepared weights is left
    behind.
    """
    progress("giving the configuration to Ray Serve's own schema")
    faults = list(schema_faults(spec))
    if PROFILE not in spec.profiles:
        return [*faults, _nothing_tried(spec)]
    unprepared = list(_preparation_faults(project, spec, progress))
    faults += unprepared
    try:
        installation = find_triton(spec.profiles[PROFILE].triton, progress)
    except (TritonError, WeightsError) as error:
        return [*faults, found.NO_SERVER.at(("profiles", PROFILE, "triton"), str(error))]
    absent = {str(fault.place[1]) for fault in unprepared}
    return faults + asyncio.run(_triton_faults(project, spec, installation, absent, progress))


def _nothing_tried(spec: Spec) -> Fault:
    only = ", ".join(spec.profiles)
    return found.UNCHECKED.at(
        ("profiles",),
        f"no model was tried: --live runs the embedded profile on this machine's CPUs, and the spec has {only} only",
        consequence="nothing is known of the models; Ray's schema was checked",
        remedy="add an embedded profile, or try the models in a container with that Triton and its devices",
    )


def _preparation_faults(project: Project, spec: Spec, progress: Progress) -> Faults:
    for source in sources(project.root, spec):
        try:
            prepare([source], project.repository, cache=cache_directory(), mirror=mirror_directory(), progress=progress)
        except WeightsError as error:
            yield found.NOT_PREPARED.at(("models", source.model, "weights"), str(error))


async def _triton_faults(
    project: Project, spec: Spec, installation: Installation, absent: set[str], progress: Progress
) -> list[Fault]:
    guard.remove_orphans()
    folder = Path(tempfile.mkdtemp(prefix=guard.name_prefix(os.getpid())))
    try:
        repository = folder / "models"
        repository.mkdir()
        write_repository(repository, project, spec)
        check = _Check(spec, installation, repository, folder, progress)
        return [fault async for fault in check.faults(absent)]
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class _Check:
    def __init__(self, spec: Spec, installation: Installation, repository: Path, logs: Path, progress: Progress):
        self._spec = spec
        self._installation = installation
        self._repository = repository
        self._logs = logs
        self._progress = progress
        self._triton = spec.profiles[PROFILE].triton
        self._session = Session(self._start)

    async def faults(self, bad: set[str]) -> AsyncIterator[Fault]:
        """What is found; `bad` are the models that cannot be loaded."""
        bad = set(bad)
        async with self._session as session:
            for name in in_order(self._spec):
                lacking = [other for other in needed(self._spec, name) if other in bad]
                if lacking and name not in bad:
                    bad.add(name)
                    yield found.UNCHECKED.at(place_of(self._spec, name), f"it needs {', '.join(lacking)}")
                if name in bad:
                    continue
                self._progress(f"loading and running {name}")
                try:
                    async for fault in self._model(session, name):
                        if fault.rule.severity == "error" and fault.rule is not found.OTHER_CONFIG:
                            bad.add(name)
                        yield fault
                except TritonError as error:
                    yield found.NO_SERVER.at(("profiles", PROFILE, "triton"), " ".join(str(error).split()))
                    return
            for name in session.loaded:
                if name in session.loaded:  # the one before it may have taken Triton down
                    self._progress(f"unloading {name}")
                    async for fault in self._end_of(session, name):
                        yield fault
            self._progress("ending Triton")

    async def _start(self) -> TritonServer:
        return await TritonServer.start(
            self._installation,
            self._repository,
            models=[],
            ready_timeout=self._triton.startup_timeout.total_seconds(),
            exit_timeout=self._triton.exit_timeout.total_seconds(),
            log_directory=self._logs,
            environment={"CUDA_VISIBLE_DEVICES": ""},
            features=Features.of(self._triton),
        )

    async def _end_of(self, session: Session, name: str) -> AsyncIterator[Fault]:
        base, limit = place_of(self._spec, name), self._triton.exit_timeout
        try:
            await session.unload(name, limit.total_seconds())
        except Refused as refused:
            yield found.NOT_UNLOADED.at(base, f"Triton says: {refused}")
        except Hung:
            yield found.NOT_UNLOADED.at(base, f"it was not unloaded within {show_duration(limit)}")
        except Died as died:
            yield found.SERVER_DIED.at(base, f"while it was unloaded, {died}")

    async def _model(self, session: Session, name: str) -> AsyncIterator[Fault]:
        limit = self._triton.startup_timeout
        config = model_config(self._spec, name, PROFILE)
        versions = [folder.name for folder in served_versions(self._repository / name, config)]
        alone = len(versions) == 1
        order = [*needed(self._spec, name), name]
        try:
            await session.load(order, limit.total_seconds())
            reported = await session.config(name, limit.total_seconds())
            for fault in _config_faults(place_of(self._spec, name), config, reported):
                yield fault
            tried = trials(self._spec, name, self._repository)
            for version in versions:
                await session.load(order, limit.total_seconds())  # the version before it may have taken Triton down
                run = Run(self._spec, PROFILE, name, version, max(self._spec.longest_sla, limit), alone)
                async for fault in run.faults(session, tried, config.max_batch_size):
                    yield fault
        except (Refused, Hung, Died) as failure:
            yield load_fault(self._spec, name, failure, limit, alone=alone)


def _config_faults(base: Place, wanted: pb.ModelConfig, reported: pb.ModelConfig) -> Iterator[Fault]:
    for each in config_differences(wanted, reported):
        word = _WORDS.get(each.field.split(".")[0].split("[")[0])
        place = base if word is None else (*base, word)
        yield found.OTHER_CONFIG.at(place, f"{each.field} was to be {each.first}, and Triton reports {each.second}")
