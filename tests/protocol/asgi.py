"""The door over HTTP without a network: a client of the ASGI application, and a stand-in for what is behind it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

from tritonclient.grpc import service_pb2 as pb

from serve_app.admission import Admission, AdmissionLimits
from serve_app.identity import Contexts
from serve_app.protocol.app import ProtocolApp
from serve_app.protocol.limits import Limits
from tests.protocol.codec import LIMITS, SIGNATURES, fp32
from tests.protocol.served import SPEC


class Behind:
    """Notes what it is asked, and answers `answer`; waits first where `hold` is set, until it is cancelled."""

    def __init__(self) -> None:
        self.requests: list[pb.ModelInferRequest] = []
        self.timeouts: list[float] = []
        self.repeatable: list[bool] = []
        self.answer: pb.ModelInferResponse | Exception = sum_of([1.5])
        self.hold = False
        self.asked = asyncio.Event()
        self.cancelled = asyncio.Event()

    async def infer(
        self, request: pb.ModelInferRequest, timeout: float, *, repeatable: bool = True
    ) -> pb.ModelInferResponse:
        self.requests.append(request)
        self.timeouts.append(timeout)
        self.repeatable.append(repeatable)
        self.asked.set()
        if self.hold:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                self.cancelled.set()
                raise
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    async def stream(self, request: pb.ModelInferRequest, timeout: float) -> AsyncIterator[pb.ModelStreamInferResponse]:
        raise NotImplementedError
        yield

    async def ask(self, method: str, request: Any, timeout: float) -> Any:
        assert method == "ServerMetadata"
        return pb.ServerMetadataResponse(name="inside", version="2.51.0", extensions=["statistics", "trace"])


def sum_of(values: list[float]) -> pb.ModelInferResponse:
    answer = pb.ModelInferResponse(model_name="add", model_version="1")
    answer.outputs.add(name="OUTPUT_SUM", datatype="FP32", shape=[1, len(values)])
    answer.raw_output_contents.append(fp32(*values))
    return answer


@dataclass
class Answer:
    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def error(self) -> str:
        return str(self.json["error"])


class Client:
    """Sends one request in the given parts; `more` lets the body never end, `hang_up` ends the connection."""

    def __init__(self, behind: Behind, limits: Limits = LIMITS):
        self._app = ProtocolApp(SIGNATURES, behind, Contexts(SPEC), Admission(AdmissionLimits.of(SPEC)), limits)
        self.hang_up = asyncio.Event()

    async def send(
        self, method: str, path: str, *parts: bytes, headers: dict[str, str] | None = None, more: bool = False
    ) -> Answer:
        messages = [
            {"type": "http.request", "body": part, "more_body": more or index + 1 < len(parts)}
            for index, part in enumerate(parts or [b""])
        ]
        answer = Answer()

        async def receive() -> Any:
            if messages:
                return messages.pop(0)
            await self.hang_up.wait()
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            if message["type"] == "http.response.start":
                answer.status = message["status"]
                answer.headers = {key.decode(): value.decode() for key, value in message["headers"]}
            else:
                answer.body += message["body"]

        fields = [(key.lower().encode(), value.encode()) for key, value in (headers or {}).items()]
        await self._app({"type": "http", "method": method, "path": path, "headers": fields}, receive, send)
        return answer

    async def add(self, body: Any, **headers: str) -> Answer:
        """An inference request to `add`; underscores of the headers' names stand for dashes."""
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        named = {key.replace("_", "-"): value for key, value in headers.items()}
        return await self.send("POST", "/v2/models/add/infer", raw, headers=named)
