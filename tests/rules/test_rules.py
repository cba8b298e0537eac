from __future__ import annotations

import pytest

from serve_app.spec.findings import RULES
from tests.rules.case import Case, report
from tests.rules.tables import CASES

# Shown by tests of their own: what a file can have wrong before it is a spec is in tests/spec/test_load.py, code that
# does not fit in tests/spec/test_checks.py, the files of models in tests/test_model_files.py, what only a real Triton
# finds in tests/live.
ELSEWHERE = {code for code in RULES if code[0] in "YCL" or "W010" <= code < "W040" or code == "W046"}


def test_the_smallest_spec_breaks_no_rule() -> None:
    assert report({}).findings == []


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_broken_rule_is_found_where_it_is_broken(case: Case) -> None:
    findings = report(case.patch).findings
    assert [finding.code for finding in findings if finding.place == case.place].count(case.code) == 1, findings
    (found,) = (finding for finding in findings if (finding.code, finding.place) == (case.code, case.place))
    assert case.says in found.message


@pytest.mark.parametrize("code", sorted(set(RULES) - ELSEWHERE))
def test_every_rule_has_a_case(code: str) -> None:
    assert code in {case.code for case in CASES.values()}
