"""What a request's headers ask for, by gRPC's rules."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from serve_app.grpc_server.methods import Metadata, Method
from serve_app.grpc_server.status import ENCODINGS, HEAD, failure, http_status
from serve_app.http2.headers import HEADER_LIMIT, Fields, list_size
from serve_app.http2.requests import MalformedRequest, Request, request_of
from serve_app.protocol.refusals import Code, Refusal, invalid, too_large

_TIMEOUT = re.compile(r"([0-9]{1,8})([HMSmun])")
_SECONDS = {"H": 3600.0, "M": 60.0, "S": 1.0, "m": 1e-3, "u": 1e-6, "n": 1e-9}
_RESERVED = re.compile("grpc-.*|te|content-(type|length)|user-agent")
_CONTENT_TYPE = re.compile(r"application/grpc(\+proto)?\s*(;.*)?", re.IGNORECASE)


@dataclass(frozen=True)
class Asked:
    """A call. `timeout` is in seconds, and `length` the content-length, where the client says them."""

    method: Method
    timeout: float | None
    encoding: str
    metadata: Metadata
    length: int | None


@dataclass(frozen=True)
class Answered:
    """What needs no more than headers for an answer; `outcome` is for the log."""

    block: bytes
    outcome: str


class Malformed:
    """No request."""


class Heads:
    """Reads them for the methods by their paths."""

    def __init__(self, methods: Mapping[str, Method]):
        self._methods = methods

    def understand(self, fields: Fields) -> Asked | Answered | Malformed:
        try:
            request = request_of(fields)
        except MalformedRequest:
            return Malformed()
        headers = dict(request.headers)
        if request.method != "POST":
            return Answered(http_status(405, allow="POST"), "405")
        if not _CONTENT_TYPE.fullmatch(headers.get("content-type", "")):
            return Answered(http_status(415, accept="application/grpc"), "415")
        try:
            if list_size(fields) > HEADER_LIMIT:
                raise too_large(f"the headers are larger than {HEADER_LIMIT:,} bytes; send fewer")
            return self._asked(request, headers)
        except Refusal as refusal:
            return Answered(HEAD + failure(refusal, (), HEADER_LIMIT), refusal.code.name)

    def _asked(self, request: Request, headers: Mapping[str, str]) -> Asked:
        method = self._methods.get(request.path)
        if method is None:
            raise Refusal(Code.UNIMPLEMENTED, "there is no such method here")
        encoding = headers.get("grpc-encoding", "identity")
        if encoding not in ENCODINGS:
            raise Refusal(Code.UNIMPLEMENTED, f"this grpc-encoding is not known; use one of {', '.join(ENCODINGS)}")
        metadata = [(name, value) for name, value in request.headers if not _RESERVED.fullmatch(name)]
        return Asked(method, _timeout(headers.get("grpc-timeout")), encoding, metadata, request.content_length)


def _timeout(given: str | None) -> float | None:
    if given is None:
        return None
    found = _TIMEOUT.fullmatch(given)
    if found is None:
        raise invalid("the grpc-timeout is none; send up to 8 digits and a unit, as 2500m")
    return int(found[1]) * _SECONDS[found[2]]
