"""What every request has in common, whatever becomes of it."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from serve_app.problem import Problem
from tests.http.conftest import BOTH, Listening, Service, failing, problem_code
from tests.protocol.asgi import Behind
from tests.protocol.codec import add_json


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    """What goes to Ray Serve's logs, which do not go further."""
    logger = logging.getLogger("ray.serve")
    before = logger.propagate
    logger.propagate = True
    caplog.set_level(logging.INFO, "ray.serve")
    yield caplog
    logger.propagate = before


def lines(log: pytest.LogCaptureFixture) -> list[str]:
    """Each request's line, without the time that it took."""
    found = [record.getMessage().split() for record in log.records if getattr(record, "serve_access_log", False)]
    return [" ".join([*words[:-2], words[-1]]) for words in found]


async def test_the_protocol_is_below_v2_and_the_api_everywhere_else(listening: Listening) -> None:
    async with listening.client() as client:
        assert (await client.get("/v2")).json()["version"] == "2.51.0"
        assert (await client.get("/v2/nowhere")).json() == {
            "error": "Not Found: the Open Inference Protocol has no such path here"
        }
        assert problem_code(await client.get("/v22"), 404) == "not_found"
        assert problem_code(await client.get("/"), 404) == "not_found"


async def test_an_unfit_request_id_is_refused_in_each_ones_own_form(listening: Listening) -> None:
    async with listening.client(headers={"x-request-id": "a b"}) as client:
        assert problem_code(await client.get("/healthz"), 400) == "bad_request_id"
        answer = await client.get("/v2")
    assert (answer.status_code, list(answer.json())) == (400, ["error"])
    assert "X-Request-ID is unfit" in answer.json()["error"]
    assert answer.headers["x-request-id"] != "a b"


async def test_the_clients_id_is_in_every_answer_and_in_the_log(
    listening: Listening, log: pytest.LogCaptureFixture
) -> None:
    async with listening.client(headers={"x-request-id": "mine"}) as client:
        answers = [
            await client.post("/v1/faces/compare", files=BOTH),
            await client.post("/v1/faces/compare"),
            await client.get("/v1/faces/compare"),
            await client.post("/v2/models/add/infer", json=add_json()),
            await client.get("/v1/of/Anna%20Maria?name=Eriksson"),
            await client.get("/healthz"),
        ]
    assert [answer.headers["x-request-id"] for answer in answers] == ["mine"] * 6
    assert lines(log) == [
        "POST /v1/faces/compare 200 mine",
        "POST /v1/faces/compare 415 mine",
        "GET /v1/faces/compare 405 mine",
        "POST /v2/models/add/infer 200 mine",
        "GET (no such path) 404 mine",
    ]


@pytest.mark.parametrize("path", ["/v1/faces/compare", "/v2/models/add/infer"])
async def test_a_crash_shows_nothing_and_its_cause_is_in_the_log_under_the_requests_id(
    listening: Listening, service: Service, behind: Behind, log: pytest.LogCaptureFixture, path: str
) -> None:
    behind.answer = RuntimeError("secret")
    service.answer = failing(RuntimeError("secret"))
    async with listening.client(headers={"x-request-id": "mine"}) as client:
        answer = await client.post(path, **({"files": BOTH} if "v1" in path else {"json": add_json()}))
    assert answer.status_code == 500
    assert "secret" not in answer.text
    assert "its log has the cause under request mine" in answer.text
    (failed,) = [record for record in log.records if record.levelno == logging.ERROR]
    assert "mine" in failed.getMessage()
    assert "RuntimeError: secret" in log.text


async def test_a_problem_is_no_crash(listening: Listening, service: Service, log: pytest.LogCaptureFixture) -> None:
    service.answer = failing(Problem(422, "no_face", "none"))
    async with listening.client() as client:
        assert problem_code(await client.post("/v1/faces/compare", files=BOTH), 422) == "no_face"
    assert [record for record in log.records if record.levelno > logging.INFO] == []
