"""The protocol over gRPC: `inference.GRPCInferenceService`, except what manages the server."""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any, NoReturn, TypeAlias, TypeVar

import grpc
from google.protobuf.message import DecodeError
from tritonclient.grpc import service_pb2 as pb

from serve_app.admission import Admission
from serve_app.context import RequestContext
from serve_app.identity import HEADERS, ID, Contexts, repeated, request_id_of
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

Call: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"
_Answer = Callable[[Any, float], Awaitable[Any]]
_Written = TypeVar("_Written")

logger = logging.getLogger("ray.serve")

SERVICE = pb.DESCRIPTOR.services_by_name["GRPCInferenceService"]
# What a Triton says whose management is restricted; over HTTP it is 403 there.
_REFUSED = Refusal(
    Code.UNAVAILABLE,
    "This protocol is restricted: models, shared memory, trace and log settings are not managed here",
)


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

    def handlers(self) -> grpc.GenericRpcHandler:
        """Every method of the service; those without an answer here are refused."""
        methods = {}
        for method in SERVICE.methods:
            if method.name == "ModelStreamInfer":
                methods[method.name] = grpc.stream_stream_rpc_method_handler(self.stream)
            elif method.name == "ModelInfer":
                methods[method.name] = grpc.unary_unary_rpc_method_handler(self.infer)
            elif method.name in self._questions:
                methods[method.name] = grpc.unary_unary_rpc_method_handler(self._asked(*self._questions[method.name]))
            else:
                methods[method.name] = grpc.unary_unary_rpc_method_handler(_refused)
        return grpc.method_handlers_generic_handler(SERVICE.full_name, methods)

    async def infer(self, data: bytes, call: Call) -> bytes:
        async def infer(context: RequestContext) -> bytes:
            given = parsed(data, self._limits)
            signature = self._signatures.for_one_answer(given.model_name, "ModelInfer RPC")
            with self._admission.admitted(context, signature.name) as admitted, Interruptible() as work:
                request = rewritten(given, signature, context, self._limits)
                work.interrupt_after(context.remaining(), deadline_passed())
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

            of_stream = Stream(self._signatures, self._backend, context_for, self._admission, self._limits, call)
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
        """What `answer` makes of the call, which ends with a code where that raises."""
        request_id = request_id_of(None)
        try:
            context = _not_after(self._contexts({ID: request_id, **_headers(call)}), call.time_remaining())
            request_id = context.request_id
            call.set_trailing_metadata(((ID, request_id),))
            return await answer(context)
        except Refusal as refusal:
            await _abort(call, refusal)
        except Problem as problem:
            await _abort(call, of_problem(problem))
        except Exception:
            logger.exception("request %s failed", request_id)
            await _abort(call, failed(request_id))


def _not_after(context: RequestContext, left: float | None) -> RequestContext:
    """The context with the client's own deadline, where it ends before."""
    if left is None:
        return context
    return replace(context, deadline=min(context.deadline, time.time() + left))


def _headers(call: Call) -> dict[str, str]:
    headers: dict[str, str] = {}
    for key, value in call.invocation_metadata() or ():
        if key in HEADERS:
            if key in headers:
                raise repeated(key)
            headers[key] = str(value)
    return headers


def _message(kind: Any, data: bytes) -> Any:
    try:
        return kind.FromString(data)
    except DecodeError:
        raise invalid(f"the message cannot be read as a {kind.DESCRIPTOR.name}") from None


async def _abort(call: Call, refusal: Refusal) -> NoReturn:
    metadata = tuple((name.decode(), value.decode()) for name, value in refusal.headers)
    await call.abort(refusal.code, refusal.message, metadata)
    raise AssertionError("abort always raises")


async def _refused(data: bytes, call: Call) -> bytes:
    await _abort(call, _REFUSED)


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


def make_server(
    door: GrpcDoor, address: str, limits: Limits, credentials: grpc.ServerCredentials | None = None
) -> grpc.aio.Server:
    """A server for the door on `address` (host:port), not started; several processes may listen on one address.

    With `credentials` it speaks TLS. RuntimeError where the address cannot be bound.
    """
    server = grpc.aio.server(
        options=[
            # The body's limit is a tensor's; its message has a little more.
            ("grpc.max_receive_message_length", limits.body + limits.listed),
            ("grpc.max_send_message_length", -1),
            ("grpc.so_reuseport", 1),
            # A client that is gone without a word is found out, so that its streams end.
            ("grpc.keepalive_time_ms", 60_000),
            ("grpc.keepalive_timeout_ms", 20_000),
            ("grpc.http2.min_ping_interval_without_data_ms", 5_000),
        ]
    )
    server.add_generic_rpc_handlers((door.handlers(),))
    if credentials is None:
        server.add_insecure_port(address)
    else:
        server.add_secure_port(address, credentials)
    return server
