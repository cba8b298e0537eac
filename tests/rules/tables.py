"""All tables of cases, one module for each part of the spec."""

from __future__ import annotations

from tests.rules import model_cases
from tests.rules.case import Case

CASES: dict[str, Case] = {**model_cases.CASES}
