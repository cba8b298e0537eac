"""The pipelines' routes: each an ASGI application that reads a request, runs the pipeline and answers.

FastAPI documents them, and serves all other paths. Its layers would take as long for each request as all of this.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from pydantic import BaseModel
from pydantic_core import to_json
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from serve_app.admission import Admission
from serve_app.context import RequestContext, Timings, deadline_exceeded
from serve_app.http.uploads import read_inputs
from serve_app.identity import ID, TIER, TIMEOUT, Contexts, repeated
from serve_app.interruption import Interruptible, WhileConnected
from serve_app.spec import Spec
from serve_app.spec.pipeline import Pipeline

Run = Callable[[Pipeline, dict[str, Any], RequestContext, Timings], Coroutine[Any, Any, BaseModel]]


class Routes:
    """Gives each POST to a pipeline's route to it, and everything else to `others`."""

    def __init__(self, routes: Mapping[str, ASGIApp], others: ASGIApp):
        self._routes = dict(routes)
        self._others = others

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path: str = scope["path"][len(scope.get("root_path", "")) :]
        route = self._routes.get(path, self._others) if scope["method"] == "POST" else self._others
        await route(scope, receive, send)


class PipelineRoute:
    """Answers with the pipeline's result, the request's id and where its time went.

    It finds the request's `request_id` and `arrived` in the scope's state. Raises Problem where it cannot answer. A
    number that is none (NaN) is null in the answer, as JSON has no other word for it.
    """

    def __init__(self, spec: Spec, name: str, run: Run, admission: Admission):
        self._pipeline = spec.pipelines[name]
        self._service = spec.service
        self._sla = spec.sla(name).total_seconds()
        self._contexts = Contexts(spec)
        self._run = run
        self._admission = admission

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            answer = Response(await self._answer(Request(scope, receive)), media_type="application/json")
        except ClientDisconnect:
            answer = Response(status_code=499)  # for nobody
        await answer(scope, receive, send)

    async def _answer(self, request: Request) -> bytes:
        context = self._contexts(_headers(request), sla=self._sla, arrived=request.state.arrived)
        measured = Timings()
        with (
            self._admission.admitted(context, self._pipeline.route) as admitted,
            measured.measure("total"),
            Interruptible() as work,
        ):
            work.interrupt_after(context.remaining(), deadline_exceeded)
            inputs = await read_inputs(request, self._pipeline, self._service)
            with WhileConnected(request.receive, work, ClientDisconnect()):
                async with admitted as granted:
                    result = await self._run(self._pipeline, inputs, granted, measured)
        times = {key: round(value, 2) for key, value in measured.ms.items()}
        answer = {"request_id": context.request_id, **result.model_dump(mode="json"), "timings_ms": times}
        return to_json(answer, inf_nan_mode="null")


def _headers(request: Request) -> dict[str, str]:
    """Those that mean something here. Problem 400 where one of them comes twice."""
    headers: dict[str, str] = {ID: request.state.request_id}
    for name in (TIER, TIMEOUT):
        values = request.headers.getlist(name)
        if len(values) > 1:
            raise repeated(name.title())
        if values:
            headers[name] = values[0]
    return headers
