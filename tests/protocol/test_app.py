from __future__ import annotations

import asyncio
import gzip
import json
import zlib
from typing import Any

import pytest

from serve_app.context import deadline_exceeded
from serve_app.problem import Problem
from serve_app.protocol.refusals import Code, Refusal
from tests.protocol.asgi import Behind, Client, sum_of
from tests.protocol.codec import LIMITS, add_json, fp32

GOOD = json.dumps(add_json()).encode()


@pytest.fixture
async def behind() -> Behind:
    return Behind()


@pytest.fixture
def client(behind: Behind) -> Client:
    return Client(behind)


async def test_an_inference_is_answered_with_its_request_id_in_a_header(client: Client, behind: Behind) -> None:
    answer = await client.add(add_json(), x_request_id="mine-7", x_tier="second")
    assert (answer.status, answer.headers["content-type"]) == (200, "application/json")
    assert answer.headers["x-request-id"] == "mine-7"
    assert answer.json["outputs"] == [{"name": "OUTPUT_SUM", "datatype": "FP32", "shape": [1, 1], "data": [1.5]}]
    assert int(answer.headers["content-length"]) == len(answer.body)
    assert behind.requests[0].id == "7"
    assert behind.requests[0].parameters["priority"].uint64_param == 2


async def test_bytes_are_asked_for_and_come_after_the_json(client: Client) -> None:
    answer = await client.add(add_json(parameters={"binary_data_output": True}))
    length = int(answer.headers["inference-header-content-length"])
    assert answer.headers["content-type"] == "application/octet-stream"
    assert answer.body[length:] == fp32(1.5)
    assert json.loads(answer.body[:length])["outputs"][0]["parameters"] == {"binary_data_size": 4}


async def test_the_deadline_is_the_clients_where_it_is_the_shorter_one(client: Client, behind: Behind) -> None:
    await client.add(GOOD, x_request_timeout_seconds="2")
    await client.add(GOOD, x_request_timeout_seconds="900")
    assert behind.timeouts[0] <= 2 < behind.timeouts[1] <= 8


@pytest.mark.parametrize(
    ("headers", "status", "says"),
    [
        ({"x_tier": "first-class"}, 400, "X-Tier is not a tier"),
        ({"x_request_id": "a b"}, 400, "X-Request-ID is unfit"),
        ({"x_request_timeout_seconds": "-1"}, 400, "X-Request-Timeout-Seconds"),
        ({"x_request_timeout_seconds": "nan"}, 400, "X-Request-Timeout-Seconds"),
        ({"inference_header_content_length": "-1"}, 400, "not a whole number"),
        ({"inference_header_content_length": "9999"}, 400, "but the body has"),
        ({"content_length": str(LIMITS.body + 1)}, 413, "larger than"),
        ({"content_type": "multipart/form-data; boundary=a"}, 415, "the content type"),
        ({"content_type": "application/json; charset=utf-16"}, 415, "the content type"),
        ({"content_encoding": "br"}, 501, "Unsupported compression type"),
        ({"content_encoding": "gzip"}, 400, "cannot be unpacked"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
async def test_headers_that_mean_nothing_are_refused(
    client: Client, behind: Behind, headers: dict[str, str], status: int, says: str
) -> None:
    answer = await client.add(GOOD, **headers)
    assert (answer.status, answer.headers["content-type"]) == (status, "application/json")
    assert says in answer.error
    assert answer.headers["x-request-id"]
    assert not behind.requests


@pytest.mark.parametrize(
    "kind", ["application/json", "application/json; charset=UTF-8", "application/octet-stream",
             "application/x-www-form-urlencoded"]
)  # fmt: skip
async def test_content_types_that_clients_send_are_taken(client: Client, kind: str) -> None:
    assert (await client.add(GOOD, content_type=kind)).status == 200


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("GET", "/v2/models/add/infer", "POST"),
        ("HEAD", "/v2/models/add/versions/1/infer", "POST"),
        ("GET", "/v2/repository/index", "POST"),
        ("POST", "/v2", "GET, HEAD"),
        ("DELETE", "/v2/models/add", "GET, HEAD"),
        ("OPTIONS", "/v2/health/live", "GET, HEAD"),
    ],
)
async def test_another_method_is_told_which_are_allowed(client: Client, method: str, path: str, allowed: str) -> None:
    answer = await client.send(method, path)
    assert (answer.status, answer.headers["allow"]) == (405, allowed)


@pytest.mark.parametrize(
    "path",
    ["/", "/v1/verify", "/v22", "/v2/models", "/v2/models/", "/v2/models/add/generate", "/v2/models/add/versions/x",
     "/v2/models/add/versions", "/v2/nothing"],
)  # fmt: skip
async def test_paths_that_there_are_not_are_not_found(client: Client, path: str) -> None:
    answer = await client.send("GET", path)
    assert answer.status == 404
    assert answer.error


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/v2/repository/models/add/load"),
        ("POST", "/v2/repository/models/add/unload"),
        ("POST", "/v2/systemsharedmemory/region/r/register"),
        ("GET", "/v2/systemsharedmemory/status"),
        ("POST", "/v2/cudasharedmemory/region/r/register"),
        ("POST", "/v2/trace/setting"),
        ("GET", "/v2/models/add/trace/setting"),
        ("POST", "/v2/logging"),
    ],
)
async def test_the_server_is_not_managed_from_outside(client: Client, method: str, path: str) -> None:
    answer = await client.send(method, path, b"{}")
    assert (answer.status, answer.error) == (403, "models, shared memory, trace and log settings are not managed here")


async def test_head_has_the_headers_of_get_and_no_body(client: Client) -> None:
    got, head = [await client.send(method, "/v2") for method in ("GET", "HEAD")]
    assert (head.status, head.body) == (200, b"")
    assert head.headers["content-length"] == got.headers["content-length"] == str(len(got.body))


async def test_the_servers_own_name_and_what_it_does_not_let_through_stay_inside(client: Client) -> None:
    answer = await client.send("GET", "/v2/")
    assert answer.json == {"name": "small", "version": "2.51.0", "extensions": ["statistics"]}


@pytest.mark.parametrize("name", ["hidden", "nowhere", "../add", "add%00"])
async def test_a_model_that_is_not_exposed_is_as_one_that_is_not_there(
    client: Client, behind: Behind, name: str
) -> None:
    answer = await client.send("POST", f"/v2/models/{name}/infer", GOOD)
    assert answer.status == 404
    assert not behind.requests


async def test_decoupled_models_are_for_streams(client: Client) -> None:
    answer = await client.send("POST", "/v2/models/repeat/infer", b"{}")
    assert answer.status == 501
    assert "doesn't support models with decoupled transaction policy" in answer.error


async def test_a_request_of_a_sequence_is_never_sent_twice(client: Client, behind: Behind) -> None:
    tensor = {"name": "x", "datatype": "INT32", "shape": [1, 1], "data": [1]}
    await client.send("POST", "/v2/models/tally/infer", json.dumps({"inputs": [tensor]}).encode())
    await client.add(GOOD)
    assert behind.repeatable == [False, True]


@pytest.mark.parametrize(
    ("failure", "status"),
    [
        (Refusal(Code.UNAVAILABLE, "Exceeds maximum queue size"), 503),
        (Refusal(Code.INTERNAL, "failed"), 500),
        (Refusal(Code.DEADLINE_EXCEEDED, "late"), 504),
        (deadline_exceeded(), 504),
        (Problem(503, "model_unavailable", "add does not answer just now", retry_after=0.5), 503),
    ],
)
async def test_what_triton_refuses_comes_with_tritons_status(
    client: Client, behind: Behind, failure: Exception, status: int
) -> None:
    behind.answer = failure
    answer = await client.add(GOOD)
    assert answer.status == status
    assert answer.headers.get("retry-after") == ("1" if status == 503 else None)


@pytest.mark.parametrize(("encoding", "pack"), [("gzip", gzip.compress), ("deflate", zlib.compress)])
async def test_packed_bodies_are_unpacked_within_the_limit(
    client: Client, behind: Behind, encoding: str, pack: Any
) -> None:
    assert (await client.add(pack(GOOD), content_encoding=encoding)).status == 200
    assert list(behind.requests[0].raw_input_contents) == [fp32(1), fp32(0.5)]
    bomb = pack(bytes(LIMITS.body + 1))
    assert (await client.add(bomb, content_encoding=encoding)).status == 413
    for broken in (pack(GOOD)[:-4], pack(GOOD) + b"x", b""):
        answer = await client.add(broken, content_encoding=encoding)
        assert (answer.status, "cannot be unpacked" in answer.error) == (400, True)


@pytest.mark.parametrize(
    ("accepted", "encoding"),
    [("gzip", "gzip"), ("br, deflate;q=0.5, gzip;q=0.2", "deflate"), ("gzip;q=0", None), ("*, br", None)],
)
async def test_a_large_answer_is_packed_as_the_client_likes(
    client: Client, behind: Behind, accepted: str, encoding: str | None
) -> None:
    behind.answer = sum_of([1.0] * 5000)
    answer = await client.add(GOOD, accept_encoding=accepted)
    assert answer.headers.get("content-encoding") == encoding
    body = answer.body if encoding is None else zlib.decompress(answer.body, 47)
    assert json.loads(body)["outputs"][0]["data"] == [1.0] * 5000
    behind.answer = sum_of([1.0])
    assert "content-encoding" not in (await client.add(GOOD, accept_encoding=accepted)).headers


async def test_a_body_in_parts_is_read_no_further_than_the_limit(client: Client, behind: Behind) -> None:
    half = len(GOOD) // 2
    answer = await client.send("POST", "/v2/models/add/infer", GOOD[:half], GOOD[half:])
    assert answer.status == 200
    part = bytes(LIMITS.body // 4)
    answer = await client.send("POST", "/v2/models/add/infer", *[part] * 5, more=True)
    assert answer.status == 413


async def test_a_body_that_does_not_come_is_waited_for_until_the_deadline(client: Client, behind: Behind) -> None:
    headers = {"x-request-timeout-seconds": "0.05"}
    answer = await client.send("POST", "/v2/models/add/infer", GOOD[:5], headers=headers, more=True)
    assert answer.status == 504
    assert not behind.requests


async def test_a_client_that_hangs_up_ends_the_work_behind(client: Client, behind: Behind) -> None:
    behind.hold = True
    sending = asyncio.create_task(client.add(GOOD))
    await behind.asked.wait()
    client.hang_up.set()
    answer = await sending
    assert behind.cancelled.is_set()
    assert answer.status == 0


async def test_cancelling_the_application_itself_cancels_what_it_waits_for(client: Client, behind: Behind) -> None:
    behind.hold = True
    sending = asyncio.create_task(client.add(GOOD))
    await behind.asked.wait()
    sending.cancel()
    with pytest.raises(asyncio.CancelledError):
        await sending
    assert behind.cancelled.is_set()


async def test_a_client_that_hangs_up_while_it_sends_gets_nothing(client: Client, behind: Behind) -> None:
    client.hang_up.set()
    answer = await client.send("POST", "/v2/models/add/infer", GOOD[:5], more=True)
    assert answer.status == 0
    assert not behind.requests
