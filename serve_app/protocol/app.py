"""The protocol over HTTP, as an ASGI application: `/v2` and everything below it."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from starlette.types import Receive, Scope, Send

from serve_app.admission import Admission
from serve_app.context import RequestContext
from serve_app.identity import HEADERS, ID, Contexts, repeated, request_id_of
from serve_app.interruption import Interruptible, WhileConnected
from serve_app.problem import Problem
from serve_app.protocol import compression
from serve_app.protocol.backend import Backend
from serve_app.protocol.http_body import read_body
from serve_app.protocol.http_request import index_is_of_ready_models, read_request
from serve_app.protocol.http_response import encode, write_answer
from serve_app.protocol.json_messages import as_json
from serve_app.protocol.limits import Limits
from serve_app.protocol.parameters import hurry
from serve_app.protocol.questions import Questions
from serve_app.protocol.refusals import INVALID, Code, Refusal, deadline_passed, failed, invalid, of_problem
from serve_app.protocol.signatures import Signatures

logger = logging.getLogger("ray.serve")
_HEADER_LENGTH = "inference-header-content-length"
_READ = frozenset(
    name.encode()
    for name in (*HEADERS, _HEADER_LENGTH, "content-length", "content-type", "content-encoding", "accept-encoding")
)
# curl's own, when it is not told; Triton itself does not look.
_CONTENT_TYPES = ("", "application/json", "application/octet-stream", "application/x-www-form-urlencoded")
_JSON, _BYTES, _NO_TEXT = b"application/json", b"application/octet-stream", b"text/plain"
_MANAGEMENT = ("repository", "systemsharedmemory", "cudasharedmemory", "trace", "logging")
_OF_THE_SERVER: tuple[list[str], ...] = ([], ["health", "live"], ["health", "ready"], ["models", "stats"])
_OF_A_MODEL = ("", "ready", "config", "stats")


class _GoneError(Exception):
    """The client hung up."""


class ProtocolApp:
    """Takes a request's id and arrival of the scope's state, where whatever calls it has put them there."""

    def __init__(
        self, signatures: Signatures, backend: Backend, contexts: Contexts, admission: Admission, limits: Limits
    ):
        self._signatures = signatures
        self._backend = backend
        self._contexts = contexts
        self._admission = admission
        self._limits = limits
        self._questions = Questions(signatures, backend)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            raise ValueError(f"{scope['type']} is not served here")
        state = scope.get("state") or {}
        named = state.get("request_id")
        reply = _Reply(scope["method"], send, named)
        try:
            headers = _headers(scope, named)
            reply.accepts = headers.get("accept-encoding", "")
            context = self._contexts(headers, arrived=state.get("arrived"))
            reply.request_id = context.request_id
            await self._answer(scope, headers, receive, context, reply)
        except Refusal as refusal:
            await reply.refuse(refusal)
        except Problem as problem:
            await reply.refuse(of_problem(problem))
        except _GoneError:
            return
        except Exception:
            logger.exception("request %s failed", reply.request_id)
            await reply.refuse(failed(reply.request_id))

    async def _answer(
        self, scope: Scope, headers: Mapping[str, str], receive: Receive, context: RequestContext, reply: _Reply
    ) -> None:
        parts = _below_v2(scope)
        name, version, what = _model_of(parts)
        if name and what == "infer":
            _allow(scope, "POST")
            await self._infer(name, version, headers, receive, context, reply)
        elif parts == ["repository", "index"]:
            _allow(scope, "POST")
            with Interruptible() as reading:
                reading.interrupt_after(context.remaining(), deadline_passed)
                body = await read_body(headers, receive, self._limits, _GoneError())
            ready = index_is_of_ready_models(body, self._limits)
            index = await self._questions.index(ready=ready, timeout=context.remaining())
            await reply.json([{key: value for key, value in as_json(model).items() if value} for model in index.models])
        elif (parts and parts[0] in _MANAGEMENT) or what.startswith("trace"):
            raise Refusal(Code.PERMISSION_DENIED, "models, shared memory, trace and log settings are not managed here")
        elif parts not in _OF_THE_SERVER and not (name and what in _OF_A_MODEL):
            raise Refusal(Code.NOT_FOUND, "Not Found: the Open Inference Protocol has no such path here")
        else:
            _allow(scope, "GET", "HEAD")
            await self._ask(parts, name, version, what, context.remaining(), reply)

    async def _ask(
        self, parts: Sequence[str], name: str, version: str, what: str, timeout: float, reply: _Reply
    ) -> None:
        questions = self._questions
        if not parts:
            await reply.json(as_json(await questions.server_metadata(timeout)))
        elif parts == ["health", "live"]:
            await reply.empty()
        elif parts == ["health", "ready"]:
            if not await questions.server_ready(timeout):
                raise Refusal(INVALID, "the server is not ready")
            await reply.empty()
        elif parts == ["models", "stats"]:
            await reply.json(as_json(await questions.statistics("", "", timeout)))
        elif what == "ready":
            if not await questions.model_ready(name, version, timeout):
                raise Refusal(INVALID, "Model version not ready")
            await reply.empty()
        elif what == "":
            await reply.json(as_json(await questions.model_metadata(name, version, timeout)))
        elif what == "config":
            await reply.json(as_json((await questions.model_config(name, version, timeout)).config))
        else:
            await reply.json(as_json(await questions.statistics(name, version, timeout)))

    async def _infer(
        self,
        name: str,
        version: str,
        headers: Mapping[str, str],
        receive: Receive,
        context: RequestContext,
        reply: _Reply,
    ) -> None:
        signature = self._signatures.for_one_answer(name, "HTTP end point")
        kind, _, more = headers.get("content-type", "").partition(";")
        if kind.strip().lower() not in _CONTENT_TYPES or ("charset" in more and "utf-8" not in more.lower()):
            raise Refusal(
                INVALID, "the content type is not application/json in UTF-8, or application/octet-stream", status=415
            )
        header_length = _length_of_header(headers)
        with self._admission.admitted(context, name) as admitted, Interruptible() as work:
            work.interrupt_after(context.remaining(), deadline_passed)
            body = await read_body(headers, receive, self._limits, _GoneError())
            if "content-encoding" in headers:
                body = await compression.unpacked(body, headers["content-encoding"], self._limits.body)
            request, wanted = read_request(body, header_length, signature, version, context, self._limits)
            del body
            with WhileConnected(receive, work, _GoneError()):
                async with admitted as granted:
                    hurry(request, context, granted)
                    answer = await self._backend.infer(request, context.remaining(), repeatable=not signature.sequence)
        parts, length = write_answer(answer, wanted)
        more_headers = [] if length is None else [(_HEADER_LENGTH.encode(), str(length).encode())]
        await reply.send(200, parts, _JSON if length is None else _BYTES, more_headers)


class _Reply:
    """One request's answer, on its way out."""

    def __init__(self, method: str, send: Send, request_id: str | None):
        self._is_head = method == "HEAD"
        self._send = send
        self.request_id = request_id or request_id_of(None)
        self.accepts = ""

    async def json(self, value: Any) -> None:
        await self.send(200, [encode(value).encode()], _JSON)

    async def empty(self) -> None:
        await self.send(200, [], _NO_TEXT)

    async def refuse(self, refusal: Refusal) -> None:
        more = list(refusal.headers)
        if refusal.code is Code.UNAVAILABLE and not any(name == b"retry-after" for name, _ in more):
            more.append((b"retry-after", b"1"))
        await self.send(refusal.status, [encode({"error": refusal.message}).encode()], _JSON, more)

    async def send(
        self, status: int, parts: list[bytes], kind: bytes, more: Sequence[tuple[bytes, bytes]] = ()
    ) -> None:
        size = sum(map(len, parts))
        headers = [(b"content-type", kind), *more]
        encoding = compression.chosen(self.accepts, size)
        if encoding is not None:
            parts = [await compression.packed(parts, encoding)]
            size = len(parts[0])
            headers += [(b"content-encoding", encoding.encode()), (b"vary", b"accept-encoding")]
        headers.append((b"content-length", str(size).encode()))
        headers.append((ID.encode(), self.request_id.encode()))
        await self._send({"type": "http.response.start", "status": status, "headers": headers})
        body = b"" if self._is_head else parts[0] if len(parts) == 1 else b"".join(parts)
        await self._send({"type": "http.response.body", "body": body})


def _headers(scope: Scope, request_id: str | None) -> dict[str, str]:
    """Those that mean something here. Refusal where one of them comes twice."""
    headers: dict[str, str] = {}
    for key, value in scope["headers"]:
        if key in _READ:
            name = key.decode()
            if name in headers:
                raise repeated(name)
            headers[name] = value.decode("latin-1")
    if request_id is not None:
        headers[ID] = request_id
    return headers


def _below_v2(scope: Scope) -> list[str]:
    """The path's parts after /v2. Refusal where it does not begin so."""
    path: str = scope["path"]
    root = scope.get("root_path", "")
    if root and path.startswith(root):
        path = path[len(root) :]
    parts = path.split("/")
    if parts[:2] != ["", "v2"]:
        raise Refusal(Code.NOT_FOUND, "Not Found: the Open Inference Protocol is below /v2")
    return parts[2:-1] if parts[-1] == "" else parts[2:]


def _model_of(parts: Sequence[str]) -> tuple[str, str, str]:
    """Model, version and what is asked of it; no model where the path names none."""
    if len(parts) < 2 or parts[0] != "models":
        return "", "", ""
    name, rest = parts[1], parts[2:]
    version = ""
    if len(rest) >= 2 and rest[0] == "versions" and rest[1].isascii() and rest[1].isdigit():
        version, rest = rest[1], rest[2:]
    what = "/".join(rest)
    return ("", "", "") if parts == ["models", "stats"] else (name, version, what)


def _allow(scope: Scope, *methods: str) -> None:
    if scope["method"] not in methods:
        allowed = ", ".join(methods)
        raise Refusal(
            Code.UNIMPLEMENTED,
            f"Method Not Allowed: use {allowed}",
            status=405,
            headers=[(b"allow", allowed.encode())],
        )


def _length_of_header(headers: Mapping[str, str]) -> int | None:
    text = headers.get(_HEADER_LENGTH)
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= 18):
        raise invalid("Inference-Header-Content-Length is not a whole number")
    return int(text)
