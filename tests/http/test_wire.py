"""HTTP as clients speak it: over a socket, byte by byte where it matters."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from serve_app.admission import AdmissionLimits
from serve_app.http import connection
from tests.http.conftest import ANSWER, BOTH, PICTURE, Listen, Listening, Service, problem_code
from tests.protocol.asgi import Behind
from tests.protocol.codec import add_json

POST = b"POST /v1/faces/embed HTTP/1.1\r\nHost: a\r\nContent-Type: image/jpeg\r\n"
WHOLE = POST + b"Content-Length: 7\r\n\r\npicture"


async def answer_of(reader: asyncio.StreamReader) -> tuple[int, dict[str, str], Any]:
    """The next answer's status, headers and JSON."""
    head = (await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 10)).decode()
    status, *lines = head.strip().split("\r\n")
    headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    return int(status.split()[1]), headers, json.loads(body) if body else None


async def ends(reader: asyncio.StreamReader) -> bool:
    return await asyncio.wait_for(reader.read(1), 10) == b""


async def test_a_connection_serves_one_request_after_another(listening: Listening) -> None:
    reader, writer = await listening.connect()
    for _ in range(3):
        writer.write(WHOLE)
        status, headers, body = await answer_of(reader)
        assert (status, body["similarity"], headers["x-request-id"]) == (200, ANSWER.similarity, body["request_id"])
        assert "connection" not in headers
    writer.close()


async def test_requests_that_are_sent_at_once_are_answered_in_their_order(listening: Listening) -> None:
    reader, writer = await listening.connect()
    names = ["first", "second", "third"]
    for name in names:
        writer.write(WHOLE.replace(b"Host: a", f"Host: a\r\nX-Request-ID: {name}".encode()))
    assert [(await answer_of(reader))[2]["request_id"] for _ in names] == names
    writer.close()


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/docs", "/openapi.json", "/v2/health/live", "/v2"])
async def test_head_is_get_without_the_body(listening: Listening, path: str) -> None:
    async with listening.client() as client:
        got, head = await client.get(path), await client.head(path)
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["content-length"] == got.headers["content-length"]
    assert head.headers.get("content-type") == got.headers.get("content-type")


async def test_head_of_what_is_only_posted_to_is_not_allowed(listening: Listening, service: Service) -> None:
    async with listening.client() as client:
        head = await client.head("/v1/verify")
    assert (head.status_code, head.headers["allow"], head.content) == (405, "POST", b"")


async def test_a_client_is_told_to_go_on_before_it_sends_the_body(listening: Listening, service: Service) -> None:
    reader, writer = await listening.connect()
    writer.write(POST + b"Expect: 100-continue\r\nContent-Length: 7\r\n\r\n")
    assert await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 10) == b"HTTP/1.1 100 Continue\r\n\r\n"
    writer.write(PICTURE)
    assert (await answer_of(reader))[0] == 200
    assert service.inputs["image"] == PICTURE
    writer.close()


async def test_a_body_that_nobody_wants_is_not_waited_for(listening: Listening) -> None:
    """The client may leave it out, and what it sends next would be taken for it."""
    reader, writer = await listening.connect()
    writer.write(POST.replace(b"image/jpeg", b"text/plain") + b"Expect: 100-continue\r\nContent-Length: 7\r\n\r\n")
    status, headers, body = await answer_of(reader)
    assert (status, body["code"], headers["connection"]) == (415, "unsupported_media_type", "close")
    assert await ends(reader)
    writer.close()


@pytest.mark.parametrize("path", [b"/v1/faces/embed", b"/v2/models/add/infer"])
async def test_an_upload_that_takes_too_long_ends_at_the_deadline(listening: Listening, path: bytes) -> None:
    reader, writer = await listening.connect()
    head = POST.replace(b"/v1/faces/embed", path).replace(b"image/jpeg", b"application/octet-stream")
    writer.write(head + b"X-Request-Timeout-Seconds: 0.3\r\nContent-Length: 1000\r\n\r\nsome")
    status, headers, _ = await answer_of(reader)
    assert (status, headers["connection"]) == (504, "close")
    assert await ends(reader)
    writer.close()


async def test_a_slow_upload_keeps_nobody_from_working(listen: Listen) -> None:
    listening = await listen(AdmissionLimits(1, 1, 429, 1))
    reader, writer = await listening.connect()
    writer.write(POST + b"Content-Length: 7\r\n\r\n")
    async with listening.client() as client:
        while not listening.admission.requests:
            await asyncio.sleep(0)
        assert (await client.post("/v1/faces/compare", files=BOTH)).status_code == 200
    writer.write(PICTURE)
    assert (await answer_of(reader))[0] == 200
    writer.close()


async def test_what_waits_beyond_the_limits_is_refused_at_once_and_told_when_to_come_back(
    listen: Listen, service: Service, behind: Behind
) -> None:
    listening = await listen(AdmissionLimits(1, 1, 429, 2.5))
    released = service.hold()
    async with listening.client() as client:
        waiting = [asyncio.create_task(client.post("/v1/faces/compare", files=BOTH)) for _ in range(2)]
        while listening.admission.requests < 2:
            await asyncio.sleep(0)
        refused = await client.post("/v1/faces/compare", files=BOTH)
        assert problem_code(refused, 429) == "service_full"
        assert refused.headers["retry-after"] == "3"
        protocol = await client.post("/v2/models/add/infer", json=add_json())
        assert (protocol.status_code, protocol.headers["retry-after"]) == (429, "3")
        assert "too many requests wait" in protocol.json()["error"]
        for path in ("/healthz", "/docs", "/openapi.json", "/v2/health/live", "/v2"):
            assert (await client.get(path)).status_code == 200, path
        assert len(service.contexts) == 1
        released.set()
        assert [response.status_code for response in await asyncio.gather(*waiting)] == [200, 200]
        assert (await client.post("/v1/faces/compare", files=BOTH)).status_code == 200
    assert behind.requests == []


async def test_a_request_that_would_be_late_is_refused_at_once(listen: Listen, service: Service) -> None:
    listening = await listen(AdmissionLimits(1, 5, 429, 1))
    async with listening.client() as client:
        for wait in (0.3, None):
            released = service.hold()
            first = asyncio.create_task(client.post("/v1/faces/compare", files=BOTH))
            await service.asked.wait()
            if wait is not None:
                await asyncio.sleep(wait)  # such requests take so long
                released.set()
                assert (await first).status_code == 200
                service.asked.clear()
        late = await client.post("/v1/faces/compare", files=BOTH, headers={"x-request-timeout-seconds": "0.35"})
        assert problem_code(late, 429) == "too_late"
        assert late.headers["retry-after"] == "1"
        assert "or allow more time" in late.json()["detail"]
        released.set()
        assert (await first).status_code == 200
    assert len(service.contexts) == 2


async def test_time_counts_from_a_requests_arrival_also_while_it_waits_for_its_turn(
    listen: Listen, service: Service
) -> None:
    listening = await listen(AdmissionLimits(1, 5, 429, 1))
    released = service.hold()
    async with listening.client() as client:
        first = asyncio.create_task(client.post("/v1/faces/compare", files=BOTH))
        await service.asked.wait()
        headers = {"x-request-timeout-seconds": "0.4"}
        late = await client.post("/v1/faces/compare", files=BOTH, headers=headers)
        of_protocol = await client.post("/v2/models/add/infer", json=add_json(), headers=headers)
        assert problem_code(late, 504) == "deadline_exceeded"
        assert of_protocol.status_code == 504
        released.set()
        assert (await first).status_code == 200
    assert len(service.contexts) == 1


async def test_a_client_that_hangs_up_cancels_its_work(listening: Listening, service: Service) -> None:
    service.hold()
    _, writer = await listening.connect()
    writer.write(WHOLE)
    await asyncio.wait_for(service.asked.wait(), 10)
    writer.close()
    await asyncio.wait_for(service.cancelled.wait(), 10)
    while listening.admission.requests:
        await asyncio.sleep(0)


async def test_a_client_that_hangs_up_cancels_its_inference(listening: Listening, behind: Behind) -> None:
    behind.hold = True
    _, writer = await listening.connect()
    body = json.dumps(add_json()).encode()
    writer.write(b"POST /v2/models/add/infer HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))
    await asyncio.wait_for(behind.asked.wait(), 10)
    writer.close()
    await asyncio.wait_for(behind.cancelled.wait(), 10)


async def test_files_may_have_any_name(listening: Listening, service: Service) -> None:
    files = {
        "a": ("Führerschein 文書 \N{SNOWMAN}.jpg", b"one"),
        "b": ('say "cheese".jpg', b"two"),
    }
    async with listening.client() as client:
        assert (await client.post("/v1/faces/compare", files=files)).status_code == 200
    assert service.inputs == {"a": b"one", "b": b"two"}


async def test_a_body_of_unknown_length_is_read_in_chunks(listening: Listening, service: Service) -> None:
    async def chunks() -> Any:
        yield b"pic"
        yield b"ture"

    async with listening.client() as client:
        response = await client.post("/v1/faces/embed", content=chunks(), headers={"content-type": "image/jpeg"})
    assert response.status_code == 200
    assert service.inputs["image"] == PICTURE


@pytest.mark.parametrize(
    ("sent", "status", "code"),
    [
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400, "malformed_http"),
        (b"GET / HTTP/9.9\r\n\r\n", 400, "malformed_http"),
        (
            b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
            400,
            "malformed_http",
        ),
        (b"GET / HTTP/1.1\r\nX: " + b"x" * 200_000, 431, "headers_too_large"),
        (b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 40_000, 431, "headers_too_large"),
        (b"GET /" + b"x" * 200_000, 431, "headers_too_large"),
    ],
    ids=["TLS", "a version that is none", "two lengths", "a long header", "many headers", "a long path"],
)
async def test_what_is_no_request_is_a_problem_too(listening: Listening, sent: bytes, status: int, code: str) -> None:
    reader, writer = await listening.connect()
    for begin in range(0, len(sent), 16_000):
        writer.write(sent[begin : begin + 16_000])
        await asyncio.sleep(0)
    got, headers, body = await answer_of(reader)
    assert (got, body["code"], headers["content-type"]) == (status, code, "application/problem+json")
    assert headers["x-request-id"] == body["request_id"]
    writer.close()


async def test_what_follows_a_request_and_is_none_is_never_taken_for_its_answer(
    listening: Listening, service: Service
) -> None:
    released = service.hold()
    reader, writer = await listening.connect()
    writer.write(WHOLE + b"\0nonsense\r\n\r\n")
    await asyncio.wait_for(service.asked.wait(), 10)
    released.set()
    status, _, body = await answer_of(reader)
    assert (status, body["similarity"]) == (200, ANSWER.similarity)
    assert await ends(reader)
    writer.close()


async def test_a_body_that_cannot_be_read_is_its_requests_own_fault(listening: Listening) -> None:
    reader, writer = await listening.connect()
    writer.write(POST + b"Transfer-Encoding: chunked\r\n\r\nnonsense\r\n")
    status, _, body = await answer_of(reader)
    assert (status, body["code"]) == (400, "malformed_http")
    assert await ends(reader)
    writer.close()


@pytest.mark.parametrize("sent", [b"", b"GET /healthz HTTP/1.1\r\nHost:"], ids=["nothing", "half of the headers"])
async def test_a_connection_that_sends_no_request_is_ended(
    listening: Listening, monkeypatch: pytest.MonkeyPatch, sent: bytes
) -> None:
    monkeypatch.setattr(connection, "HEAD_TIMEOUT_S", 0.1)
    reader, writer = await listening.connect()
    writer.write(sent)
    assert await ends(reader)
    writer.close()
