"""A client without a network, whose server has nothing in the log but requests when a test ends."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator

import pytest

from tests.http2.peer import Peer


@pytest.fixture
async def peer(caplog: pytest.LogCaptureFixture) -> AsyncIterator[Peer]:
    peer = Peer()
    peer.read()
    yield peer
    await peer.end()
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []
