"""The ingress deployment: listens, runs pipelines over the stages' deployments, and speaks Triton's protocol."""

from __future__ import annotations

import asyncio
from typing import Any

import cv2
from pydantic import BaseModel
from ray.exceptions import RayActorError
from ray.serve.exceptions import BackPressureError, RayServeException
from ray.serve.handle import DeploymentHandle

from serve_app import request_log
from serve_app.admission import Admission, AdmissionLimits
from serve_app.context import RequestContext, Timings
from serve_app.http.app import build_app
from serve_app.http.front import Front
from serve_app.http.listener import Listener
from serve_app.http.scaling import REQUESTS
from serve_app.identity import Contexts
from serve_app.pipeline.graph import run
from serve_app.pipeline.stage import Outcome, build_stage, call_stage
from serve_app.problem import Problem
from serve_app.project import Project
from serve_app.protocol.app import ProtocolApp
from serve_app.protocol.backend import TritonBackend
from serve_app.protocol.grpc_door import GrpcDoor
from serve_app.protocol.limits import Limits
from serve_app.protocol.signatures import Signatures
from serve_app.spec import ProfileName, Spec
from serve_app.spec.pipeline import Pipeline
from serve_app.triton.breakers import Breakers
from serve_app.triton.client import WakeUpsOf, models_for
from serve_app.triton.connection import Connection
from serve_app.triton.deployment import locator

READY_WITHIN_S = 2.0


class Ingress:
    """Replica of the ingress. Stages that the spec places in it run here, the others are called by their handles."""

    async def __init__(  # type: ignore[misc]  # Ray awaits it
        self,
        project: Project,
        spec: Spec,
        profile: ProfileName,
        triton: DeploymentHandle[Any],
        stages: dict[str, DeploymentHandle[Any]],
    ):
        cv2.setNumThreads(1)
        request_log.group()
        self._stages = stages
        self._connection = Connection(locator(triton))
        await self._connection.channel(None, None)
        wake_ups = WakeUpsOf(self._connection, spec, profile)
        breakers = Breakers.of(spec, self._connection.renewed)
        own = self._connection, project.repository, wake_ups, breakers
        self._local = {
            name: build_stage(stage, models_for(spec, profile, list(stage.models), *own))
            for name, stage in spec.stages.items()
            if stage.runs_in == "ingress"
        }
        self._admission = Admission(AdmissionLimits.of(spec), disturbed=self._connection.disturbed)
        backend = TritonBackend(self._connection, wake_ups.outstanding, breakers)
        protocol = Signatures(spec, profile), backend, Contexts(spec), self._admission, Limits.of(spec)
        api = build_app(spec, self._run, self._ready, self._admission)
        self._listener = Listener(Front(api, ProtocolApp(*protocol)), GrpcDoor(*protocol), spec)
        await self._listener.start()

    async def reconfigure(self, user_config: dict[str, Any]) -> None:
        """Called by Ray Serve before it counts the replica as running, and when the limits of requests change."""
        self._admission.change(AdmissionLimits.of_config(user_config))

    def record_autoscaling_stats(self) -> dict[str, float]:
        """Called by Ray Serve, for `serve_app.http.scaling`."""
        return {REQUESTS: float(self._admission.requests)}

    async def check_health(self) -> None:
        """Called by Ray Serve. RuntimeError where nothing listens."""
        self._listener.check()

    async def __del__(self) -> None:
        await self._listener.drain()

    async def _run(
        self, pipeline: Pipeline, inputs: dict[str, Any], context: RequestContext, timings: Timings
    ) -> BaseModel:
        async def call(stage: str, method: str, arguments: dict[str, Any], context: RequestContext) -> Any:
            with timings.measure(stage):
                outcome = await self._call(stage, method, arguments, context)
            for model, ms in outcome.timings_ms.items():
                key = f"{stage}.{model}"
                timings.ms[key] = timings.ms.get(key, 0.0) + ms
            if outcome.problem is not None:
                raise outcome.problem
            return outcome.value

        answer: BaseModel = await run(pipeline, inputs, context, call)
        return answer

    async def _call(self, stage: str, method: str, arguments: dict[str, Any], context: RequestContext) -> Outcome:
        if stage in self._local:
            return await call_stage(self._local[stage], method, arguments, context)
        response = self._stages[stage].call.remote(method, arguments, context)
        try:
            outcome: Outcome = await response
        except asyncio.CancelledError:
            # Ray itself passes on only the end of the client's whole request.
            response.cancel()  # type: ignore[no-untyped-call]
            raise
        except BackPressureError:
            raise Problem(
                429, "stage_full", f"too many requests wait for {stage}; retry in a second", retry_after=1
            ) from None
        except (RayActorError, RayServeException):
            detail = f"{stage} went away while it worked on this request; retry in a few seconds"
            raise Problem(503, "stage_unavailable", detail, retry_after=2) from None
        return outcome

    async def _ready(self) -> None:
        """Problem 503 where Triton does not answer."""
        if not await self._connection.is_ready(READY_WITHIN_S):
            raise Problem(503, "not_ready", "Triton does not answer just now; retry in a few seconds", retry_after=2)
