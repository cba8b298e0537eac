"""Calls as gRPC has them, message by message, without a network."""

from __future__ import annotations

import asyncio
import gzip
import itertools
import logging
import struct
import zlib
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serve_app.grpc_server.messages import Messages
from serve_app.grpc_server.status import escaped
from serve_app.http2 import frames
from serve_app.http2.frames import ErrorCode, frame
from serve_app.protocol.refusals import Refusal
from tests.http2.peer import LIMIT, Peer, data, prefixed, settle, window

RESET = {1: ErrorCode.NO_ERROR}


async def test_a_call_has_a_head_an_answer_and_a_status(peer: Peer) -> None:
    head, body, trailers = await peer.answer(peer.request())
    assert head == {
        ":status": "200",
        "content-type": "application/grpc",
        "grpc-accept-encoding": "identity,deflate,gzip",
    }
    assert body == prefixed(b"hello")
    assert trailers == {"grpc-status": "0", "x-request-id": "mine"}


async def test_a_refusal_is_trailers_alone_and_what_is_still_to_come_is_not_wanted(peer: Peer) -> None:
    stream = peer.open("Nowhere")
    head, body, trailers = await peer.answer(stream)
    assert (head[":status"], head["grpc-status"], body, trailers) == ("200", "12", b"", {})
    assert "no such method" in head["grpc-message"]
    peer.open("Nowhere")
    assert peer.stream_errors() == {3: ErrorCode.NO_ERROR}


@pytest.mark.parametrize(
    ("changes", "status", "more"),
    [
        ({":method": "GET"}, "405", {"allow": "POST"}),
        ({":method": "PUT"}, "405", {"allow": "POST"}),
        ({"content-type": None}, "415", {"accept": "application/grpc"}),
        ({"content-type": "application/json"}, "415", {"accept": "application/grpc"}),
        ({"content-type": "application/grpc-web"}, "415", {"accept": "application/grpc"}),
        ({"content-type": "application/grpc+json"}, "415", {"accept": "application/grpc"}),
    ],
)
async def test_what_is_no_grpc_has_a_status_of_http(
    peer: Peer, changes: dict[str, str | None], status: str, more: dict[str, str]
) -> None:
    peer.send(peer.headers(1, changes, flags=5))
    assert (await peer.answer(1))[0] == {":status": status, **more}


@pytest.mark.parametrize("kind", ["application/grpc", "application/grpc+proto", "application/grpc;charset=utf-8"])
async def test_the_content_types_of_protobuf_are_taken(peer: Peer, kind: str) -> None:
    assert (await peer.status(peer.request(content_type=kind)))[0] == "0"


async def test_te_is_not_insisted_on(peer: Peer) -> None:
    """A gateway may have taken it off."""
    peer.send(peer.headers(1, {"te": None}), data(1, prefixed(b"x"), end=True))
    assert (await peer.status(1))[0] == "0"


@pytest.mark.parametrize(
    ("sent", "status", "says"),
    [
        (b"", "12", "exactly one"),
        (prefixed(b"a") + prefixed(b"b"), "12", "exactly one"),
        (prefixed(b"hello")[:-1], "13", "within a message"),
        (b"\0\0", "13", "within a message"),
        (prefixed(b"hello", 2), "13", "neither 0 nor 1"),
        (prefixed(b"hello", 1), "13", "no grpc-encoding"),
        (b"\0" + (LIMIT + 1).to_bytes(4, "big"), "8", "at most 1,048,576"),
        (b"\0\xff\xff\xff\xff", "8", "at most 1,048,576"),
    ],
    ids=["none", "two", "a cut one", "a cut prefix", "an unknown flag", "packed somehow", "too large", "huge"],
)
async def test_a_message_that_is_not_one_is_refused(peer: Peer, sent: bytes, status: str, says: str) -> None:
    stream = peer.open()
    peer.send(data(stream, sent, end=True))
    code, message = await peer.status(stream)
    assert code == status
    assert says in message
    assert peer.service.asked == []
    assert await peer.works()


async def test_a_message_that_is_too_large_is_refused_before_it_has_come(peer: Peer) -> None:
    stream = peer.open()
    peer.send(data(stream, b"\0" + (LIMIT + 1).to_bytes(4, "big")))
    assert (await peer.status(stream))[0] == "8"


async def test_a_second_message_is_refused_before_the_end(peer: Peer) -> None:
    stream = peer.open()
    peer.send(data(stream, prefixed(b"a")), data(stream, prefixed(b"b")))
    assert (await peer.status(stream))[0] == "12"


@pytest.mark.parametrize("parts", [1, 3, 7])
async def test_it_does_not_matter_how_a_message_is_cut(peer: Peer, parts: int) -> None:
    stream = peer.open()
    whole = prefixed(b"hello")
    for at in range(0, len(whole), parts):
        peer.send(data(stream, whole[at : at + parts]))
    peer.send(data(stream, b"", end=True))
    assert (await peer.answer(stream))[1] == whole


@given(st.lists(st.binary(max_size=30), max_size=5), st.lists(st.integers(0, 150)))
def test_messages_come_out_as_they_went_in(sent: list[bytes], cuts: list[int]) -> None:
    stream = b"".join(prefixed(message) for message in sent)
    edges = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    messages = Messages(LIMIT)
    found = [m for a, b in itertools.pairwise(edges) for m in messages.feed(stream[a:b])]
    messages.end()
    assert [message.content for message in found] == sent


@given(st.lists(st.binary(max_size=40), max_size=5))
def test_what_is_missing_is_what_the_message_needs(parts: list[bytes]) -> None:
    messages = Messages(LIMIT)
    try:
        for part in parts:
            assert all(len(message.content) <= LIMIT for message in messages.feed(part))
            if messages.missing:
                assert len([*messages.feed(bytes(messages.missing))]) == 1
                assert messages.missing == 0
    except Refusal:
        pass


# -- compression


@pytest.mark.parametrize(("encoding", "pack"), [("gzip", gzip.compress), ("deflate", zlib.compress)])
async def test_a_packed_message_is_unpacked(peer: Peer, encoding: str, pack: object) -> None:
    stream = peer.open(grpc_encoding=encoding)
    peer.send(data(stream, prefixed(pack(b"hello" * 100), 1), end=True))  # type: ignore[operator]
    assert (await peer.answer(stream))[1] == prefixed(b"hello" * 100)


async def test_a_message_may_be_plain_where_others_would_be_packed(peer: Peer) -> None:
    assert (await peer.answer(peer.request(grpc_encoding="gzip")))[1] == prefixed(b"hello")


@pytest.mark.parametrize(
    ("sent", "status", "says"),
    [
        (b"no gzip", "13", "cannot be unpacked"),
        (gzip.compress(b"hello")[:-4], "13", "cut off"),
        (gzip.compress(b"hello") + b"more", "13", "something follows"),
        (gzip.compress(bytes(LIMIT + 1)), "8", "larger than 1,048,576"),
        (gzip.compress(bytes(200 * LIMIT)), "8", "larger than 1,048,576"),
    ],
    ids=["another format", "cut", "followed by more", "too large", "a bomb"],
)
async def test_a_packed_message_that_cannot_be_taken_is_refused(
    peer: Peer, sent: bytes, status: str, says: str
) -> None:
    stream = peer.open(grpc_encoding="gzip")
    whole = prefixed(sent, 1)
    for at in range(0, len(whole), 2**15):
        peer.send(data(stream, whole[at : at + 2**15]))
    peer.send(data(stream, b"", end=True))
    await _until(lambda: not peer.server.tasks)
    code, message = await peer.status(stream)
    assert code == status
    assert says in message


async def test_an_encoding_that_is_not_known_is_refused_with_those_that_are(peer: Peer) -> None:
    head, _, _ = await peer.answer(peer.open(grpc_encoding="snappy"))
    assert head["grpc-status"] == "12"
    assert head["grpc-accept-encoding"] == "identity,deflate,gzip"


# -- time


@pytest.mark.parametrize(
    ("given", "seconds"),
    [("2H", 7200), ("3M", 180), ("20S", 20), ("2500m", 2.5), ("99999999u", 99.999999), ("5000000n", 0.005)],
)
async def test_a_timeout_is_the_calls_time(peer: Peer, given: str, seconds: float) -> None:
    await peer.answer(peer.request(grpc_timeout=given))
    left = peer.service.calls[0].time_remaining()
    assert left is not None
    assert seconds - 5 < left <= seconds


async def test_a_call_without_a_timeout_has_none(peer: Peer) -> None:
    await peer.answer(peer.request())
    assert peer.service.calls[0].time_remaining() is None


@pytest.mark.parametrize("given", ["", "5", "S", "-1S", "123456789S", "1.5S", "5s"])
async def test_a_timeout_that_is_none_is_refused(peer: Peer, given: str) -> None:
    assert (await peer.status(peer.open(grpc_timeout=given)))[0] == "3"


@pytest.mark.parametrize("timeout", ["20m", None], ids=["the client's time", "the service's time"])
async def test_a_message_that_does_not_come_in_time_is_not_waited_for(peer: Peer, timeout: str | None) -> None:
    peer.server.within = 8 if timeout else 0.02
    stream = peer.open(**({"grpc_timeout": timeout} if timeout else {}))
    peer.send(data(stream, prefixed(b"hello")[:7]))
    assert (await peer.status(stream))[0] == "4"


# -- metadata and what is said


async def test_metadata_is_what_the_client_sent_but_for_grpcs_own(peer: Peer) -> None:
    peer.send(
        peer.fields(
            1,
            [
                (":method", "POST"), (":scheme", "http"), (":path", "/test/Echo"), ("te", "trailers"),
                ("content-type", "application/grpc"), ("user-agent", "me"), ("grpc-timeout", "1S"),
                ("x-tier", "a"), ("x-tier", "b"), ("x-latin", "\xe9"),
            ],
        ),
        data(1, prefixed(b""), end=True),
    )  # fmt: skip
    await peer.answer(1)
    assert [*peer.service.calls[0].metadata] == [("x-tier", "a"), ("x-tier", "b"), ("x-latin", "\xc3\xa9")]


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_a_message_is_escaped_so_that_it_comes_back(text: str) -> None:
    sent = escaped(text)
    assert sent.isascii()
    assert sent.isprintable()
    assert len(sent) <= 4096
    assert text.strip(" ").startswith(unquote(sent, errors="strict").rstrip(" "))
    if len(text) < 300:
        assert unquote(sent) == text.strip(" ")


@given(st.integers(1300, 1500), st.sampled_from(["x", "%", "é", "語", "😀", " "]))
def test_a_long_message_is_cut_between_characters(length: int, character: str) -> None:
    text = "a" * (length % 13) + character * 5 * length
    sent = unquote(escaped(text), errors="strict")
    assert text.startswith(sent)


async def test_a_client_that_takes_few_headers_gets_the_code_alone(peer: Peer) -> None:
    peer.send(frame(frames.SETTINGS, 0, 0, struct.pack(">HI", frames.MAX_HEADER_LIST_SIZE, 300)))
    stream = peer.open()
    peer.send(data(stream, b"", end=True))
    assert await peer.status(stream) == ("12", "")


async def test_a_fault_of_a_method_resets_its_call_and_is_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    peer = Peer()
    peer.read()
    stream = peer.request("Break")
    await settle()
    assert peer.stream_errors() == {stream: ErrorCode.INTERNAL_ERROR}
    assert "a fault of the service" in caplog.text
    assert await peer.works()
    await peer.end()


# -- streams


async def test_a_stream_is_answered_as_it_comes(peer: Peer) -> None:
    stream = peer.open("Chat")
    for word in (b"one", b"two"):
        peer.send(data(stream, prefixed(word)))
        await settle()
        assert [each.payload for each in peer.read() if each.kind == frames.DATA] == [prefixed(word)]
    peer.send(data(stream, prefixed(b"three") + prefixed(b"four"), end=True))
    await settle()
    found = peer.read()
    assert [each.payload for each in found if each.kind == frames.DATA] == [prefixed(b"three"), prefixed(b"four")]
    assert peer.block(found[-1])["grpc-status"] == "0"


async def test_a_stream_without_requests_ends_well(peer: Peer) -> None:
    stream = peer.open("Chat")
    peer.send(data(stream, b"", end=True))
    assert (await peer.answer(stream))[0]["grpc-status"] == "0"


async def test_a_message_of_a_stream_that_cannot_be_taken_ends_it_behind_those_before(peer: Peer) -> None:
    stream = peer.open("Chat")
    peer.send(data(stream, prefixed(b"one") + prefixed(b"two", 7)))
    head, body, trailers = await peer.answer(stream)
    assert ("grpc-status" in head, body, trailers["grpc-status"]) == (False, prefixed(b"one"), "13")


async def test_a_client_may_send_on_a_stream_what_its_window_holds_until_it_is_read(peer: Peer) -> None:
    """`Burst` reads nothing, so that no room is given again."""
    stream = peer.open("Burst")
    peer.send(*(data(stream, prefixed(bytes(995))) for _ in range(65)))
    await settle()
    assert [each for each in peer.read() if each.kind == frames.WINDOW_UPDATE and each.stream == stream] == []
    peer.send(data(stream, bytes(1000)))
    assert peer.stream_errors() == {stream: ErrorCode.FLOW_CONTROL_ERROR}


async def test_what_a_stream_reads_is_given_room_for_again(peer: Peer) -> None:
    stream = peer.open("Chat")
    peer.send(window(0, 2**30), window(stream, 2**30))
    total = 0
    for _ in range(200):
        peer.send(data(stream, prefixed(bytes(995))))
        await settle()
        total += sum(each.number for each in peer.read() if each.kind == frames.WINDOW_UPDATE and each.stream == stream)
    assert 200_000 - 65_535 // 2 < total <= 200_000


# -- large messages


def room(peer: Peer, stream: int) -> int:
    """What the server has given a stream beyond its first window, since it was last read."""
    return sum(each.number for each in peer.read() if each.kind == frames.WINDOW_UPDATE and each.stream == stream)


async def test_a_large_message_gets_just_the_room_that_it_needs(peer: Peer) -> None:
    whole = prefixed(bytes(LIMIT))
    stream = peer.open()
    peer.send(data(stream, whole[:10]))
    assert room(peer, stream) == len(whole) - 65_535
    for at in range(10, len(whole), 2**17):
        peer.send(data(stream, whole[at : at + 2**17]))
    peer.send(data(stream, b"", end=True))
    await settle()
    assert peer.service.asked == [bytes(LIMIT)]


async def test_no_more_large_messages_are_let_in_than_fit_and_all_get_their_turn(peer: Peer) -> None:
    whole = prefixed(bytes(LIMIT))
    streams = [peer.open() for _ in range(4)]
    waiting = dict.fromkeys(streams, 10)
    peer.send(*(data(stream, whole[:10]) for stream in streams))
    while waiting:
        given = {each.stream for each in peer.read() if each.kind == frames.WINDOW_UPDATE and each.stream}
        assert given
        assert len(given) <= 2
        for stream in given:
            for at in range(10, len(whole), 2**18):
                peer.send(data(stream, whole[at : at + 2**18], end=at + 2**18 >= len(whole)))
            del waiting[stream]
        await settle()
    assert len(peer.service.asked) == 4
    assert peer.connection.reserve.taken == 0


async def test_a_large_answer_waits_for_room_and_keeps_nobody_from_theirs(peer: Peer) -> None:
    peer.send(window(0, 2**30))
    stream = peer.request("Large", b"300000")
    await settle()
    first = [each for each in peer.read() if each.stream == stream and each.kind == frames.DATA]
    assert sum(len(each.payload) for each in first) == 65_535
    assert max(len(each.payload) for each in first) == 16_384
    assert await peer.works()
    peer.send(window(stream, 2**20))
    body, trailers = b"", dict[str, str]()
    while not trailers:
        await asyncio.sleep(0)
        for each in peer.read():
            body += each.payload if each.kind == frames.DATA else b""
            trailers = peer.block(each) if each.kind == frames.HEADERS else trailers
    assert (len(body), trailers["grpc-status"]) == (300_005 - 65_535, "0")


async def test_large_answers_share_the_connections_room(peer: Peer) -> None:
    streams = [peer.request("Large", b"60000") for _ in range(3)]
    await settle()
    peer.read()
    peer.send(window(0, 60_000))
    await settle()
    given: dict[int, int] = {}
    for each in peer.read():
        if each.kind == frames.DATA:
            given[each.stream] = given.get(each.stream, 0) + len(each.payload)
    assert given.keys() == set(streams[1:])
    peer.send(window(0, 2**20))
    await settle()
    assert peer.connection.streams == {}


async def test_a_window_may_become_negative(peer: Peer) -> None:
    """RFC 9113 §6.9.2."""
    peer.send(window(0, 2**30))
    stream = peer.request("Large", b"100000")
    await settle()
    peer.read()
    peer.send(frame(frames.SETTINGS, 0, 0, struct.pack(">HI", 4, 400)), window(stream, 65_135))
    await settle()
    assert [each for each in peer.read() if each.kind == frames.DATA] == []
    peer.send(window(stream, 1))
    await settle()
    assert [len(each.payload) for each in peer.read() if each.kind == frames.DATA] == [1]


async def test_a_window_that_shrinks_while_its_answer_waits_for_the_connections_room_is_kept_to(peer: Peer) -> None:
    streams = [peer.request("Large", b"60000") for _ in range(2)]
    await settle()
    peer.read()
    peer.send(frame(frames.SETTINGS, 0, 0, struct.pack(">HI", 4, 0)), window(0, 2**20))
    await settle()
    assert [each for each in peer.read() if each.kind == frames.DATA] == []
    peer.send(*(window(stream, 2**17) for stream in streams))
    await settle()
    assert peer.connection.streams == {}


async def test_frames_are_as_large_as_the_client_takes_them(peer: Peer) -> None:
    peer.send(frame(frames.SETTINGS, 0, 0, struct.pack(">HI", 5, 30_000)), window(0, 2**20))
    stream = peer.request("Large", b"60000")
    await settle()
    sizes = [len(each.payload) for each in peer.read() if each.kind == frames.DATA and each.stream == stream]
    assert max(sizes) == 30_000


# -- the end


async def test_a_connection_that_leaves_answers_what_it_has_and_what_was_on_its_way(peer: Peer) -> None:
    held = peer.request("Hold")
    await settle()
    peer.connection.leave()
    first, ping = [each for each in peer.read() if each.kind in (frames.GOAWAY, frames.PING)]
    assert first.payload[:4] == b"\x7f\xff\xff\xff"
    late = peer.request()
    assert (await peer.status(late))[0] == "0"
    peer.send(frame(frames.PING, 1, 0, ping.payload))
    (last,) = [each for each in peer.read() if each.kind == frames.GOAWAY]
    assert int.from_bytes(last.payload[:4], "big") == late
    ignored = peer.request()
    await settle()
    assert [each for each in peer.read() if each.stream == ignored] == []
    assert not peer.transport.is_ended
    peer.service.is_released.set()
    assert (await peer.status(held))[0] == "0"
    assert peer.transport.is_ended


async def test_a_client_that_does_not_answer_does_not_keep_a_connection_from_leaving(peer: Peer) -> None:
    peer.connection.leave()
    peer.check(0.5)
    assert not peer.transport.is_ended
    peer.check(2)
    assert peer.transport.is_ended


async def test_a_client_that_leaves_has_its_answers_first(peer: Peer) -> None:
    held = peer.request("Hold")
    peer.send(frame(frames.GOAWAY, 0, 0, bytes(8)))
    assert [each.kind for each in peer.read()] == [frames.GOAWAY]
    await settle()
    peer.service.is_released.set()
    assert (await peer.status(held))[0] == "0"


# -- the log


async def test_each_call_leaves_a_line_without_what_the_client_wrote(
    peer: Peer, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = logging.getLogger("ray.serve")
    monkeypatch.setattr(log, "propagate", True)
    caplog.set_level(logging.INFO, "ray.serve")
    await peer.answer(peer.request())
    await peer.answer(peer.open("Secret"))
    peer.send(frame(frames.RST_STREAM, 0, peer.request("Hold"), bytes(4)))
    await settle()
    # Once each, through however many loggers they came.
    records = [record for record in dict.fromkeys(caplog.records) if record.name == "ray.serve"]
    lines = [record.getMessage().split() for record in records]
    assert [(line[0], line[1], line[2], line[-1]) for line in lines] == [
        ("Echo", "-", "OK", "-"),
        ("(no", "such", "method)", "-"),
        ("Hold", "-", "(gone)", "-"),
    ]
    assert "Secret" not in caplog.text
    assert all(record.serve_access_log for record in records)


async def _until(is_so: object) -> None:
    while not is_so():  # type: ignore[operator]
        await asyncio.sleep(0.001)
