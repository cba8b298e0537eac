from __future__ import annotations

import asyncio
import json
import math
import time
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
import yaml
from pydantic import BaseModel

from serve_app.admission import Admission, AdmissionLimits
from serve_app.http.app import build_app
from serve_app.http.front import Front
from serve_app.problem import Problem
from serve_app.spec import Spec
from tests.http.conftest import BOTH, PICTURE, SPEC, SPEC_FILE, Service, failing, problem_code

PART = b'--b\r\nContent-Disposition: form-data; name="a"\r\n\r\nx\r\n--b--\r\n'


def client_of(spec: Spec, service: Service) -> httpx.AsyncClient:
    api = build_app(spec, service.run, service.ready, Admission(AdmissionLimits.of(spec)))
    transport = httpx.ASGITransport(Front(api, no_protocol), raise_app_exceptions=False)
    return httpx.AsyncClient(transport=transport, base_url="http://test")


@pytest.fixture
async def client(service: Service) -> AsyncIterator[httpx.AsyncClient]:
    async with client_of(SPEC, service) as client:
        yield client


async def no_protocol(*_: Any) -> None:
    raise AssertionError("nothing asks for /v2 here")


async def test_multipart_files_reach_the_pipeline_and_its_answer_comes_back(
    client: httpx.AsyncClient, service: Service
) -> None:
    response = await client.post("/v1/faces/compare", files={"a": b"one", "b": b"two"})
    assert response.status_code == 200
    assert service.inputs == {"a": b"one", "b": b"two"}
    body = response.json()
    assert (body["similarity"], body["threshold"], body["match"]) == (0.5, 0.3, True)
    assert len(body["request_id"]) == 36
    assert set(body["timings_ms"]) == {"faces", "total"}


async def test_several_files_of_one_name_are_a_list_in_their_order(client: httpx.AsyncClient, service: Service) -> None:
    frames = [("frames", (str(index), bytes([index]))) for index in range(3)]
    await client.post("/v1/verify", files=[("selfie", PICTURE), ("document", PICTURE), *frames])
    assert service.inputs == {"selfie": PICTURE, "document": PICTURE, "frames": [b"\0", b"\1", b"\2"]}


@pytest.mark.parametrize("kind", ["image/jpeg", "application/octet-stream", "image/png; q=1"])
async def test_a_lone_picture_may_be_the_body_itself(client: httpx.AsyncClient, service: Service, kind: str) -> None:
    response = await client.post("/v1/faces/embed", content=PICTURE, headers={"content-type": kind})
    assert response.status_code == 200
    assert service.inputs == {"image": PICTURE, "aligned": False}


@pytest.mark.parametrize(("query", "flag"), [("", False), ("?aligned=true", True), ("?aligned=false", False)])
async def test_a_flag_comes_with_the_query(client: httpx.AsyncClient, service: Service, query: str, flag: bool) -> None:
    for request in ({"content": PICTURE, "headers": {"content-type": "image/jpeg"}}, {"files": {"image": PICTURE}}):
        response = await client.post(f"/v1/faces/embed{query}", **request)
        assert response.status_code == 200
        assert service.inputs == {"image": PICTURE, "aligned": flag}


@pytest.mark.parametrize(
    ("route", "code", "detail"),
    [
        ("/v1/faces/embed?aligned=1", "bad_flag", "send aligned once, as true or false"),
        ("/v1/faces/embed?aligned", "bad_flag", "send aligned once, as true or false"),
        ("/v1/faces/embed?aligned=true&aligned=true", "bad_flag", "send aligned once, as true or false"),
        ("/v1/faces/embed?aligend=true", "unknown_parameter", "that is not known; send only aligned"),
        ("/v1/faces/compare?aligned=true", "unknown_parameter", "that is not known; this route takes none"),
    ],
)
async def test_a_query_that_means_nothing_is_refused(
    client: httpx.AsyncClient, route: str, code: str, detail: str
) -> None:
    response = await client.post(route, files=BOTH)
    assert problem_code(response, 400) == code
    assert detail in response.json()["detail"]


async def test_a_large_picture_is_never_spooled_to_a_file(
    client: httpx.AsyncClient, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **__: Any) -> Any:
        raise AssertionError("a file was opened")

    monkeypatch.setattr("tempfile.TemporaryFile", refuse)
    monkeypatch.setattr("tempfile._TemporaryFileWrapper", refuse)
    monkeypatch.setattr("tempfile.SpooledTemporaryFile.rollover", refuse)
    large = bytes(5 * 2**20)
    response = await client.post("/v1/faces/compare", files={"a": large, "b": PICTURE})
    assert response.status_code == 200
    assert service.inputs["a"] == large


@pytest.mark.parametrize(
    ("request_", "status", "code", "field"),
    [
        ({"files": {"a": PICTURE}}, 400, "missing_input", "b"),
        ({"files": {**BOTH, "c": PICTURE}}, 400, "unknown_field", "c"),
        ({"files": [("a", PICTURE), ("a", PICTURE)]}, 400, "too_many_files", "a"),
        ({"files": {"a": PICTURE, "x": PICTURE}}, 400, "unknown_field", "x"),
        ({"data": {"a": "text"}, "files": {"b": PICTURE}}, 400, "malformed_multipart", "a"),
        ({"files": {"a": bytes(10 * 2**20 + 1), "b": PICTURE}}, 413, "too_large", "a"),
        ({"files": {"a": bytes(33 * 2**20), "b": PICTURE}}, 413, "too_large", None),
        ({"content": b"x", "headers": {"content-type": "multipart/form-data"}}, 400, "malformed_multipart", None),
        (
            {"content": b"x", "headers": {"content-type": "multipart/form-data; boundary=b"}},
            400,
            "malformed_multipart",
            None,
        ),
        (
            {"content": PART, "headers": {"content-type": "multipart/form-data; boundary=b; charset=undefined"}},
            400,
            "malformed_multipart",
            None,
        ),
        ({"json": {"a": "x"}}, 415, "unsupported_media_type", None),
        ({"content": PICTURE, "headers": {"content-type": "image/jpeg"}}, 415, "unsupported_media_type", None),
        ({"content": PICTURE}, 415, "unsupported_media_type", None),
    ],
    ids=[
        "a file missing",
        "a file too many",
        "a field twice",
        "an unknown field",
        "text instead of a file",
        "one file too large",
        "the request too large",
        "no boundary",
        "no parts",
        "a charset that is none",
        "json",
        "one picture where two are needed",
        "no content type",
    ],
)
async def test_a_request_that_does_not_carry_the_pictures_is_told_why(
    client: httpx.AsyncClient, request_: dict[str, Any], status: int, code: str, field: str | None
) -> None:
    response = await client.post("/v1/faces/compare", **request_)
    assert problem_code(response, status) == code
    assert response.json().get("field") == field


async def test_a_body_too_large_is_refused(client: httpx.AsyncClient) -> None:
    large = bytes(10 * 2**20 + 1)
    response = await client.post("/v1/faces/embed", content=large, headers={"content-type": "image/jpeg"})
    assert problem_code(response, 413) == "too_large"
    assert response.json()["field"] == "image"


async def test_an_empty_body_is_a_missing_picture(client: httpx.AsyncClient) -> None:
    response = await client.post("/v1/faces/embed", headers={"content-type": "image/jpeg"})
    assert problem_code(response, 400) == "missing_input"


async def test_too_few_frames_are_a_malformed_request(client: httpx.AsyncClient) -> None:
    response = await client.post("/v1/liveness", files=[("frames", PICTURE)])
    assert problem_code(response, 400) == "missing_input"
    assert "send 2 to 8 files in fields named frames, not 1" in response.json()["detail"]


async def test_the_clients_request_id_is_kept(client: httpx.AsyncClient, service: Service) -> None:
    response = await client.post("/v1/faces/compare", files=BOTH, headers={"x-request-id": "order-7"})
    assert response.json()["request_id"] == "order-7"
    assert service.context.request_id == "order-7"


@pytest.mark.parametrize("unfit", ["a b", "x" * 129, "", "new\tline"])
async def test_an_unfit_request_id_is_refused(client: httpx.AsyncClient, unfit: str) -> None:
    response = await client.get("/healthz", headers={"x-request-id": unfit})
    assert problem_code(response, 400) == "bad_request_id"


@pytest.mark.parametrize(("tier", "priority"), [("interactive", 1), (None, 2), ("bulk", 3)])
async def test_the_tier_sets_the_priority(
    client: httpx.AsyncClient, service: Service, tier: str | None, priority: int
) -> None:
    await client.post("/v1/faces/compare", files=BOTH, headers={"x-tier": tier} if tier else {})
    assert service.context.priority == priority


@pytest.mark.parametrize(
    ("sent", "least", "most"), [(None, 1.5, 2.0), ("0.5", 0.3, 0.4), ("60", 1.5, 2.0), ("0.1", 0.0, 0.05)]
)
async def test_the_deadline_is_the_sla_or_what_the_client_allows_whichever_is_first(
    client: httpx.AsyncClient, service: Service, sent: str | None, least: float, most: float
) -> None:
    start = time.time()
    await client.post("/v1/faces/compare", files=BOTH, headers={"x-request-timeout-seconds": sent} if sent else {})
    assert least < service.context.deadline - start
    assert service.context.deadline - time.time() < most


@pytest.mark.parametrize(
    ("header", "value", "code"),
    [
        ("x-tier", "vip", "unknown_tier"),
        ("x-request-timeout-seconds", "soon", "bad_timeout"),
        ("x-request-timeout-seconds", "0", "bad_timeout"),
        ("x-request-timeout-seconds", "-1", "bad_timeout"),
        ("x-request-timeout-seconds", "nan", "bad_timeout"),
        ("x-request-timeout-seconds", "1e3", "bad_timeout"),
    ],
)
async def test_a_header_that_means_nothing_is_refused(
    client: httpx.AsyncClient, header: str, value: str, code: str
) -> None:
    response = await client.post("/v1/faces/compare", files=BOTH, headers={header: value})
    assert problem_code(response, 400) == code


@pytest.mark.parametrize("name", ["x-request-id", "x-tier", "x-request-timeout-seconds"])
async def test_a_header_that_comes_twice_is_refused(client: httpx.AsyncClient, name: str) -> None:
    values = {"x-request-id": "a", "x-tier": "bulk", "x-request-timeout-seconds": "1"}
    response = await client.post("/v1/faces/compare", files=BOTH, headers=[(name, values[name])] * 2)
    assert problem_code(response, 400) == "repeated_header"
    assert response.json()["field"].lower() == name


async def test_when_the_deadline_passes_the_work_is_cancelled_and_the_answer_is_504(
    client: httpx.AsyncClient, service: Service
) -> None:
    service.answer = lambda: asyncio.Event().wait()
    response = await client.post("/v1/faces/compare", files=BOTH, headers={"x-request-timeout-seconds": "0.2"})
    assert problem_code(response, 504) == "deadline_exceeded"
    await asyncio.wait_for(service.cancelled.wait(), 5)


async def test_a_problem_behind_the_ingress_is_told_with_its_field_and_when_to_retry(
    client: httpx.AsyncClient, service: Service
) -> None:
    service.answer = failing(Problem(429, "queue_full", "full", field="a", retry_after=1.2))
    response = await client.post("/v1/faces/compare", files=BOTH)
    assert problem_code(response, 429) == "queue_full"
    assert response.headers["retry-after"] == "2"
    assert response.json()["field"] == "a"
    assert response.json()["title"] == "Too Many Requests"


async def test_a_number_that_is_none_is_null_in_the_answer(client: httpx.AsyncClient, service: Service) -> None:
    class Measured(BaseModel):
        value: float
        values: list[float]

    service.answer = lambda: Measured(value=math.nan, values=[1.5, math.inf, -math.inf])
    response = await client.post("/v1/faces/compare", files=BOTH)
    assert response.status_code == 200
    body = json.loads(response.content, parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))
    assert (body["value"], body["values"]) == (None, [1.5, None, None])


async def test_a_fault_of_ours_shows_nothing_of_its_cause(client: httpx.AsyncClient, service: Service) -> None:
    service.answer = failing(RuntimeError("secret"))
    response = await client.post("/v1/faces/compare", files=BOTH)
    assert problem_code(response, 500) == "internal_error"
    assert "secret" not in response.text


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/v1/verify", 405, "method_not_allowed"),
        ("GET", "/nowhere", 404, "not_found"),
        ("POST", "/v1/verify%0A", 404, "not_found"),
    ],
)
async def test_what_is_not_served_is_a_problem_too(
    client: httpx.AsyncClient, method: str, path: str, status: int, code: str
) -> None:
    assert problem_code(await client.request(method, path), status) == code


@pytest.mark.parametrize(
    ("path", "allowed"), [("/v1/verify", "POST"), ("/readyz", "GET, HEAD"), ("/docs", "GET, HEAD")]
)
async def test_another_method_is_refused_with_those_that_there_are(
    client: httpx.AsyncClient, path: str, allowed: str
) -> None:
    response = await client.put(path)
    assert problem_code(response, 405) == "method_not_allowed"
    assert response.headers["allow"] == allowed


async def test_readiness_follows_what_is_behind(client: httpx.AsyncClient, service: Service) -> None:
    assert (await client.get("/readyz")).json() == {"status": "ready"}
    service.answer = failing(Problem(503, "not_ready", "wait", retry_after=2))
    assert problem_code(await client.get("/readyz"), 503) == "not_ready"
    assert (await client.get("/healthz")).json() == {"status": "alive"}


async def test_the_documentation_describes_every_pipeline(client: httpx.AsyncClient) -> None:
    schema = (await client.get("/openapi.json")).json()
    verify = schema["paths"]["/v1/verify"]["post"]
    form = verify["requestBody"]["content"]["multipart/form-data"]["schema"]
    assert form["required"] == ["selfie", "document"]
    assert form["properties"]["frames"]["maxItems"] == 8
    answer = verify["responses"]["200"]["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]
    assert {"decision", "reasons", "request_id", "timings_ms"} <= set(
        schema["components"]["schemas"][answer]["required"]
    )
    assert set(verify["responses"]) == {"200", "400", "413", "415", "422", "429", "500", "503", "504"}
    embed = schema["paths"]["/v1/faces/embed"]["post"]
    assert "image/*" in embed["requestBody"]["content"]
    assert embed["parameters"][0] == {
        "name": "aligned", "in": "query", "required": False, "schema": {"type": "boolean", "default": False},
    }  # fmt: skip
    assert (await client.get("/docs")).status_code == 200
    assert "over gRPC on port 9000" in schema["info"]["description"]


@pytest.mark.parametrize("most", [101, 999])
async def test_as_many_pictures_as_the_pipeline_takes_can_be_sent(service: Service, most: int) -> None:
    data = yaml.safe_load(SPEC_FILE.read_text())
    data["pipelines"]["verify"]["inputs"]["frames"] = f"image[{most}..{most}]"
    async with client_of(Spec.model_validate(data), service) as client:

        async def post(frames: int, *more: tuple[str, bytes]) -> httpx.Response:
            both = [("selfie", PICTURE), ("document", PICTURE)]
            return await client.post("/v1/verify", files=[*both, *[("frames", PICTURE)] * frames, *more])

        assert (await post(most)).status_code == 200
        assert service.inputs["frames"] == [PICTURE] * most
        assert problem_code(await post(most + 1), 400) == "too_many_files"
        unknown = await post(most, ("c", PICTURE))
        assert (problem_code(unknown, 400), unknown.json()["field"]) == ("unknown_field", "c")
