"""The protocol over gRPC: `inference.GRPCInferenceService`, except what manages the server."""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from google.protobuf.message import DecodeError
from tritonclient.grpc import service_pb2 as pb

from serve_app.admission import Admission
from serve_app.context import RequestContext
from serve_app.grpc_server.methods import Call, Method, Streaming, Unary
from serve_app.identity import HEADERS, ID, Contexts, repeated
from serve_app.interruption import Interruptible
from serve_app.problem import Problem
from serve_app.protocol.backend import Backend
from serve_app.protocol.grpc_request import parsed, rewritten
from serve_app.protocol.grpc_stream import Stream
from serve_app.protocol.limits import Limits
from serve_app.protocol.parameters import hurry
from serve_app.protocol.questions import Questions
from serve_app.protocol.refusals import Code, Refusal, deadline_passed, failed, invalid, of_problem
from serve_app.protocol.signatures import Signatures

_Answer = Callable[[Any, float], Awaitable[Any]]
_Written = TypeVar("_Written")

logger = logging.getLogger("ray.serve")

SERVICE = pb.DESCRIPTOR.services_by_name["GRPCInferenceService"]
# Asked every few seconds by whatever watches the service.
_UNLOGGED = ("ServerLive", "ServerReady")


class GrpcDoor:
    """Requests come and answers go as bytes, so that what a message holds is counted before it is taken apart."""

    def __init__(
        self, signatures: Signatures, backend: Backend, contexts: Contexts, admission: Admission, limits: Limits
    ):
        self._signatures = signatures
        self._backend = backend
        self._contexts = contexts
        self._admission = admission
        self._limits = limits
        questions = Questions(signatures, backend)
        self._questions: Mapping[str, tuple[Any, _Answer]] = {
            "ServerLive": (pb.ServerLiveRequest, _live),
            "ServerReady": (pb.ServerReadyRequest, _ready(questions)),
            "ServerMetadata": (pb.ServerMetadataRequest, lambda _, left: questions.server_metadata(left)),
            "ModelReady": (pb.ModelReadyRequest, _model_ready(questions)),
            "ModelMetadata": (
                pb.ModelMetadataRequest,
                lambda ask, left: questions.model_metadata(ask.name, ask.version, left),
            ),
            "ModelConfig": (
                pb.ModelConfigRequest,
                lambda ask, left: questions.model_config(ask.name, ask.version, left),
            ),
            "ModelStatistics": (
                pb.ModelStatisticsRequest,
                lambda ask, left: questions.statistics(ask.name, ask.version, left),
            ),
            "RepositoryIndex": (
                pb.RepositoryIndexRequest,
                lambda ask, left: questions.index(ready=ask.ready, timeout=left),
            ),
        }

    def methods(self) -> Mapping[str, Method]:
        """Every method of the service by its path; those without an answer here are refused."""
        return {f"/{SERVICE.full_name}/{method.name}": self._method(method.name) for method in SERVICE.methods}

    def _method(self, name: str) -> Method:
        if name == "ModelStreamInfer":
            return Streaming(name, self.stream)
        if name == "ModelInfer":
            return Unary(name, self.infer)
        if name in self._questions:
            return Unary(name, self._asked(*self._questions[name]), is_logged=name not in _UNLOGGED)
        return Unary(name, _refused)

    async def infer(self, data: bytes, call: Call) -> bytes:
        async def infer(context: RequestContext) -> bytes:
            given = parsed(data, self._limits)
            signature = self._signatures.for_one_answer(given.model_name, "ModelInfer RPC")
            call.about = signature.name
            with self._admission.admitted(context, signature.name) as admitted, Interruptible() as work:
                request = rewritten(given, signature, context, self._limits)
                work.interrupt_after(context.remaining(), deadline_passed)
                async with admitted as granted:
                    hurry(request, context, granted)
                    answer = await self._backend.infer(request, context.remaining(), repeatable=not signature.sequence)
            written: bytes = answer.SerializeToString()
            return written

        return await self._answered(call, infer)

    async def stream(self, requests: AsyncIterator[bytes], call: Call) -> None:
        async def stream(context: RequestContext) -> None:
            headers = {**_headers(call), ID: context.request_id}

            def context_for() -> RequestContext:
                # Each request of the stream has the whole of the time that the service allows.
                return _not_after(self._contexts(headers), call.time_remaining())

            of_stream = Stream(self._signatures, self._backend, context_for, self._admission, self._limits, call.write)
            with Interruptible() as whole:
                if (left := call.time_remaining()) is not None:
                    whole.interrupt_after(left, deadline_passed)
                await of_stream.run(requests)

        await self._answered(call, stream)

    def _asked(self, kind: Any, answer: _Answer) -> Callable[[bytes, Call], Awaitable[bytes]]:
        async def asked(data: bytes, call: Call) -> bytes:
            async def ask(context: RequestContext) -> bytes:
                written: bytes = (await answer(_message(kind, data), context.remaining())).SerializeToString()
                return written

            return await self._answered(call, ask)

        return asked

    async def _answered(self, call: Call, answer: Callable[[RequestContext], Awaitable[_Written]]) -> _Written:
        """What `answer` makes of the call. Refusal where that raises anything."""
        try:
            context = self._contexts(_headers(call), arrived=call.arrived)
            call.request_id = context.request_id
            call.trailers = ((ID, context.request_id),)
            return await answer(_not_after(context, call.time_remaining()))
        except Refusal:
            raise
        except Problem as problem:
            raise of_problem(problem) from None
        except Exception:
            logger.exception("request %s failed", call.request_id)
            raise failed(call.request_id) from None


def _not_after(context: RequestContext, left: float | None) -> RequestContext:
    """The context with the client's own deadline, where it ends before."""
    if left is None or (until := time.time() + left) >= context.deadline:
        return context
    return replace(context, deadline=until)


def _headers(call: Call) -> dict[str, str]:
    headers: dict[str, str] = {}
    for key, value in call.metadata:
        if key in HEADERS:
            if key in headers:
                raise repeated(key)
            headers[key] = value
    return headers


def _message(kind: Any, data: bytes) -> Any:
    try:
        return kind.FromString(data)
    except DecodeError:
        raise invalid(f"the message cannot be read as a {kind.DESCRIPTOR.name}") from None


async def _refused(data: bytes, call: Call) -> bytes:
    """What a Triton says whose management is restricted; over HTTP it is 403 there."""
    raise Refusal(
        Code.UNAVAILABLE,
        "This protocol is restricted: models, shared memory, trace and log settings are not managed here",
    )


async def _live(_: Any, __: float) -> pb.ServerLiveResponse:
    return pb.ServerLiveResponse(live=True)


def _ready(questions: Questions) -> _Answer:
    async def ready(_: Any, left: float) -> pb.ServerReadyResponse:
        return pb.ServerReadyResponse(ready=await questions.server_ready(left))

    return ready


def _model_ready(questions: Questions) -> _Answer:
    async def ready(ask: Any, left: float) -> pb.ModelReadyResponse:
        return pb.ModelReadyResponse(ready=await questions.model_ready(ask.name, ask.version, left))

    return ready
