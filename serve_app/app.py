"""The Ray Serve application that serve_config.yaml names: Triton, the stages, and the ingress, from the spec."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict
from ray import serve
from ray.serve import Application

from serve_app.http.ingress import Ingress
from serve_app.pipeline.stage import StageReplica
from serve_app.project import ProjectError, find_project, stale_files
from serve_app.render.ray_serve import INGRESS, TRITON
from serve_app.spec import digest
from serve_app.triton.deployment import TritonReplica


class Arguments(BaseModel):
    """`args` of the application in serve_config.yaml."""

    model_config = ConfigDict(extra="forbid")

    profile: Literal["embedded", "gpu"]
    spec: str


def build(args: dict[str, Any]) -> Application:
    """The application, from `args` of serve_config.yaml. ProjectError where the generated files are not the spec's."""
    arguments = Arguments.model_validate(args)
    project = find_project()
    spec = project.spec()
    if stale := stale_files(project, spec):
        raise ProjectError(
            f"not what {project.spec_file} says: {', '.join(stale)}; run `tandem render` and deploy again"
        )
    if digest(spec) != arguments.spec:
        raise ProjectError(f"deployed from another spec than {project.spec_file}; run `tandem render` and deploy again")
    triton = _bind(TRITON, TritonReplica, project, spec, arguments.profile)
    stages = {
        name: _bind(name, StageReplica, project, spec, arguments.profile, name, triton)
        for name, stage in spec.stages.items()
        if stage.runs_in is None
    }
    return _bind(INGRESS, Ingress, project, spec, arguments.profile, triton, stages)


def _bind(name: str, code: Callable[..., Any], *arguments: Any) -> Application:
    return serve.deployment(name=name)(code).bind(*arguments)
