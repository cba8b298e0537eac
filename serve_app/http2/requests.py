"""What HTTP/2 demands of a request's headers (RFC 9113 §8.2 and 8.3), whatever they ask for."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from serve_app.http2.headers import Fields

_NAME = re.compile(rb"[!#$%&'*+\-.^_`|~0-9a-z]+")
_VALUE = re.compile(rb"(?![ \t])[^\0\r\n]*(?<![ \t])")
_PSEUDO = (b":method", b":scheme", b":authority", b":path")
_OF_CONNECTIONS = (b"connection", b"keep-alive", b"proxy-connection", b"transfer-encoding", b"upgrade")


class MalformedRequest(Exception):
    """Why it is none."""


@dataclass(frozen=True)
class Request:
    """A request's head. Values are text of one character a byte; `headers` are in the order in which they came."""

    method: str
    path: str
    headers: Sequence[tuple[str, str]]
    content_length: int | None


def request_of(fields: Fields) -> Request:
    """MalformedRequest where the fields are no request's."""
    pseudo: dict[bytes, str] = {}
    headers: list[tuple[str, str]] = []
    for name, value in fields:
        if name[:1] == b":":
            if headers or name in pseudo or name not in _PSEUDO:
                raise MalformedRequest("a pseudo-header that comes late or twice, or that there is not")
            if not _VALUE.fullmatch(value):
                raise MalformedRequest("a value that no header can have")
            pseudo[name] = value.decode("latin-1")
        else:
            headers.append(_header(name, value))
    _check_pseudo(pseudo)
    lengths = [value for name, value in headers if name == "content-length"]
    if len(lengths) > 1 or not all(re.fullmatch("[0-9]{1,15}", value) for value in lengths):
        raise MalformedRequest("a content-length that is none")
    return Request(pseudo[b":method"], pseudo.get(b":path", ""), headers, int(lengths[0]) if lengths else None)


def check_trailers(fields: Fields) -> None:
    """MalformedRequest where these cannot follow a request's body."""
    for name, value in fields:
        _header(name, value)


def _header(name: bytes, value: bytes) -> tuple[str, str]:
    if not _NAME.fullmatch(name) or not _VALUE.fullmatch(value):
        raise MalformedRequest("a name or value that no header can have")
    if name in _OF_CONNECTIONS or (name == b"te" and value.lower() != b"trailers"):
        raise MalformedRequest("a header about the connection")
    return name.decode("latin-1"), value.decode("latin-1")


def _check_pseudo(given: Mapping[bytes, str]) -> None:
    if given.get(b":method") == "CONNECT":
        complete = given.keys() == {b":method", b":authority"}
    else:
        complete = all(given.get(name) for name in (b":method", b":scheme", b":path"))
    if not complete:
        raise MalformedRequest("a request without method, scheme or path")
