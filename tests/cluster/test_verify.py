"""What `tandem verify` tells a person."""

from __future__ import annotations

from typing import Any

import pytest

from serve_app.cluster.verify import show_verification


def answer(antifraud: dict[str, Any] | None, reasons: list[str]) -> dict[str, Any]:
    return {
        "decision": "review" if reasons else "approve",
        "reasons": reasons,
        "face": {"match": True, "similarity": 0.7731, "threshold": 0.363},
        "liveness": {"assessed": True, "score": 0.912},
        "document": {"mrz": {"format": "TD3", "valid": True}, "fields": {"sex": "F", "surname": None}},
        "antifraud": antifraud,
        "timings_ms": {"total": 492.29},
    }


@pytest.mark.parametrize(
    ("antifraud", "reasons", "decision", "risk"),
    [
        ({"risk": 0.0181}, [], "approve", "risk 0.018"),
        (None, ["ANTIFRAUD_UNAVAILABLE"], "review  (ANTIFRAUD_UNAVAILABLE)", "could not be had"),
    ],
    ids=["whole", "without antifraud"],
)
def test_an_answer_is_told_in_a_few_lines(
    antifraud: dict[str, Any] | None, reasons: list[str], decision: str, risk: str
) -> None:
    assert show_verification(answer(antifraud, reasons)).splitlines() == [
        f"decision   {decision}",
        "face       match: similarity 0.773, threshold 0.363",
        "liveness   score 0.91",
        "MRZ        TD3, every check digit right",
        "  sex               F",
        f"antifraud  {risk}",
        "took       492 ms",
    ]
