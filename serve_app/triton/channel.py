"""Unary gRPC calls to a Triton server, over a connection that is made when it is needed; gRPC's own channels for all
other calls.

Source: gRPC over HTTP/2 (grpc/doc/PROTOCOL-HTTP2.md).
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, TypeVar
from urllib.parse import unquote

import grpc
from google.protobuf.message import DecodeError, Message

from serve_app.http2.headers import literal
from serve_app.triton.http2 import ConnectionLost, Http2Connection, Response, StreamReset

SERVICE = "/inference.GRPCInferenceService/"
_CODES = {code.value[0]: code for code in grpc.StatusCode}
_RESETS = {7: grpc.StatusCode.UNAVAILABLE, 8: grpc.StatusCode.CANCELLED}
_LONGEST_TIMEOUT_S = 99_999.0
_NO_METADATA: Mapping[str, str] = MappingProxyType({})
_OPTIONS = (
    # The server is on this machine, or named by its address, whatever the environment says about a proxy.
    ("grpc.enable_http_proxy", 0),
    # Each channel has a connection of its own.
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_send_message_length", -1),
)
Answer = TypeVar("Answer", bound=Message)


def grpc_channel(address: str, *more: tuple[str, int]) -> Any:
    """gRPC's own channel to HOST:PORT, in plain text and without limits on messages; `more` are options besides."""
    return grpc.aio.insecure_channel(address, options=(*_OPTIONS, *more))


class CallError(grpc.RpcError):  # type: ignore[misc]  # gRPC has no types
    """A call without an answer: gRPC's status code, and what the server said."""

    def __init__(self, code: grpc.StatusCode, details: str):
        super().__init__(code, details)
        self._code, self._details = code, details

    def code(self) -> grpc.StatusCode:
        return self._code

    def details(self) -> str:
        return self._details


class Channel:
    """Calls to the server at `address`, HOST:PORT, in plain text; a connection that is lost is made anew.

    `metadata` goes with every call.
    """

    def __init__(self, address: str, metadata: Mapping[str, str] = _NO_METADATA):
        self.address = address
        self._metadata = metadata
        self._connection: Http2Connection | None = None
        self._connecting = asyncio.Lock()
        self._heads: dict[str, bytes] = {}

    @property
    def is_lost(self) -> bool:
        """Whether there was a connection, and is none until the next call makes one."""
        return self._connection is not None and not self._connection.accepts

    async def call(self, method: str, request: Message, answer: type[Answer], timeout: float) -> Answer:
        """The answer to a call of Triton's service within `timeout` seconds. CallError where there is none.

        A caller that is cancelled, or whose time is up, cancels the call in the server too.
        """
        until = asyncio.get_running_loop().time() + timeout
        connection = self._connection
        if connection is None or not connection.accepts:
            connection = await self._connect(until)
        content = request.SerializeToString()
        body = (b"\0", len(content).to_bytes(4, "big"), content)
        stream, coming = connection.request(self._head(method, timeout), body)
        due = asyncio.get_running_loop().call_at(until, _end_late, coming)
        try:
            response = await coming
        except ConnectionLost:
            raise CallError(grpc.StatusCode.UNAVAILABLE, f"the connection to {self.address} was lost") from None
        except StreamReset as reset:
            code = _RESETS.get(reset.code, grpc.StatusCode.INTERNAL)
            raise CallError(code, f"the server gave the call up with HTTP/2's code {reset.code}") from None
        finally:
            due.cancel()
            connection.cancel(stream)
        return _message(response, answer)

    def finish(self) -> None:
        """End the connection when the calls on it have ended."""
        if self._connection is not None:
            self._connection.finish()

    def close(self) -> None:
        """End the connection; calls that are not answered fail."""
        if self._connection is not None:
            self._connection.close()

    def _head(self, method: str, timeout: float) -> bytes:
        head = self._heads.get(method)
        if head is None:
            fields = {
                ":method": "POST",
                ":scheme": "http",
                ":path": SERVICE + method,
                ":authority": self.address,
                "te": "trailers",
                "content-type": "application/grpc",
                **self._metadata,
            }
            head = self._heads[method] = b"".join(literal(name, value) for name, value in fields.items())
        return head + literal("grpc-timeout", f"{max(1, int(min(timeout, _LONGEST_TIMEOUT_S) * 1000))}m")

    async def _connect(self, until: float) -> Http2Connection:
        loop = asyncio.get_running_loop()
        host, _, port = self.address.rpartition(":")
        async with self._connecting:
            if self._connection is not None and self._connection.accepts:
                return self._connection
            making = loop.create_connection(Http2Connection, host.strip("[]"), int(port))
            try:
                _, connection = await asyncio.wait_for(making, until - loop.time())
            except asyncio.TimeoutError:
                raise _too_late() from None
            except OSError as error:
                details = f"failed to connect to {self.address}: {error.strerror or error}"
                raise CallError(grpc.StatusCode.UNAVAILABLE, details) from None
            self._connection = connection
            return connection


def _message(response: Response, answer: type[Answer]) -> Answer:
    headers, body = response.headers, response.body
    status = headers.get("grpc-status", "")
    if status != "0":
        known = int(status) if status.isdecimal() else -1
        details = unquote(headers.get("grpc-message", "")) or f"HTTP status {headers.get(':status')} and no message"
        raise CallError(_CODES.get(known, grpc.StatusCode.UNKNOWN), details)
    try:
        if body[:1] != b"\0" or int.from_bytes(body[1:5], "big") != len(body) - 5:
            raise DecodeError("it is cut off, or compressed")
        return answer.FromString(body[5:])
    except DecodeError as error:
        raise CallError(grpc.StatusCode.INTERNAL, f"the server's answer cannot be read: {error}") from None


def _too_late() -> CallError:
    return CallError(grpc.StatusCode.DEADLINE_EXCEEDED, "Deadline Exceeded")


def _end_late(coming: asyncio.Future[Response]) -> None:
    if not coming.done():
        coming.set_exception(_too_late())
