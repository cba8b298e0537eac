"""The API as an ASGI application: one route for each pipeline of the spec, health, and its documentation."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from fastapi import FastAPI
from fastapi.responses import JSONResponse
from pydantic import Field, create_model
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.types import ASGIApp

from serve_app.admission import Admission
from serve_app.http.front import internal_error
from serve_app.http.problems import MEDIA_TYPE, ProblemDetails, problem_response
from serve_app.http.routes import PipelineRoute, Routes, Run
from serve_app.identity import ID_PATTERN, SECONDS_PATTERN
from serve_app.problem import Problem
from serve_app.spec import Spec
from serve_app.spec.code import answer_type
from serve_app.spec.pipeline import Pipeline

_DESCRIPTION = """
The models that the service exposes are below `/v2` in the [Open Inference Protocol][v2], and over gRPC on port {port}
as `inference.GRPCInferenceService`: any client of Triton works unchanged.

[v2]: https://github.com/kserve/open-inference-protocol
"""
_STATUSES = {
    400: "malformed request",
    413: "too large",
    415: "not an image",
    422: "an image that cannot be used: no face and the like",
    429: "full; retry after the given time",
    500: "a fault of the service; its log has the cause under the request id",
    503: "a model or stage is down; retry after the given time",
    504: "the deadline passed",
}


def build_app(spec: Spec, run: Run, ready: Callable[[], Awaitable[None]], admission: Admission) -> ASGIApp:
    """The application. `run` runs a pipeline; `ready` raises Problem while requests cannot be served.

    It finds each request's `request_id` and `arrived` in the scope's state.
    """
    description = _DESCRIPTION.format(port=spec.service.grpc.port)
    app = FastAPI(title=f"Tandem: {spec.application}", description=description, docs_url="/docs", redoc_url=None)
    app.add_exception_handler(Problem, _on_problem)
    app.add_exception_handler(HTTPException, _on_http_exception)
    app.add_exception_handler(Exception, _on_crash)

    @app.get("/healthz", tags=["health"], summary="Whether the ingress lives")
    async def healthz() -> dict[str, str]:
        return {"status": "alive"}

    @app.get("/readyz", tags=["health"], summary="Whether requests can be served", responses=_problem_docs(503))
    async def readyz() -> dict[str, str]:
        await ready()
        return {"status": "ready"}

    for name, pipeline in spec.pipelines.items():
        _document(app, spec, name, pipeline)
    return Routes(
        {pipeline.route: PipelineRoute(spec, name, run, admission) for name, pipeline in spec.pipelines.items()}, app
    )


def _document(app: FastAPI, spec: Spec, name: str, pipeline: Pipeline) -> None:
    last = list(pipeline.steps.values())[-1]
    stage, method = last.call.split(".")
    answer = answer_type(spec.stages[stage], method)
    model = create_model(
        f"{answer.__name__}Answer",
        __base__=answer,
        request_id=(str, ...),
        timings_ms=(dict[str, float], Field(description="milliseconds by stage, and by stage.model within it")),
    )

    async def documented() -> None:
        # The routes serve it themselves; FastAPI finds it also where the path ends in a newline.
        raise HTTPException(404)

    app.add_api_route(
        pipeline.route,
        documented,
        methods=["POST"],
        name=name,
        summary=pipeline.summary,
        response_model=model,
        responses=_problem_docs(*_STATUSES),
        openapi_extra=_request_docs(pipeline, list(spec.tiers)),
    )


async def _on_problem(request: Request, problem: Exception) -> JSONResponse:
    assert isinstance(problem, Problem)
    return problem_response(problem, request.state.request_id)


async def _on_http_exception(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    code = {404: "not_found", 405: "method_not_allowed"}.get(error.status_code, "http_error")
    detail = f"{request.method} {request.url.path} is not served; see /docs"
    headers = dict(error.headers or {})
    if "GET" in headers.get("Allow", ""):
        headers["Allow"] = "GET, HEAD"
    return problem_response(Problem(error.status_code, code, detail), request.state.request_id, headers)


async def _on_crash(request: Request, error: Exception) -> JSONResponse:
    request_id = request.state.request_id
    return problem_response(internal_error(request_id), request_id)


def _problem_docs(*statuses: int) -> dict[int | str, dict[str, Any]]:
    return {
        status: {
            "model": ProblemDetails,
            "description": _STATUSES[status],
            "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/ProblemDetails"}}},
        }
        for status in statuses
    }


def _request_docs(pipeline: Pipeline, tiers: list[str]) -> dict[str, Any]:
    inputs = pipeline.images
    file = {"type": "string", "format": "binary"}
    properties = {
        name: {"type": "array", "items": file, "minItems": images.fewest, "maxItems": images.most}
        if images.many
        else file
        for name, images in inputs.items()
    }
    required = [name for name, images in inputs.items() if images.fewest]
    content: dict[str, Any] = {
        "multipart/form-data": {"schema": {"type": "object", "properties": properties, "required": required}}
    }
    if [images.many for images in inputs.values()] == [False]:
        content["image/*"] = content["application/octet-stream"] = {"schema": file}
    headers = {
        "X-Request-ID": ("names the request in answers and logs", {"type": "string", "pattern": f"^{ID_PATTERN}$"}),
        "X-Tier": ("how urgent the request is", {"type": "string", "enum": tiers}),
        "X-Request-Timeout-Seconds": (
            "shortens the deadline; more than 0",
            {"type": "string", "pattern": f"^{SECONDS_PATTERN}$", "examples": ["2.5"]},
        ),
    }
    query = [
        {"name": name, "in": "query", "required": False, "schema": {"type": "boolean", "default": False}}
        for name in pipeline.flags
    ]
    named = [
        {"name": name, "in": "header", "required": False, "description": text, "schema": schema}
        for name, (text, schema) in headers.items()
    ]
    return {"requestBody": {"required": True, "content": content}, "parameters": query + named}
