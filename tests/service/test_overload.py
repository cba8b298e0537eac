"""Two tiers that together ask for far more than a small service can answer."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest

from tests.service.conftest import Service
from tests.service.test_changes import change, redeploy

LIMITS = """max_ongoing_requests: {0}
  max_queued_requests: {1}
  autoscaling: {{min_replicas: 1, max_replicas: {2}, target_ongoing_requests: {3}}}"""
CLIENTS = {"interactive": 2, "bulk": 12}
PATIENCE_S = 120.0


@pytest.fixture
def small(service: Service) -> Iterator[Service]:
    """The service, whose ingress works on two requests at a time while four wait."""
    before = service.project.spec_file.read_text()
    change(service, "ingress", LIMITS.format(64, 64, 2, 64), LIMITS.format(2, 4, 1, 1))
    yield service
    service.project.spec_file.write_text(before)
    redeploy(service)


def test_under_overload_the_urgent_are_not_refused_for_others_and_the_others_are_not_forgotten(
    small: Service, photos: dict[str, bytes], document: Callable[[str], bytes]
) -> None:
    papers = document("person_a_2")
    enough = Event()
    answers: list[tuple[str, int, str | None]] = []

    def client(tier: str) -> None:
        while not enough.is_set():
            answer = small.post("/v1/verify", {"X-Tier": tier}, selfie=photos["person_a_1"], document=papers)
            answers.append((tier, answer.status_code, answer.json().get("code")))
            if answer.status_code == 429:
                assert answer.headers["content-type"] == "application/problem+json"
                assert f"retry in {answer.headers['retry-after']} s" in answer.json()["detail"]
                enough.wait(int(answer.headers["retry-after"]))

    def has_all() -> bool:
        found = Counter(answers)
        refused = found["bulk", 429, "service_full"] + found["bulk", 429, "too_late"]
        return bool(refused) and all(found[tier, 200, None] >= 3 for tier in CLIENTS)

    with ThreadPoolExecutor(sum(CLIENTS.values())) as pool:
        sending = [pool.submit(client, tier) for tier, count in CLIENTS.items() for _ in range(count)]
        give_up = time.monotonic() + PATIENCE_S
        while not has_all() and time.monotonic() < give_up and not any(each.done() for each in sending):
            time.sleep(0.05)
        enough.set()
        for each in sending:
            each.result()
    assert has_all(), Counter(answers)
    documented = {(200, None), (429, "service_full"), (429, "too_late"), (504, "deadline_exceeded")}
    assert {(status, code) for _, status, code in answers} <= documented
    # Two of them can never fill the queue.
    assert ("interactive", 429, "service_full") not in answers
    assert small.post("/v1/verify", selfie=photos["person_a_1"], document=papers).status_code == 200
