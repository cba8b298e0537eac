"""What every HTTP request meets: it gets a name, goes to the API or to the protocol, and leaves a line in the log."""

from __future__ import annotations

import logging
import time

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from serve_app import request_log
from serve_app.http.problems import problem_response
from serve_app.identity import ID, repeated, request_id_of
from serve_app.problem import Problem

logger = logging.getLogger("ray.serve")
_ID = ID.encode()
# Asked every few seconds by whatever watches the service.
_UNLOGGED = ("/healthz", "/readyz", "/v2/health/live", "/v2/health/ready")


class Front:
    """`api` gets every path but /v2, which is for `protocol`; the scope's state has their `request_id` and `arrived`.

    `arrived` is in seconds since the epoch. An id that cannot be used is the protocol's own to refuse, in its own form.
    """

    def __init__(self, api: ASGIApp, protocol: ASGIApp):
        self._api = api
        self._protocol = protocol

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        exchange = _Exchange(scope, receive, send)
        try:
            if _is_protocols(scope):
                try:
                    exchange.take_name()
                except Problem:
                    scope["state"]["request_id"] = None
                await self._protocol(scope, exchange.receive, exchange.send)
                return
            exchange.take_name()
            # The server itself leaves out the body of an answer to HEAD.
            asked = {**scope, "method": "GET"} if scope["method"] == "HEAD" else scope
            await self._api(asked, exchange.receive, exchange.send)
        except Problem as problem:
            await exchange.answer(problem)
        except Exception:
            logger.exception("request %s failed", exchange.request_id)
            await exchange.answer(internal_error(exchange.request_id))
        finally:
            exchange.log()


def internal_error(request_id: str) -> Problem:
    return Problem(500, "internal_error", f"the service failed; its log has the cause under request {request_id}")


def _is_protocols(scope: Scope) -> bool:
    path: str = scope["path"][len(scope.get("root_path", "")) :]
    return path == "/v2" or path.startswith("/v2/")


class _Exchange:
    """A request and its answer, on their way through."""

    def __init__(self, scope: Scope, receive: Receive, send: Send):
        self._scope = scope
        self._receive = receive
        self._send = send
        self._asked = self._whole = False
        self._status = 0
        self._began = time.perf_counter()
        self.request_id = request_id_of(None)
        scope.setdefault("state", {}).update(request_id=self.request_id, arrived=time.time())

    def take_name(self) -> None:
        """Problem 400 where the client gives one that cannot be used."""
        given = [value for key, value in self._scope["headers"] if key == _ID]
        if len(given) > 1:
            raise repeated("X-Request-ID")
        if given:
            self.request_id = self._scope["state"]["request_id"] = request_id_of(given[0].decode("latin-1"))

    async def receive(self) -> Message:
        self._asked = True
        message = await self._receive()
        self._whole = self._whole or not message.get("more_body", False)
        return message

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._status = message["status"]
            headers = []
            for key, value in message["headers"]:
                if key == _ID:  # of the protocol, which names what has an unfit name
                    self.request_id = value.decode()
                else:
                    headers.append((key, value))
            headers.append((_ID, self.request_id.encode()))
            if not self._whole and self._is_to_close():
                headers.append((b"connection", b"close"))
            message = {**message, "headers": headers}
        await self._send(message)

    def _is_to_close(self) -> bool:
        """Whether the rest of the body will never come, or takes for ever."""
        headers = dict(self._scope["headers"])
        if b"expect" in headers and not self._asked:
            return True
        has_body = headers.get(b"content-length", b"0") != b"0" or b"transfer-encoding" in headers
        return self._status == 504 and has_body

    async def answer(self, problem: Problem) -> None:
        if not self._status:
            await problem_response(problem, self.request_id)(self._scope, self.receive, self.send)

    def log(self) -> None:
        path = self._scope["path"][len(self._scope.get("root_path", "")) :]
        if path in _UNLOGGED:
            return
        # As the client has it, where there is no such path, it may be anything.
        shown = "(no such path)" if self._status == 404 else self._scope["raw_path"].decode("latin-1")
        took = time.perf_counter() - self._began
        request_log.write(self._scope["method"], shown, self._status or "(gone)", took, self.request_id)
