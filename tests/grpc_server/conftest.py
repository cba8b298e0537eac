"""The client without a network, as HTTP/2's tests have it."""

from __future__ import annotations

from tests.http2.conftest import peer

__all__ = ["peer"]
