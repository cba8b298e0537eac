"""Requests of a size that can be sent, and models whose tensors are never sent."""

from __future__ import annotations

from typing import Any

import pytest

from tests.rules.case import report
from tests.rules.ensemble_cases import ensemble
from tests.rules.model_cases import model

HUGE = {"inputs": {"x": "float32[536870912]"}}


@pytest.mark.parametrize(
    "patch",
    [
        model(inputs={"x": "uint8[2147483647]"}),
        model(inputs={"x": "uint8[2147483647, -1]"}),
        model(inputs={"x": "float32[4]", "z": {"tensor": "uint8[2147483648]", "optional": True}}),
        ensemble(inputs={"x": "float32[-1]"}, models={"m": HUGE}),
        model(exposed=True, inputs={"x": "uint8[2097152]"}),
        model(inputs={"x": "uint8[2097153]"}),
    ],
    ids=["the largest", "a varying one", "optional", "a step's", "as large as request_limit", "not exposed"],
)
def test_a_request_that_can_be_sent_is_no_fault(patch: dict[str, Any]) -> None:
    assert [found.code for found in report(patch).findings if found.code in ("T154", "T155")] == []


def test_a_step_of_an_ensemble_that_clients_may_call_as_well_is_one() -> None:
    found = report(ensemble(inputs={"x": "float32[-1]"}, models={"m": {**HUGE, "exposed": True}})).findings
    assert [(each.code, each.place) for each in found if each.code in ("T154", "T155")] == [
        ("T154", "models.m.inputs.x")
    ]
