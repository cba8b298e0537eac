"""Problems as `application/problem+json` (RFC 9457)."""

from __future__ import annotations

import math
from http import HTTPStatus

from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field

from serve_app.problem import Problem

MEDIA_TYPE = "application/problem+json"


class ProblemDetails(BaseModel):
    """The body of every answer that is not a success."""

    type: str = Field(description="always about:blank; `code` tells problems apart")
    title: str = Field(description="the HTTP status in words")
    status: int
    code: str = Field(description="stable name of what is wrong")
    detail: str = Field(description="what is wrong with this request, and what to do")
    field: str | None = Field(default=None, description="the part of the request at fault")
    request_id: str


def problem_response(problem: Problem, request_id: str, headers: dict[str, str] | None = None) -> JSONResponse:
    body = ProblemDetails(
        type="about:blank",
        title=HTTPStatus(problem.status).phrase,
        status=problem.status,
        code=problem.code,
        detail=problem.detail,
        field=problem.field,
        request_id=request_id,
    )
    more = dict(headers or {})
    if problem.retry_after is not None:
        more["Retry-After"] = str(math.ceil(problem.retry_after))
    return JSONResponse(body.model_dump(exclude_none=True), problem.status, more, MEDIA_TYPE)
