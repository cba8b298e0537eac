"""Why a request is not answered: Triton's own codes and messages, and what becomes of them over HTTP.

Source of the HTTP statuses: Triton's own server, measured at 2.51. Three are Tandem's: 504 where the deadline passed,
which Triton leaves to its clients, 413, and 429 where the ingress is full, over gRPC RESOURCE_EXHAUSTED.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

import grpc

from serve_app.problem import Problem
from serve_app.triton.errors import is_lost

Code = grpc.StatusCode
INVALID = Code.INVALID_ARGUMENT

_STATUSES = {
    Code.INVALID_ARGUMENT: 400,
    Code.ALREADY_EXISTS: 400,
    Code.CANCELLED: 400,
    Code.PERMISSION_DENIED: 403,
    Code.NOT_FOUND: 404,
    Code.RESOURCE_EXHAUSTED: 413,
    Code.INTERNAL: 500,
    Code.UNIMPLEMENTED: 501,
    Code.UNAVAILABLE: 503,
    Code.DEADLINE_EXCEEDED: 504,
}
_OF_PROBLEMS = {400: INVALID, 429: Code.RESOURCE_EXHAUSTED, 503: Code.UNAVAILABLE, 504: Code.DEADLINE_EXCEEDED}
_LONGEST = 1000
# A model's traceback, shared memory, addresses, paths and pointers.
_TRACEBACK = re.compile(r"\s*\n+At:\n.*", re.DOTALL)
_INSIDES = re.compile(
    r"""
      [\w/-]*(?:shm_region|tandem-\d)[\w.-]*
    | (?:ipv4|ipv6|unix|dns)(?:-abstract)?:\S+
    | \b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?
    | \blocalhost:\d+
    | (?<![\w.])/(?:[\w.@+-]+/)+[\w.@+-]*
    | \b0x[0-9a-fA-F]{6,}
    """,
    re.VERBOSE,
)


class Refusal(Exception):
    """An outcome other than an answer. `status` is the HTTP status where it is not the code's."""

    def __init__(
        self,
        code: grpc.StatusCode,
        message: str,
        *,
        status: int | None = None,
        headers: Sequence[tuple[bytes, bytes]] = (),
    ):
        super().__init__(code, message)
        self.code = code
        # What it quotes of a client's may be no Unicode text.
        self.message = message if message.isascii() else message.encode(errors="backslashreplace").decode()
        self.status = status or _STATUSES.get(code, 500)
        self.headers = headers


def invalid(message: str) -> Refusal:
    return Refusal(INVALID, message)


def too_large(message: str) -> Refusal:
    return Refusal(Code.RESOURCE_EXHAUSTED, message)


def unknown_model(name: str, version: str = "") -> Refusal:
    which = f"'{shown(name)}'" + (f" version {version}" if version else "")
    return Refusal(Code.NOT_FOUND, f"Request for unknown model: {which} is not found")


def deadline_passed() -> Refusal:
    return Refusal(Code.DEADLINE_EXCEEDED, "the deadline passed before the answer was ready")


def not_available() -> Refusal:
    return Refusal(Code.UNAVAILABLE, "the inference server is not available just now; retry in a few seconds")


def failed(request_id: str) -> Refusal:
    return Refusal(Code.INTERNAL, f"the service failed; its log has the cause under request {request_id}")


def of_problem(problem: Problem) -> Refusal:
    """What the rest of the ingress calls a problem, in the protocol's terms."""
    headers = []
    if problem.retry_after is not None:
        headers.append((b"retry-after", str(math.ceil(problem.retry_after)).encode()))
    code = _OF_PROBLEMS.get(problem.status, Code.INTERNAL)
    return Refusal(code, problem.detail, status=problem.status, headers=headers)


def of_triton(error: grpc.RpcError) -> Refusal:
    """What Triton, or the channel to it, said."""
    code, text = error.code(), error.details() or ""
    if code is Code.DEADLINE_EXCEEDED:
        return deadline_passed()
    if code is Code.UNAVAILABLE and is_lost(error) and "Server is stopping" not in text:
        return not_available()
    return Refusal(code, cleaned(text))


def cleaned(text: str) -> str:
    """The message without a traceback and without names of what is inside: files, memory, addresses."""
    return _INSIDES.sub("…", _TRACEBACK.sub("", text))[:_LONGEST]


def shown(value: object) -> str:
    """A client's value as a message quotes it: not long, and on one line."""
    text = str(value) if isinstance(value, (str, int)) else type(value).__name__
    return (text if len(text) <= 100 else f"{text[:100]}…").encode("unicode_escape").decode()
