"""Whatever a client sends, the server answers in frames, and ends: no exception leaves it, and nothing piles up."""

from __future__ import annotations

import asyncio
import itertools
import logging
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from serve_app.http2 import frames
from serve_app.http2.connection import MOST_STREAMS
from serve_app.http2.frames import frame
from serve_app.http2.headers import HARD_HEADER_LIMIT
from serve_app.http2.rules import LARGEST_FRAME
from tests.http2.peer import AGREED, GREETING, LIMIT, REQUEST, Peer, data, prefixed, settle

FUZZ = settings(max_examples=400)
streams = st.sampled_from([0, 1, 1, 1, 2, 3, 3, 5, 7, 2**31 - 1])
flags = st.sampled_from([0, 1, 4, 5, 8, 9, 12, 13, 0x20, 0x24, 0x25, 0x2D, 255])
numbers = st.sampled_from([0, 1, 100, 65_535, 2**30, 2**31 - 1, 2**31, 2**32 - 1]).map(lambda n: n.to_bytes(4, "big"))
parameters = st.tuples(st.integers(0, 8), numbers).map(lambda pair: pair[0].to_bytes(2, "big") + pair[1])
paths = st.sampled_from(["/test/Echo", "/test/Hold", "/test/Chat", "/test/Large", "/test/Burst", "/test/No", ""])
names = st.sampled_from(
    ["grpc-timeout", "grpc-encoding", "content-length", "te", "x-tier", "connection", "X", ":path", "", ":status"]
)
values = st.sampled_from(["", "1m", "20S", "gzip", "5", "10", "trailers", "a\n", "\xe9", "x" * 300])
messages = st.sampled_from([b"", b"5", b"70000", b"hello" * 40])


@st.composite
def blocks(draw: Any) -> bytes:
    """Headers, most of them a request's."""
    fields = [*{**REQUEST, ":path": draw(paths)}.items(), *draw(st.lists(st.tuples(names, values), max_size=2))]
    if draw(st.integers(0, 4)) == 0:
        fields = draw(st.permutations(fields))[: draw(st.integers(0, len(fields)))]
    peer = draw(st.sampled_from(["indexing", "plain"]))
    plain = b"".join(b"\0" + _text(name) + _text(value) for name, value in fields)
    return plain if peer == "plain" else b"".join(b"\x40" + _text(n) + _text(v) for n, v in fields) + b"\xbe"


def _text(text: str) -> bytes:
    raw = text.encode("latin-1")
    return (bytes([len(raw)]) if len(raw) < 127 else b"\x7f\xad\1") + (raw if len(raw) < 127 else raw[:300])


payloads = (
    st.binary(max_size=20)
    | numbers
    | st.lists(parameters, max_size=3).map(b"".join)
    | st.tuples(messages, st.integers(0, 2)).map(lambda pair: prefixed(*pair))
    | blocks()
)
kinds = st.integers(0, 12)
anything = st.builds(frame, kinds, flags, streams, payloads)
requests = st.builds(
    lambda block, stream, message, end: (
        frame(frames.HEADERS, frames.END_HEADERS, stream, block) + data(stream, prefixed(message), end=end)
    ),
    blocks(),
    st.sampled_from([1, 3, 5, 7, 9]),
    messages,
    st.booleans(),
)
rooms = st.builds(lambda stream, more: frame(frames.WINDOW_UPDATE, 0, stream, more), streams, numbers)
cut = st.integers(1, 40).flatmap(lambda size: st.builds(lambda whole: whole[:size], anything))


class Faults(logging.Handler):
    """What should not have been logged."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.found: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.found.append(record.getMessage())


def run(parts: list[bytes], **more: Any) -> None:
    faults = Faults()
    logging.getLogger().addHandler(faults)
    logging.getLogger("ray.serve").addHandler(faults)
    try:
        asyncio.run(_send(parts, **more))
    finally:
        logging.getLogger().removeHandler(faults)
        logging.getLogger("ray.serve").removeHandler(faults)
    assert faults.found == []


async def _send(parts: list[bytes], *, greets: bytes, agrees: bool, cuts: list[int]) -> None:
    peer = Peer(greets=False)
    sent = greets + (AGREED if agrees else b"") + b"".join(parts)
    edges = [0, *sorted(min(edge, len(sent)) for edge in cuts), len(sent)]
    for at, edge in itertools.pairwise(edges):
        peer.send(sent[at:edge])
        await settle()
    connection = peer.connection
    assert len(connection.streams) <= MOST_STREAMS
    assert connection._reader.held <= LARGEST_FRAME + 9 + HARD_HEADER_LIMIT
    assert sum(stream.held for stream in connection.streams.values()) <= 2 * (LIMIT + 5) + 65_535 * MOST_STREAMS
    assert connection.reserve.taken == sum(stream.reserved for stream in connection.streams.values())
    assert connection.outbox.unsent == sum(len(stream.unsent) for stream in connection.streams.values())
    _check_answers(peer)
    for later in (1, 30, 30, 400, 30):
        peer.check(later)
    await settle()
    assert peer.transport.is_ended or peer.transport.is_aborted
    await peer.end()
    assert connection.working == 0
    assert connection.streams == {}


def _check_answers(peer: Peer) -> None:
    """What was written is whole frames that a client may get, the end of a stream the last on it."""
    over: set[int] = set()
    for each in peer.read():
        assert each.kind in (0, 1, 3, 4, 6, 7, 8)
        assert len(each.payload) <= frames.LARGEST_FRAME
        if each.kind in (frames.DATA, frames.HEADERS):
            assert each.stream % 2 == 1
            assert each.stream not in over
        if each.kind in (frames.DATA, frames.HEADERS) and each.flags & frames.END_STREAM:
            over.add(each.stream)
    assert peer._at == len(peer.transport.written)


@FUZZ
@given(
    parts=st.lists(requests | anything | rooms, max_size=12),
    agrees=st.booleans(),
    cuts=st.lists(st.integers(0, 2000), max_size=4),
)
def test_any_frames(parts: list[bytes], agrees: bool, cuts: list[int]) -> None:
    run(parts, greets=GREETING, agrees=agrees, cuts=cuts)


@FUZZ
@given(
    parts=st.lists(st.binary(max_size=200) | cut, max_size=4), greets=st.sampled_from([b"", GREETING[:24], GREETING])
)
def test_any_bytes(parts: list[bytes], greets: bytes) -> None:
    run(parts, greets=greets, agrees=False, cuts=[30, 60])


def test_what_the_fuzz_starts_from_is_answered() -> None:
    async def ask() -> None:
        peer = Peer(greets=False)
        plain = b"".join(b"\0" + _text(name) + _text(value) for name, value in REQUEST.items())
        peer.send(
            GREETING, AGREED, frame(frames.HEADERS, frames.END_HEADERS, 1, plain), data(1, prefixed(b"x"), end=True)
        )
        assert (await peer.answer(1))[1] == prefixed(b"x")
        await peer.end()

    asyncio.run(ask())
