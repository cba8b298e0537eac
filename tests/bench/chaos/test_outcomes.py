"""What counts as documented, and from when on a service counts as healthy."""

from __future__ import annotations

import json

import pytest

from serve_app.bench.chaos.outcomes import Kind, Seen, healthy_since, of_http, tally


def problem(code: str) -> bytes:
    return json.dumps({"code": code}).encode()


@pytest.mark.parametrize(
    ("status", "body", "kind", "code"),
    [
        (200, b"anything", "answered", "200"),
        (503, problem("model_unavailable"), "refused", "503 model_unavailable"),
        (429, problem("too_late"), "refused", "429 too_late"),
        (504, problem("deadline_exceeded"), "refused", "504 deadline_exceeded"),
        (500, problem("internal_error"), "undocumented", "500 internal_error"),
        (503, problem("too_late"), "undocumented", "503 too_late"),
        (422, problem("no_face"), "undocumented", "422 no_face"),
        (503, b"upstream", "undocumented", "503 without a reason"),
        (503, b"[1]", "undocumented", "503 None"),
    ],
)
def test_a_route_refuses_with_the_codes_of_the_readme_only(status: int, body: bytes, kind: str, code: str) -> None:
    assert of_http(status, body, protocol=False) == (kind, code)


@pytest.mark.parametrize(
    ("status", "body", "failing", "kind"),
    [
        (503, b'{"error": "gone"}', False, "refused"),
        (503, b"{}", False, "undocumented"),
        (500, b'{"error": "told to fail"}', False, "undocumented"),
        (500, b'{"error": "told to fail"}', True, "refused"),
        (400, b'{"error": "shape"}', False, "undocumented"),
    ],
)
def test_the_protocol_refuses_with_an_error_and_fails_only_where_the_model_was_told_to(
    status: int, body: bytes, failing: bool, kind: str
) -> None:
    assert of_http(status, body, protocol=True, failing=failing) == (kind, str(status))


def seen(sent: float, ended: float, kind: Kind = "answered", target: str = "a") -> Seen:
    return Seen(target, sent, ended, kind, "code")


def test_connections_may_be_reset_only_where_an_ingress_ends() -> None:
    outcomes = [seen(0, 1), seen(0, 1, "refused"), seen(0, 1, "reset"), seen(0, 1, "undocumented")]
    strict, lenient = tally(outcomes, resets=False), tally(outcomes, resets=True)
    assert (strict.answered, sum(strict.refused.values()), sum(strict.undocumented.values())) == (1, 1, 2)
    assert (lenient.answered, sum(lenient.refused.values()), sum(lenient.undocumented.values())) == (1, 2, 1)


def test_a_service_that_answered_everything_was_healthy_from_the_start() -> None:
    assert healthy_since([seen(9.0, 9.5, "refused"), seen(10.1, 10.2)], ["a"], 10.0) == 10.0


def test_an_answer_that_had_to_wait_is_not_one_of_a_healthy_service() -> None:
    late = Seen("a", 10.0, 12.0, "answered", "200", within=1.0)
    assert healthy_since([late, seen(12.1, 12.2)], ["a"], 10.0) == 12.0


def test_it_is_healthy_from_the_end_of_the_last_request_that_was_not_answered() -> None:
    outcomes = [seen(10.0, 10.1), seen(10.2, 13.0, "refused"), seen(11.0, 11.1), seen(13.1, 13.2)]
    assert healthy_since(outcomes, ["a"], 10.0) == 13.0


@pytest.mark.parametrize(
    "outcomes", [[], [seen(10.1, 10.2, "refused")], [seen(10.1, 12.0, "refused"), seen(11.0, 11.1)]]
)
def test_it_is_not_healthy_before_an_answer_to_a_request_that_was_sent_after_that(outcomes: list[Seen]) -> None:
    assert healthy_since(outcomes, ["a"], 10.0) is None


def test_every_target_has_to_be_answered() -> None:
    assert healthy_since([seen(10.1, 10.2)], ["a", "b"], 10.0) is None
    assert healthy_since([seen(10.1, 10.2), seen(10.1, 10.3, target="b")], ["a", "b"], 10.0) == 10.0
