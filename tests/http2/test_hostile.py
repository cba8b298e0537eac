"""What a hostile client can do to a connection, and the error of RFC 9113 that each of it ends in."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable

import pytest

from serve_app.http2 import connection, frames, patience
from serve_app.http2.frames import (
    CONTINUATION,
    DATA,
    END_HEADERS,
    END_STREAM,
    GOAWAY,
    HEADERS,
    PADDED,
    PING,
    PREFACE,
    PRIORITY,
    PUSH_PROMISE,
    RST_STREAM,
    SETTINGS,
    WINDOW_UPDATE,
    WITH_PRIORITY,
    ErrorCode,
    frame,
)
from serve_app.http2.headers import HARD_HEADER_LIMIT, HEADER_LIMIT
from serve_app.http2.reading import HEAD_TIMEOUT_S
from serve_app.http2.rules import LARGEST_FRAME
from tests.http2.peer import AGREED, GREETING, Peer, data, prefixed, reset, settle, window

PROTOCOL, SIZE, FLOW, CLOSED, COMPRESSION, CALM = (
    ErrorCode.PROTOCOL_ERROR,
    ErrorCode.FRAME_SIZE_ERROR,
    ErrorCode.FLOW_CONTROL_ERROR,
    ErrorCode.STREAM_CLOSED,
    ErrorCode.COMPRESSION_ERROR,
    ErrorCode.ENHANCE_YOUR_CALM,
)
PARAMETER = struct.Struct(">HI")


def head_only(kind: int, length: int, stream: int = 0, flags: int = 0) -> bytes:
    """Only a frame's first nine bytes: it is judged before its payload comes."""
    return frames.frame_head(length, kind, flags, stream)


# -- before anything else


@pytest.mark.parametrize(
    "begins",
    [
        b"GET / HTTP/1.1\r\nHost: a\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n",
        b"\x16\x03\x01\x02\0\1\0\1\xfc\3\3",
        PREFACE + frame(PING, 0, 0, bytes(8)),
        PREFACE + AGREED,
    ],
    ids=["HTTP/1", "another preface", "TLS", "no settings first", "an acknowledgement first"],
)
async def test_what_does_not_begin_as_http2_is_hung_up_on(begins: bytes) -> None:
    peer = Peer(greets=False)
    peer.send(begins)
    assert peer.connection_error() is PROTOCOL
    await peer.end()


@pytest.mark.parametrize("cut", [1, 23, 24, 30])
async def test_a_greeting_that_is_trickled_ends_at_its_time(cut: int) -> None:
    peer = Peer(greets=False)
    peer.send(GREETING[:cut])
    peer.check(HEAD_TIMEOUT_S - 1)
    assert not peer.transport.is_ended
    peer.check(2)
    assert peer.connection_error() is PROTOCOL
    await peer.end()


async def test_a_client_that_says_nothing_is_hung_up_on() -> None:
    peer = Peer(greets=False)
    peer.check(HEAD_TIMEOUT_S + 1)
    assert peer.connection_error() is PROTOCOL
    assert not peer.transport.is_aborted
    peer.check(connection.LINGER_S + 1)
    assert peer.transport.is_aborted
    await settle()


async def test_settings_that_are_never_acknowledged_end_the_connection() -> None:
    peer = Peer(greets=False)
    peer.send(GREETING)
    peer.check(2 * HEAD_TIMEOUT_S + 1)
    assert peer.connection_error() is ErrorCode.SETTINGS_TIMEOUT
    await peer.end()


# -- frames that end the connection

TOO_LONG = LARGEST_FRAME + 1
OF_CONNECTIONS: dict[str, tuple[bytes, ErrorCode]] = {
    "a frame larger than allowed": (head_only(DATA, TOO_LONG, 1), SIZE),
    "an unknown frame larger than allowed": (head_only(77, TOO_LONG), SIZE),
    "headers larger than worth reading": (head_only(HEADERS, HARD_HEADER_LIMIT + 1, 1), CALM),
    "data on no stream": (frame(DATA, 0, 0, b"x"), PROTOCOL),
    "headers on no stream": (frame(HEADERS, END_HEADERS, 0, b"\x82"), PROTOCOL),
    "a reset of no stream": (frame(RST_STREAM, 0, 0, bytes(4)), PROTOCOL),
    "a priority of no stream": (frame(PRIORITY, 0, 0, bytes(5)), PROTOCOL),
    "a continuation on no stream": (frame(CONTINUATION, 0, 0), PROTOCOL),
    "data on an idle stream": (data(7, b"x"), PROTOCOL),
    "data on an even stream": (data(2, b"x"), PROTOCOL),
    "headers on an even stream": (frame(HEADERS, END_HEADERS, 2, b"\x83\x86\x84"), PROTOCOL),
    "a reset of an idle stream": (reset(7), PROTOCOL),
    "room on an idle stream": (window(7, 1), PROTOCOL),
    "a continuation of nothing": (frame(CONTINUATION, END_HEADERS, 1), PROTOCOL),
    "a promise": (frame(PUSH_PROMISE, END_HEADERS, 1, bytes(4)), PROTOCOL),
    "settings on a stream": (frame(SETTINGS, 0, 1), PROTOCOL),
    "settings cut": (frame(SETTINGS, 0, 0, bytes(5)), SIZE),
    "an acknowledgement with settings": (frame(SETTINGS, 1, 0, bytes(6)), SIZE),
    "very many settings": (frame(SETTINGS, 0, 0, bytes(6 * 33)), CALM),
    "push neither on nor off": (frame(SETTINGS, 0, 0, PARAMETER.pack(2, 2)), PROTOCOL),
    "an initial window too large": (frame(SETTINGS, 0, 0, PARAMETER.pack(4, 2**31)), FLOW),
    "frames too small": (frame(SETTINGS, 0, 0, PARAMETER.pack(5, 2**14 - 1)), PROTOCOL),
    "frames too large": (frame(SETTINGS, 0, 0, PARAMETER.pack(5, 2**24)), PROTOCOL),
    "a ping on a stream": (frame(PING, 0, 1, bytes(8)), PROTOCOL),
    "a ping cut": (frame(PING, 0, 0, bytes(7)), SIZE),
    "a farewell on a stream": (frame(GOAWAY, 0, 1, bytes(8)), PROTOCOL),
    "a farewell cut": (frame(GOAWAY, 0, 0, bytes(7)), SIZE),
    "a reset cut": (frame(RST_STREAM, 0, 1, bytes(3)), SIZE),
    "a priority cut": (frame(PRIORITY, 0, 1, bytes(4)), SIZE),
    "room cut": (frame(WINDOW_UPDATE, 0, 0, bytes(3)), SIZE),
    "no more room": (window(0, 0), PROTOCOL),
    "more room than there can be": (window(0, 2**31 - 1), FLOW),
    "headers that cannot be decompressed": (frame(HEADERS, END_HEADERS, 1, b"\xff\xff\xff\xff"), COMPRESSION),
    "headers from a table that is empty": (frame(HEADERS, END_HEADERS, 1, b"\xbe"), COMPRESSION),
    "a table larger than allowed": (frame(HEADERS, END_HEADERS, 1, b"\x3f\xe1\x1f\x82"), COMPRESSION),
    "padding without its length": (frame(DATA, PADDED, 1), SIZE),
    "headers' padding as long as the frame": (frame(HEADERS, PADDED | END_HEADERS, 1, b"\3\0\0"), PROTOCOL),
    "headers' padding without its length": (frame(HEADERS, PADDED | END_HEADERS, 1), SIZE),
    "headers' priority cut": (frame(HEADERS, WITH_PRIORITY | END_HEADERS, 1, bytes(4)), SIZE),
}


@pytest.mark.parametrize(("sent", "code"), OF_CONNECTIONS.values(), ids=OF_CONNECTIONS)
async def test_what_ends_the_connection(peer: Peer, sent: bytes, code: ErrorCode) -> None:
    peer.send(sent)
    assert peer.connection_error() is code
    peer.send(b"whatever comes then " * 100)
    assert peer.read() == []


async def test_padding_as_long_as_the_data_ends_the_connection(peer: Peer) -> None:
    stream = peer.open()
    peer.send(frame(DATA, PADDED, stream, b"\4abc"))
    assert peer.connection_error() is PROTOCOL


@pytest.mark.parametrize(
    "between",
    [frame(PING, 0, 0, bytes(8)), frame(CONTINUATION, END_HEADERS, 3), frame(200, 0, 1), frame(HEADERS, 4, 3, b"\x82")],
    ids=["a ping", "another stream's", "an unknown frame", "other headers"],
)
async def test_headers_are_not_interrupted(peer: Peer, between: bytes) -> None:
    peer.send(frame(HEADERS, 0, 1, b"\x83"), between)
    assert peer.connection_error() is PROTOCOL


async def test_streams_have_rising_numbers(peer: Peer) -> None:
    peer.send(peer.headers(5), peer.headers(3))
    assert peer.connection_error() is PROTOCOL


async def test_headers_on_a_stream_that_is_over_end_the_connection(peer: Peer) -> None:
    stream = peer.request()
    await peer.answer(stream)
    peer.send(peer.headers(stream))
    assert peer.connection_error() is CLOSED


async def test_more_data_than_the_connections_window_ends_it(peer: Peer) -> None:
    peer.connection._credit = 10
    stream = peer.open()
    peer.send(data(stream, bytes(11)))
    assert peer.connection_error() is FLOW


async def test_windows_that_settings_make_too_large_end_the_connection(peer: Peer) -> None:
    stream = peer.open("Hold")
    peer.send(window(stream, 2**31 - 1 - 65_535), frame(SETTINGS, 0, 0, PARAMETER.pack(4, 65_536)))
    assert peer.connection_error() is FLOW


# -- headers without an end


async def test_headers_of_endless_continuations_end_the_connection(peer: Peer) -> None:
    peer.send(frame(HEADERS, 0, 1, b"\x83"))
    for _ in range(100):
        if not peer.transport.is_ended:
            peer.send(frame(CONTINUATION, 0, 1))
    assert peer.connection_error() is CALM


async def test_continuations_of_more_bytes_than_headers_have_end_the_connection(peer: Peer) -> None:
    peer.send(frame(HEADERS, 0, 1, b"\0"))
    for _ in range(3):
        if not peer.transport.is_ended:
            peer.send(frame(CONTINUATION, 0, 1, bytes(HARD_HEADER_LIMIT // 2)))
    assert peer.connection_error() is CALM


@pytest.mark.parametrize("begun", [frame(HEADERS, 0, 1, b"\x83"), head_only(HEADERS, 100, 1)], ids=["headers", "frame"])
async def test_headers_that_are_trickled_end_the_connection(peer: Peer, begun: bytes) -> None:
    peer.send(begun)
    peer.check(HEAD_TIMEOUT_S - 1)
    assert not peer.transport.is_ended
    peer.check(2)
    assert peer.connection_error() is CALM


async def test_a_body_may_come_slowly_while_its_call_has_time(peer: Peer) -> None:
    stream = peer.open()
    sent = data(stream, prefixed(b"hello"), end=True)
    peer.send(sent[:12])
    for part in sent[12:-1]:
        peer.check(HEAD_TIMEOUT_S + 1)
        peer.send(bytes([part]))
    peer.send(sent[-1:])
    assert (await peer.answer(stream))[1] == prefixed(b"hello")


async def test_large_headers_are_refused_and_larger_ones_end_the_connection(peer: Peer) -> None:
    stream = peer.open(x_large="x" * HEADER_LIMIT)
    status, said = await peer.status(stream)
    assert status == "8"
    assert said.startswith("the headers are larger than 16,384 bytes")
    assert await peer.works()
    bomb = [("x-large", "x" * (HARD_HEADER_LIMIT // 2 - 200))]
    peer.send(peer.fields(9, bomb * 3, END_HEADERS))
    assert peer.connection_error() is CALM


async def test_a_bomb_of_indexed_headers_ends_the_connection() -> None:
    """One large entry of the table, then references to it of a byte each."""
    peer = Peer(greets=False)
    peer.send(GREETING)
    block = bytes(peer.encoder.encode([("x", "y" * 3900)], huffman=False)) + b"\xbe" * 100
    peer.send(frame(HEADERS, END_HEADERS, 1, block))
    assert peer.connection_error() is CALM
    await peer.end()


# -- what ends a stream only

MALFORMED: dict[str, list[tuple[str, str]]] = {}


def malformed(name: str, changes: Callable[[list[tuple[str, str]]], list[tuple[str, str]]]) -> None:
    base = [
        (":method", "POST"), (":scheme", "http"), (":path", "/test/Echo"), ("content-type", "application/grpc"),
    ]  # fmt: skip
    MALFORMED[name] = changes(base)


for missing in (":method", ":scheme", ":path"):
    malformed(f"no {missing}", lambda base, missing=missing: [each for each in base if each[0] != missing])
    malformed(f"{missing} twice", lambda base, missing=missing: [*[e for e in base if e[0] == missing], *base])
malformed("an empty path", lambda base: [(name, "" if name == ":path" else value) for name, value in base])
malformed("a pseudo-header after the others", lambda base: [*base, (":authority", "a")])
malformed("a pseudo-header of answers", lambda base: [(":status", "200"), *base])
malformed("an unknown pseudo-header", lambda base: [(":mine", "x"), *base])
malformed("an uppercase name", lambda base: [*base, ("X-Tier", "bulk")])
malformed("an empty name", lambda base: [*base, ("", "x")])
malformed("a name with a space", lambda base: [*base, ("x y", "x")])
malformed("a value with a line break", lambda base: [*base, ("x-tier", "a\r\nb: c")])
malformed("a value with a zero", lambda base: [*base, ("x-tier", "a\0")])
malformed("a value that begins with a space", lambda base: [*base, ("x-tier", " a")])
malformed("a path with a line break", lambda base: [(n, "/a\nb" if n == ":path" else v) for n, v in base])
for name in ("connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade"):
    malformed(name, lambda base, name=name: [*base, (name, "close")])
malformed("te that is not trailers", lambda base: [*base, ("te", "gzip")])
malformed("a content-length that is none", lambda base: [*base, ("content-length", "-1")])
malformed("two content-lengths", lambda base: [*base, ("content-length", "5"), ("content-length", "5")])
malformed("CONNECT with a path", lambda base: [(n, "CONNECT" if n == ":method" else v) for n, v in base])


@pytest.mark.parametrize("fields", MALFORMED.values(), ids=MALFORMED)
async def test_a_request_that_is_none_is_reset_alone(peer: Peer, fields: list[tuple[str, str]]) -> None:
    peer.send(peer.fields(1, fields))
    assert peer.stream_errors() == {1: PROTOCOL}
    peer._next = 3
    assert await peer.works()


@pytest.mark.parametrize(
    ("length", "body", "ended"),
    [(9, prefixed(b"hello"), True), (11, prefixed(b"hello"), True), (9, prefixed(b"hello"), False)],
)
async def test_a_body_is_as_long_as_its_content_length(peer: Peer, length: int, body: bytes, ended: bool) -> None:
    stream = peer.open(content_length=str(length))
    peer.send(data(stream, body, end=ended))
    assert peer.stream_errors() == {stream: PROTOCOL}
    assert peer.service.asked == []
    assert await peer.works()


async def test_a_request_that_ends_before_its_content_length_is_reset(peer: Peer) -> None:
    peer.send(peer.headers(1, {"content-length": "10"}, flags=END_HEADERS | END_STREAM))
    assert peer.stream_errors() == {1: PROTOCOL}


async def test_more_data_than_the_streams_window_resets_it(peer: Peer) -> None:
    stream = peer.open()
    peer.send(data(stream, bytes(65_536)))
    assert peer.stream_errors() == {stream: FLOW}
    assert await peer.works()


@pytest.mark.parametrize(("more", "code"), [(0, PROTOCOL), (2**31 - 1, FLOW)], ids=["none", "too much"])
async def test_room_that_cannot_be_resets_its_stream(peer: Peer, more: int, code: ErrorCode) -> None:
    stream = peer.request("Hold")
    peer.send(window(stream, more))
    assert peer.stream_errors() == {stream: code}
    await settle()
    assert not peer.server.tasks
    assert await peer.works()


async def test_data_after_the_end_resets_the_stream(peer: Peer) -> None:
    stream = peer.request("Hold")
    await settle()
    peer.send(data(stream, b"more"))
    assert peer.stream_errors() == {stream: CLOSED}
    await settle()
    assert peer.service.cancelled == 1
    assert await peer.works()


async def test_data_on_a_stream_that_is_over_is_answered_with_a_reset(peer: Peer) -> None:
    stream = peer.request()
    await peer.answer(stream)
    peer.send(data(stream, b"more"))
    assert peer.stream_errors() == {stream: CLOSED}
    assert await peer.works()


async def test_headers_after_the_end_reset_the_stream(peer: Peer) -> None:
    stream = peer.request("Hold")
    peer.send(peer.fields(stream, [("x", "y")], END_HEADERS | END_STREAM))
    assert peer.stream_errors() == {stream: CLOSED}


@pytest.mark.parametrize(
    ("fields", "flags"),
    [
        ([("x", "y")], END_HEADERS),
        ([(":path", "/")], END_HEADERS | END_STREAM),
        ([("connection", "close")], END_HEADERS | END_STREAM),
    ],
    ids=["without an end", "with a path", "about the connection"],
)
async def test_trailers_that_are_none_reset_the_stream(peer: Peer, fields: list[tuple[str, str]], flags: int) -> None:
    stream = peer.open()
    peer.send(data(stream, prefixed(b"hello")), peer.fields(stream, fields, flags))
    assert peer.stream_errors() == {stream: PROTOCOL}
    assert await peer.works()


async def test_trailers_end_a_request(peer: Peer) -> None:
    stream = peer.open()
    peer.send(data(stream, prefixed(b"hello")), peer.fields(stream, [("x", "y")], END_HEADERS | END_STREAM))
    assert (await peer.answer(stream))[1] == prefixed(b"hello")


# -- what means nothing


@pytest.mark.parametrize(
    "sent",
    [
        frame(200, 255, 0, b"?"),
        frame(200, 255, 9, b"?"),
        frame(PRIORITY, 0, 9, bytes(5)),
        frame(PING, 1, 0, b"not ours"),
        frame(SETTINGS, 0, 0, PARAMETER.pack(99, 7)),
        AGREED,
    ],
    ids=[
        "an unknown frame",
        "an unknown frame of a stream",
        "a priority",
        "an echo",
        "an unknown setting",
        "agreed twice",
    ],
)
async def test_what_means_nothing_is_passed_over(peer: Peer, sent: bytes) -> None:
    peer.send(sent)
    assert await peer.works()


async def test_what_comes_late_for_a_stream_that_was_reset_is_passed_over(peer: Peer) -> None:
    stream = peer.open("Nowhere")
    assert (await peer.status(stream))[0] == "12"
    peer.read()
    peer.send(data(stream, prefixed(b"hello")), window(stream, 5), peer.fields(stream, [("x", "y")], 5), reset(stream))
    assert peer.read() == []
    assert await peer.works()


async def test_a_ping_has_its_echo(peer: Peer) -> None:
    peer.send(frame(PING, 0, 0, b"12345678"))
    assert [(each.flags, each.payload) for each in peer.read()] == [(1, b"12345678")]


# -- floods

FLOODS: dict[str, Callable[[Peer, int], bytes]] = {
    "pings": lambda peer, _: frame(PING, 0, 0, bytes(8)),
    "echoes": lambda peer, _: frame(PING, 1, 0, bytes(8)),
    "settings": lambda peer, _: frame(SETTINGS, 0, 0),
    "acknowledgements": lambda peer, _: AGREED,
    "priorities": lambda peer, _: frame(PRIORITY, 0, 1, bytes(5)),
    "unknown frames": lambda peer, _: frame(200, 0, 0),
    "empty data": lambda peer, stream: data(stream, b""),
    "crumbs": lambda peer, stream: data(stream, b"\0"),
    "data for nobody": lambda peer, stream: data(1, b""),
    "room": lambda peer, stream: window(stream, 1),
    "resets of nothing": lambda peer, stream: reset(1),
}


@pytest.mark.parametrize("flood", FLOODS.values(), ids=FLOODS)
async def test_a_flood_of_what_is_of_no_use_ends_the_connection(
    peer: Peer, flood: Callable[[Peer, int], bytes]
) -> None:
    first = peer.request()
    assert first == 1
    await peer.answer(first)
    stream = peer.open("Chat")
    peer.send(data(stream, prefixed(bytes(500_000))[:200]))
    for _ in range(30):
        if not peer.transport.is_ended:
            peer.send(flood(peer, stream) * 1000)
            await settle()
    assert peer.connection_error() is CALM


async def test_requests_that_are_given_up_at_once_end_the_connection(peer: Peer) -> None:
    """CVE-2023-44487. Their work does not pile up meanwhile."""
    for _ in range(1100):
        if not peer.transport.is_ended:
            peer.send(reset(peer.request("Hold")))
            assert len(peer.server.tasks) <= connection.MOST_STREAMS
    assert peer.connection_error() is CALM
    await settle()
    assert not peer.server.tasks


async def test_a_request_of_which_work_goes_on_counts_until_it_has_ended(peer: Peer) -> None:
    peer.connection.working = connection.MOST_STREAMS
    assert peer.request() == 1
    assert peer.stream_errors() == {1: ErrorCode.REFUSED_STREAM}
    peer.connection.working = 0


async def test_patience_comes_back_with_time_and_with_work(peer: Peer) -> None:
    for _ in range(20):
        peer.send(frame(PING, 0, 0, bytes(8)) * (patience.MOST // 10))
        peer.now += 10
        peer.read()
    for _ in range(patience.MOST // 4 + 100):
        peer.send(window(0, 1) * 4)
        await peer.answer(peer.request())
    assert await peer.works()


async def test_more_streams_than_allowed_are_refused(peer: Peer) -> None:
    for _ in range(connection.MOST_STREAMS):
        peer.open("Hold")
    assert peer.stream_errors() == {}
    over = peer.open("Hold")
    assert peer.stream_errors() == {over: ErrorCode.REFUSED_STREAM}
    peer.send(reset(1))
    assert await peer.works()


# -- clients that do not read


async def test_a_client_that_asks_and_does_not_read_is_hung_up_on(peer: Peer) -> None:
    peer.transport.is_read = False
    for _ in range(2000):
        if not peer.transport.is_aborted:
            peer.send(frame(PING, 0, 0, bytes(8)) * 50)
            peer.now += 1
            peer.connection.outbox.flush()
    assert peer.transport.is_aborted
    assert peer.transport.unread < 2 * 2**20


async def test_answers_that_are_not_read_are_bounded(peer: Peer) -> None:
    """The bodies wait for room that never comes; then no request is taken any more, and they are given up."""
    peer.send(frame(SETTINGS, 0, 0, PARAMETER.pack(4, 0)))
    streams = [peer.request("Large", b"1000000") for _ in range(2)]
    await settle()
    assert peer.connection.outbox.unsent == 2 * 1_000_005
    streams.append(peer.request("Large", b"1000000"))
    await settle()
    over = peer.request("Large", b"1000000")
    assert peer.stream_errors() == {over: ErrorCode.REFUSED_STREAM}
    peer.check(1)
    peer.check(connection.STALL_S + 1)
    assert peer.stream_errors() == dict.fromkeys(streams, ErrorCode.CANCEL)
    assert peer.connection.outbox.unsent == 0


async def test_a_stream_waits_for_a_client_that_does_not_read(peer: Peer) -> None:
    peer.send(window(0, 2**30))
    stream = peer.open("Burst")
    await asyncio.sleep(0.01)
    written = peer.service.written
    assert written == 65_535 // 1005
    peer.send(window(stream, 10_050))
    await asyncio.sleep(0.01)
    assert peer.service.written == written + 10
    peer.check(1)
    peer.check(connection.STALL_S + 1)
    assert peer.stream_errors() == {}
    peer.send(reset(stream))
    await settle()
    assert peer.service.cancelled == 1


async def test_a_connection_that_fails_says_nothing_more(peer: Peer) -> None:
    """Although the end of one call makes room for another."""
    streams = [peer.open() for _ in range(4)]
    peer.send(*(data(stream, prefixed(bytes(2**20))[:10]) for stream in streams))
    assert peer.connection.reserve._waiting
    peer.send(window(0, 0))
    assert peer.connection_error() is PROTOCOL
    await settle()
    assert peer.read() == []


# -- clients that are gone


async def test_a_client_that_hangs_up_cancels_its_calls(peer: Peer) -> None:
    peer.request("Hold")
    peer.request("Hold")
    await settle()
    peer.transport.abort()
    await settle()
    assert peer.service.cancelled == 2


async def test_a_client_that_vanished_is_found_out(peer: Peer) -> None:
    peer.request("Hold")
    await settle()
    peer.check(connection.PING_AFTER_S + 1)
    (ping,) = [each for each in peer.read() if each.kind == PING]
    peer.check(connection.PING_TIMEOUT_S - 1)
    assert not peer.transport.is_aborted
    peer.send(frame(PING, 1, 0, ping.payload))
    peer.check(2)
    assert not peer.transport.is_aborted
    peer.check(connection.PING_AFTER_S + 1)
    peer.check(connection.PING_TIMEOUT_S + 1)
    await settle()
    assert peer.service.cancelled == 1


async def test_a_connection_that_is_not_used_is_ended_in_order(peer: Peer) -> None:
    peer.check(connection.IDLE_S - 1)
    assert not [each for each in peer.read() if each.kind == GOAWAY]
    peer.send(frame(PING, 1, 0, b"are you?"))
    peer.check(2)
    goaway, last_call = [each for each in peer.read() if each.kind in (GOAWAY, PING)]
    assert goaway.payload == (2**31 - 1).to_bytes(4, "big") + bytes(4)
    peer.send(frame(PING, 1, 0, last_call.payload))
    assert peer.connection_error() is ErrorCode.NO_ERROR
