"""One gRPC stream of inference requests: each is checked and sent on by itself, answers go back as they come.

Answers keep the order of their requests, except those of decoupled models, which may have several or none: as Triton
does it. A request of a sequence is sent when the one before it has been answered, so that they cannot change places.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from tritonclient.grpc import service_pb2 as pb

from serve_app.admission import Admission
from serve_app.context import RequestContext
from serve_app.interruption import Interruptible
from serve_app.problem import Problem
from serve_app.protocol.backend import Backend
from serve_app.protocol.grpc_request import parsed, rewritten
from serve_app.protocol.limits import Limits
from serve_app.protocol.parameters import EMPTY_FINAL, hurry
from serve_app.protocol.refusals import Refusal, cleaned, deadline_passed, of_problem
from serve_app.protocol.signatures import Signature, Signatures

_FINAL = "triton_final_response"


class Stream:
    """`context_for` makes the context of a request that came just now; `write` sends an answer."""

    def __init__(
        self,
        signatures: Signatures,
        backend: Backend,
        context_for: Callable[[], RequestContext],
        admission: Admission,
        limits: Limits,
        write: Callable[[bytes], Awaitable[None]],
    ):
        self._signatures = signatures
        self._backend = backend
        self._context_for = context_for
        self._admission = admission
        self._limits = limits
        self._send = write
        self._writing = asyncio.Lock()
        self._room = asyncio.Semaphore(limits.in_flight)
        self._last = asyncio.Event()
        self._last.set()

    async def run(self, requests: AsyncIterator[bytes]) -> None:
        """Until the client has sent its last request and has the last answer, or is gone."""
        tasks: set[asyncio.Task[None]] = set()
        try:
            with Interruptible() as work:

                def ended(task: asyncio.Task[None]) -> None:
                    tasks.discard(task)
                    self._room.release()
                    if not task.cancelled() and (fault := task.exception()) is not None:
                        work.interrupt(fault)

                async for data in requests:
                    await self._room.acquire()
                    task = asyncio.create_task(self._begin(data))
                    tasks.add(task)
                    task.add_done_callback(ended)
                while tasks:
                    await asyncio.wait(tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def _begin(self, data: bytes) -> Coroutine[Any, Any, None]:
        """The work on a request; its place in the order is taken at once."""
        request_id = ""
        try:
            given = parsed(data, self._limits)
            request_id = given.id
            signature = self._signatures.find(given.model_name)
            context = self._context_for()
            request = rewritten(given, signature, context, self._limits)
        except Refusal as refusal:
            return self._tell(_error(refusal, request_id), self._place())
        except Problem as problem:
            return self._tell(_error(of_problem(problem), request_id), self._place())
        if signature.decoupled:
            wants_end = EMPTY_FINAL in given.parameters and given.parameters[EMPTY_FINAL].bool_param
            return self._forward(request, context, wants_end=wants_end)
        return self._answer(request, context, signature, self._place())

    def _place(self) -> _Place:
        place = _Place(self._last, asyncio.Event())
        self._last = place.done
        return place

    async def _answer(
        self, request: pb.ModelInferRequest, context: RequestContext, signature: Signature, place: _Place
    ) -> None:
        try:
            if signature.sequence:
                await place.before.wait()
            with self._admission.admitted(context, request.model_name) as admitted, Interruptible() as work:
                work.interrupt_after(context.remaining(), deadline_passed)
                async with admitted as granted:
                    hurry(request, context, granted)
                    answer = await self._backend.infer(request, context.remaining(), repeatable=not signature.sequence)
            message = pb.ModelStreamInferResponse(infer_response=answer)
            message.infer_response.parameters[_FINAL].bool_param = True
        except Refusal as refusal:
            message = _error(refusal, request.id)
        except Problem as problem:
            message = _error(of_problem(problem), request.id)
        await self._tell(message, place)

    async def _tell(self, message: pb.ModelStreamInferResponse, place: _Place) -> None:
        await place.before.wait()
        await self._write(message)
        place.done.set()

    async def _forward(self, request: pb.ModelInferRequest, context: RequestContext, *, wants_end: bool) -> None:
        """All answers of a decoupled model; the empty last one that Triton adds on demand where the client wants it."""
        if wants_end:
            request.parameters[EMPTY_FINAL].bool_param = True
        try:
            with self._admission.admitted(context, request.model_name) as admitted, Interruptible() as work:
                work.interrupt_after(context.remaining(), deadline_passed)
                async with admitted as granted:
                    hurry(request, context, granted)
                    async for message in self._backend.stream(request, context.remaining()):
                        if message.error_message:
                            message.error_message = cleaned(message.error_message)
                        await self._write(message)
        except Refusal as refusal:
            await self._write(_error(refusal, request.id))
        except Problem as problem:
            await self._write(_error(of_problem(problem), request.id))

    async def _write(self, message: pb.ModelStreamInferResponse) -> None:
        async with self._writing:
            await self._send(message.SerializeToString())


@dataclass(frozen=True)
class _Place:
    """Where an answer stands in the order: after `before` is set, and then `done` is."""

    before: asyncio.Event
    done: asyncio.Event


def _error(refusal: Refusal, request_id: str) -> pb.ModelStreamInferResponse:
    """As Triton tells of a request's failure on a stream: with its id, without a code."""
    return pb.ModelStreamInferResponse(
        error_message=refusal.message, infer_response=pb.ModelInferResponse(id=request_id)
    )
