"""Every code is documented, by the same words that the findings have."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from serve_app.reports.page import every_rule, render_page, render_rule

ROOT = Path(__file__).parents[2]
PAGE = render_page()
MODULES = {
    code: path
    for path in (ROOT / "serve_app").rglob("*.py")
    for code in re.findall(r"= (?:error|warning)\(\s*\"([A-Z]\d{3})\"", path.read_text(encoding="utf-8"))
}
CODES = sorted(MODULES)


def test_the_committed_page_is_what_the_rules_say() -> None:
    assert (ROOT / "docs" / "findings.md").read_text(encoding="utf-8") == PAGE, (
        "run `tandem explain > docs/findings.md`"
    )


@pytest.mark.parametrize("code", CODES)
def test_every_code_in_the_sources_is_on_the_page(code: str) -> None:
    assert PAGE.count(f"</a>{code} |") == 1


def test_every_family_has_a_title_of_its_own() -> None:
    assert len(CODES) > 50
    assert "Others" not in PAGE


def test_a_row_is_one_line_with_five_cells() -> None:
    rows = [line for line in PAGE.splitlines() if line.startswith("| <a")]
    assert len(rows) == len(every_rule())
    for row in rows:
        assert len(re.findall(r"(?<!\\)\|", row)) == 6, row


def test_one_rule_is_explained_with_its_reason_and_remedy() -> None:
    rule = every_rule()["Y020"]
    shown = render_rule(rule)
    for part in (rule.code, rule.severity, rule.title, rule.consequence, rule.remedy):
        assert part in shown


@pytest.mark.parametrize("code", CODES)
def test_the_map_of_codes_names_the_module_of_each(code: str) -> None:
    contributing = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    (row,) = [line for line in contributing.splitlines() if line.startswith(f"| {code[:2]}xx |")]
    assert f"{MODULES[code].name}`" in row
