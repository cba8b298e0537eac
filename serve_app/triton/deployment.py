"""The Ray Serve deployment that owns this node's Triton: it starts it, watches it, and says where it is."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import ray
from google.protobuf import text_format
from ray import serve
from ray.exceptions import RayError
from ray.serve.exceptions import RayServeException
from ray.serve.handle import DeploymentHandle
from ray.serve.metrics import Counter

from serve_app.artefacts import prepare_all
from serve_app.project import Project
from serve_app.spec import ProfileName, Spec
from serve_app.spec.built import built_from
from serve_app.triton.error import TritonError
from serve_app.triton.launch import Features
from serve_app.triton.server import TritonServer
from serve_app.triton.stall import stall_limits
from serve_app.triton.supervisor import RestartPolicy, TritonSupervisor
from serve_app.triton.watchdog import Watchdog

logger = logging.getLogger("ray.serve")

# How long a stage's question may wait for a restart; it asks again while its request's deadline allows.
LOCATE_WITHIN_S = 30.0
PROBE_S = 1.0
REPORT_S = 5.0


def locator(triton: DeploymentHandle[Any]) -> Callable[[str | None], Awaitable[str]]:
    """How a stage asks the deployment where Triton is. TritonError where nobody knows."""

    async def locate(lost: str | None) -> str:
        try:
            address: str = await triton.locate.remote(lost)
        except (RayError, RayServeException) as error:
            raise TritonError(f"the deployment that owns Triton does not answer: {error}") from None
        return address

    return locate


class TritonReplica:
    """Owner of one tritonserver process.

    It prepares weights that are missing before it starts the server, restarts a server that ends or stops answering,
    and fails Ray's health check, so that Ray replaces it, when restarting does not help.
    """

    async def __init__(self, project: Project, spec: Spec, profile: ProfileName):  # type: ignore[misc]  # Ray awaits it
        self._project = project
        self._spec = spec
        self._profile = profile
        self._server: TritonServer | None = None
        self._supervisor = TritonSupervisor(self._start, RestartPolicy(), _watchdog(spec, profile))
        self._installation = await asyncio.to_thread(prepare_all, project, spec, profile, logger.info)
        await self._supervisor.start()

    async def _start(self) -> TritonServer:
        triton = self._spec.profiles[self._profile].triton
        self._server = await TritonServer.start(
            self._installation,
            self._project.repository,
            models=[*self._spec.models, *self._spec.ensembles],
            config_name=None if self._profile == self._spec.primary_profile else self._profile,
            ready_timeout=triton.startup_timeout.total_seconds(),
            exit_timeout=triton.exit_timeout.total_seconds(),
            log_directory=_log_directory(),
            # Ray leaves every GPU visible to a replica that asked for none.
            environment={} if triton.gpus else {"CUDA_VISIBLE_DEVICES": ""},
            features=Features.of(triton),
        )
        logger.info("Triton %s is ready at %s", self._installation.version, self._server.address)
        return self._server

    async def locate(self, lost: str | None) -> str:
        """The server's address. One that a caller just failed to reach is answered again only where it is well.

        TritonError where there is no server within half a minute.
        """
        server = self._server
        if lost is not None and server is not None and server.address == lost and await server.probe(PROBE_S):
            return lost
        deadline = asyncio.get_running_loop().time() + LOCATE_WITHIN_S
        return await self._supervisor.address(deadline, other_than=lost)

    async def report(self) -> dict[str, Any]:
        """What runs here, as plain data: the server's version, what it says of its ready models, and from which spec.

        Where the server does not answer, `failure` says why.
        """
        try:
            configs = {} if self._server is None else await self._server.configs(REPORT_S)
            failure = "" if self._server is not None else "Triton does not run."
        except TritonError as error:
            configs, failure = {}, str(error)
        return {
            "replica": serve.get_replica_context().replica_id.unique_id,
            "version": self._installation.version,
            "configs": {name: text_format.MessageToString(config) for name, config in configs.items()},
            "built_from": built_from(self._spec),
            "failure": failure,
        }

    async def check_health(self) -> None:
        """Called by Ray Serve. TritonError where the server is gone for good; a restart in progress is healthy."""
        if self._supervisor.failure is not None:
            raise self._supervisor.failure

    async def __del__(self) -> None:
        await self._supervisor.stop()


def _watchdog(spec: Spec, profile: ProfileName) -> Watchdog | None:
    limits = stall_limits(spec, profile)
    if not limits:
        return None
    stalls = Counter("tandem_model_stalls", "times that requests waited and no batch of a model ended", ("model",))
    loaded_within = spec.profiles[profile].triton.startup_timeout.total_seconds()
    return Watchdog(limits, loaded_within, lambda stall: stalls.inc(tags={"model": stall.model}))


def _log_directory() -> Path:
    """Ray's own log folder, so that the dashboard shows Triton's log beside the others."""
    node = ray._private.worker._global_node
    if node is None:
        raise TritonError("Triton runs inside a Ray worker only")
    return Path(node.get_logs_dir_path()) / "triton"
