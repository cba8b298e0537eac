"""The ingress as an ASGI application: one route for each pipeline of the spec, health, and the API's documentation."""

from __future__ import annotations

import asyncio
import re
import time
import uuid
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from fastapi import FastAPI
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, Field, create_model
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from serve_app.context import RequestContext, Timings, deadline_exceeded
from serve_app.http.admission import Admission
from serve_app.http.problems import MEDIA_TYPE, ProblemDetails, problem_response
from serve_app.http.uploads import read_inputs
from serve_app.problem import Problem
from serve_app.spec import Spec
from serve_app.spec.code import answer_type
from serve_app.spec.pipeline import Images, Pipeline

Run = Callable[[Pipeline, dict[str, Any], RequestContext, Timings], Coroutine[Any, Any, BaseModel]]

# The client gives up at that moment; an answer on its way there is no answer.
HEADSTART_S = 0.1
_REQUEST_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}")
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
    """The application. `run` runs a pipeline; `ready` raises Problem while requests cannot be served."""
    app = FastAPI(title=f"Tandem: {spec.application}", docs_url="/docs", redoc_url=None)
    app.add_exception_handler(Problem, _on_problem)
    app.add_exception_handler(HTTPException, _on_http_exception)
    app.add_exception_handler(ClientDisconnect, _on_disconnect)
    app.add_exception_handler(Exception, _on_crash)

    @app.get("/healthz", tags=["health"], summary="Whether the ingress lives")
    async def healthz() -> dict[str, str]:
        return {"status": "alive"}

    @app.get("/readyz", tags=["health"], summary="Whether requests can be served", responses=_problem_docs(503))
    async def readyz() -> dict[str, str]:
        await ready()
        return {"status": "ready"}

    for name, pipeline in spec.pipelines.items():
        _add_route(app, spec, name, pipeline, run, admission)
    # Around the whole application, so that the answer to a crash is named too.
    return _NameRequests(app)


def _add_route(
    app: FastAPI, spec: Spec, name: str, pipeline: Pipeline, run: Run, admission: Admission
) -> None:
    last = list(pipeline.steps.values())[-1]
    stage, method = last.call.split(".")
    answer = answer_type(spec.stages[stage], method)
    model = create_model(
        f"{answer.__name__}Answer",
        __base__=answer,
        request_id=(str, ...),
        timings_ms=(dict[str, float], Field(description="milliseconds by stage, and by stage.model within it")),
    )

    async def serve(request: Request) -> JSONResponse:
        context = _context(request, spec, spec.sla(name).total_seconds())
        measured = Timings()

        async def answered() -> BaseModel:
            async with admission.place():
                inputs = await read_inputs(request, pipeline.inputs, spec.service)
                return await _while_connected(request, run(pipeline, inputs, context, measured))

        with measured.measure("total"):
            result = await _before(context, answered())
        body = result.model_dump(mode="json")
        times = {key: round(value, 2) for key, value in measured.ms.items()}
        return JSONResponse({"request_id": context.request_id, **body, "timings_ms": times})

    app.add_api_route(
        pipeline.route,
        serve,
        methods=["POST"],
        name=name,
        summary=pipeline.summary,
        response_model=model,
        responses=_problem_docs(*_STATUSES),
        openapi_extra=_request_docs(pipeline.inputs, list(spec.tiers)),
    )


async def _while_connected(request: Request, work: Coroutine[Any, Any, BaseModel]) -> BaseModel:
    """The work's result; a client that hangs up cancels it. The request's body has been read."""
    task = asyncio.ensure_future(work)
    gone = asyncio.ensure_future(request.receive())
    try:
        await asyncio.wait([task, gone], return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise ClientDisconnect
        return task.result()
    finally:
        task.cancel()
        gone.cancel()


async def _before(context: RequestContext, work: Coroutine[Any, Any, BaseModel]) -> BaseModel:
    """The work's result. Problem 504 at the deadline, without waiting until the work has noticed its cancellation."""
    task = asyncio.ensure_future(work)
    # A failure after the deadline is nobody's any more; asyncio would log it as forgotten.
    task.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
    try:
        await asyncio.wait([task], timeout=context.remaining())
        if task.done():
            return task.result()
        raise deadline_exceeded()
    finally:
        task.cancel()


def _context(request: Request, spec: Spec, sla: float) -> RequestContext:
    """The request's tier and deadline. Problem 400 for headers that do not mean anything."""
    tier = request.headers.get("x-tier", spec.default_tier)
    if tier not in spec.tiers:
        raise Problem(400, "unknown_tier", f"X-Tier is not a tier; use one of {', '.join(spec.tiers)}", field="X-Tier")
    allowed = sla
    if (text := request.headers.get("x-request-timeout-seconds")) is not None:
        if not re.fullmatch(r"\d{1,6}(\.\d{1,6})?", text) or float(text) <= 0:
            detail = "X-Request-Timeout-Seconds is not a positive number of seconds; send one, as 2.5"
            raise Problem(400, "bad_timeout", detail, field="X-Request-Timeout-Seconds")
        allowed = min(allowed, max(float(text) - HEADSTART_S, float(text) / 2))
    return RequestContext(request.state.request_id, spec.tiers[tier].priority, request.state.arrived + allowed)


class _NameRequests:
    """ASGI middleware: every request has an id, the client's where it sends one, and every answer repeats it."""

    def __init__(self, app: ASGIApp):
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        arrived = time.time()
        given = Headers(scope=scope).get("x-request-id")
        request_id = given if given is not None and _REQUEST_ID.fullmatch(given) else str(uuid.uuid4())

        async def send_named(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message)["X-Request-ID"] = request_id
            await send(message)

        if given is not None and given != request_id:
            detail = "X-Request-ID is unfit; send up to 128 letters, digits and . _ : -, or none"
            problem = Problem(400, "bad_request_id", detail, field="X-Request-ID")
            await problem_response(problem, request_id)(scope, receive, send_named)
            return
        scope.setdefault("state", {}).update(request_id=request_id, arrived=arrived)
        await self._app(scope, receive, send_named)


async def _on_problem(request: Request, problem: Exception) -> JSONResponse:
    assert isinstance(problem, Problem)
    return problem_response(problem, request.state.request_id)


async def _on_http_exception(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    code = {404: "not_found", 405: "method_not_allowed"}.get(error.status_code, "http_error")
    detail = f"{request.method} {request.url.path} is not served; see /docs"
    return problem_response(
        Problem(error.status_code, code, detail), request.state.request_id, dict(error.headers or {})
    )


async def _on_disconnect(request: Request, error: Exception) -> Response:
    return Response(status_code=499)  # for nobody


async def _on_crash(request: Request, error: Exception) -> JSONResponse:
    request_id = request.state.request_id
    detail = f"the service failed; its log has the cause under request {request_id}"
    return problem_response(Problem(500, "internal_error", detail), request_id)


def _problem_docs(*statuses: int) -> dict[int | str, dict[str, Any]]:
    return {
        status: {
            "model": ProblemDetails,
            "description": _STATUSES[status],
            "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/ProblemDetails"}}},
        }
        for status in statuses
    }


def _request_docs(inputs: dict[str, Images], tiers: list[str]) -> dict[str, Any]:
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
        "X-Request-ID": ("names the request in answers and logs", {"type": "string"}),
        "X-Tier": ("how urgent the request is", {"type": "string", "enum": tiers}),
        "X-Request-Timeout-Seconds": ("shortens the deadline", {"type": "number", "exclusiveMinimum": 0}),
    }
    return {
        "requestBody": {"required": True, "content": content},
        "parameters": [
            {"name": name, "in": "header", "required": False, "description": text, "schema": schema}
            for name, (text, schema) in headers.items()
        ],
    }
