"""A request's body, read within its limit of size."""

from __future__ import annotations

from collections.abc import Mapping

from starlette.types import Receive

from serve_app.protocol.limits import Limits
from serve_app.protocol.refusals import too_large


async def read_body(headers: Mapping[str, str], receive: Receive, limits: Limits, gone: Exception) -> bytes:
    """Refusal where it is too large; `gone` where the client hangs up."""
    said = headers.get("content-length", "")
    if said.isascii() and said.isdigit() and int(said[:18]) > limits.body:
        raise _too_large(limits)
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise gone
        part = message.get("body", b"")
        size += len(part)
        if size > limits.body:
            raise _too_large(limits)
        parts.append(part)
        if not message.get("more_body", False):
            return parts[0] if len(parts) == 1 else b"".join(parts)


def _too_large(limits: Limits) -> Exception:
    return too_large(f"the request is larger than {limits.body:,} bytes")
