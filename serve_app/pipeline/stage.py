"""Stages: from a spec's entry to an object with its models, and the Ray Serve deployment around it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import cv2
from ray.serve.handle import DeploymentHandle

from serve_app.context import RequestContext, serving
from serve_app.model import Model
from serve_app.problem import Problem
from serve_app.project import Project
from serve_app.spec import ProfileName, Spec
from serve_app.spec.code import checked_user_config, load_code, settings_of
from serve_app.spec.pipeline import Stage
from serve_app.triton.client import models_for
from serve_app.triton.connection import Connection
from serve_app.triton.deployment import locator


def build_stage(stage: Stage, models: Mapping[str, Model]) -> Any:
    """An instance of the stage's class."""
    settings = settings_of(stage)
    return load_code(stage.code)(**models, **({} if settings is None else {"settings": settings}))


@dataclass(frozen=True)
class Outcome:
    """How a stage's call ended. A problem is a result, not an exception: Ray would wrap and log it with its cause."""

    value: Any
    problem: Problem | None
    timings_ms: dict[str, float]


async def call_stage(stage: Any, method: str, arguments: dict[str, Any], context: RequestContext) -> Outcome:
    """Call a stage's method for one request."""
    with serving(context) as timings:
        try:
            return Outcome(await getattr(stage, method)(**arguments), None, timings.ms)
        except Problem as problem:
            return Outcome(None, problem, timings.ms)


class StageReplica:
    """A Ray Serve deployment's replica that holds one stage."""

    async def __init__(  # type: ignore[misc]  # Ray awaits it
        self, project: Project, spec: Spec, profile: ProfileName, name: str, triton: DeploymentHandle[Any]
    ):
        # One request's picture is one thread's work; more threads would take the cores from Triton.
        cv2.setNumThreads(1)
        self._connection = Connection(locator(triton))
        # A replica that counts as running can serve: Triton is up, and the label files are there.
        await self._connection.channel(None, None)
        stage = spec.stages[name]
        self._stage = build_stage(
            stage, models_for(spec, profile, list(stage.models), self._connection, project.repository)
        )

    async def reconfigure(self, user_config: dict[str, Any]) -> None:
        """Called by Ray Serve before the first request and when the spec's `user_config` changes, amid requests.

        ValidationError where the stage's class refuses it.
        """
        await self._stage.reconfigure(checked_user_config(type(self._stage), user_config))

    async def call(self, method: str, arguments: dict[str, Any], context: RequestContext) -> Outcome:
        return await call_stage(self._stage, method, arguments, context)
