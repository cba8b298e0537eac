"""All tables of cases, one module for each part of the spec."""

from __future__ import annotations

from tests.rules import (
    admission_cases,
    amount_cases,
    argument_cases,
    batching_cases,
    ensemble_cases,
    feature_cases,
    handed_on_cases,
    memory_cases,
    model_cases,
    pipeline_cases,
    ray_cases,
    sequence_cases,
    server_cases,
    tensor_cases,
)
from tests.rules.case import Case

CASES: dict[str, Case] = {
    **admission_cases.CASES,
    **amount_cases.CASES,
    **argument_cases.CASES,
    **batching_cases.CASES,
    **ensemble_cases.CASES,
    **feature_cases.CASES,
    **handed_on_cases.CASES,
    **memory_cases.CASES,
    **model_cases.CASES,
    **pipeline_cases.CASES,
    **ray_cases.CASES,
    **sequence_cases.CASES,
    **server_cases.CASES,
    **tensor_cases.CASES,
}
