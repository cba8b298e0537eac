"""A mistake in brackets hides nothing else in there, and makes nothing else look wrong."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serve_app.spec.load import examine
from serve_app.spec.recovery import MOST
from tests.spec.test_recovery import AUTOSCALING, TEXT

NOT_YAML = "Y002"
# What stands for the line `autoscaling: {…}`, and what is found in it: the line (0 is the first), the code, and the
# place or words. `two` is a wrong value.
BROKEN = {
    "a value": (
        "{min_replicas: @1, max_replicas: two, target_ongoing_requests: 4}",
        [(0, NOT_YAML, "a text cannot start with '@'"), (0, "Y012", "max_replicas")],
    ),
    "two values": (
        "{min_replicas: @1, max_replicas: two, target_ongoing_requests: `4`}",
        [(0, NOT_YAML, "start with '@'"), (0, "Y012", "max_replicas"), (0, NOT_YAML, "start with '`'")],
    ),
    "no comma": (
        "{min_replicas: 1 max_replicas: two, target_ongoing_requests: 4}",
        [(0, "Y012", "max_replicas"), (0, NOT_YAML, "a comma is missing")],
    ),
    "no comma at the end of a line": (
        "{\n    min_replicas: 1,\n    max_replicas: two  # or more\n    target_ongoing_requests: `4`,\n    x: 1,\n  }",
        [
            (2, "Y012", "max_replicas"),
            (3, NOT_YAML, "a comma is missing"),
            (3, NOT_YAML, "start with '`'"),
            (4, "Y010", "x"),
        ],
    ),
    "no comma between quotes": (
        '{"min_replicas": 1, "max_replicas": "two" "target_ongoing_requests": 4}',
        [(0, "Y012", "max_replicas"), (0, NOT_YAML, "a comma is missing")],
    ),
    "a comma too many": (
        "{min_replicas: 1,, max_replicas: two, target_ongoing_requests: 4}",
        [(0, NOT_YAML, "a value is missing"), (0, "Y012", "max_replicas")],
    ),
    "a quote that is never closed": (
        '{min_replicas: "1, max_replicas: two, target_ongoing_requests: 4}',
        [(0, NOT_YAML, "a quote is opened"), (0, "Y012", "max_replicas")],
    ),
    "quotes that hold brackets and commas": (
        "{min_replicas: \"1], {2\", max_replicas: @2, target_ongoing_requests: '4, }'}",
        [(0, "Y012", "min_replicas"), (0, NOT_YAML, "start with '@'"), (0, "Y012", "target_ongoing_requests")],
    ),
    "a bracket for a brace": (
        "{min_replicas: 1, max_replicas: two, target_ongoing_requests: 4]  # as usual",
        [(0, "Y012", "max_replicas"), (0, NOT_YAML, "a comma is missing")],
    ),
    "a bracket too many": (
        "{min_replicas: 1, max_replicas: two], target_ongoing_requests: 4}",
        [(0, "Y012", "max_replicas"), (0, NOT_YAML, "a comma is missing")],
    ),
    "a brace too many": (
        "{min_replicas: 1, max_replicas: two, target_ongoing_requests: 4}}",
        [(0, "Y012", "max_replicas"), (0, NOT_YAML, "a } that closes nothing")],
    ),
    "a brace too early": (
        "{min_replicas: 1, max_replicas: two}, target_ongoing_requests: 4}",
        [(0, "Y012", "max_replicas"), (0, NOT_YAML, "all brackets are closed before this comma")],
    ),
    "a bracket within that is never closed": (
        "{min_replicas: 1, max_replicas: [2, target_ongoing_requests: x}",
        [
            (0, "Y012", "max_replicas"),
            (0, "Y012", "target_ongoing_requests"),
            (0, NOT_YAML, "the bracket is never closed by ]"),
        ],
    ),
    "a brace that is never closed": (
        "{min_replicas: 1, max_replicas: two,\n    target_ongoing_requests: 4  # as usual",
        [(0, NOT_YAML, "a bracket is opened and never closed"), (0, "Y012", "max_replicas")],
    ),
    "a comment in place of a value": (
        "{min_replicas: 1, max_replicas: two, target_ongoing_requests: #4}",
        [(0, NOT_YAML, "a bracket is opened and never closed"), (0, "Y012", "max_replicas")],
    ),
    "a bracket in a word": (
        "{min_replicas: 1, max_[replicas: 2, target_ongoing_requests: x}",
        [(0, NOT_YAML, "a comma is missing"), (0, "Y012", "target_ongoing_requests")],
    ),
    "another sign for a comma": (
        "{min_replicas: 1, max_replicas: two; target_ongoing_requests: 4}",
        [(0, "Y012", "max_replicas"), (0, NOT_YAML, "a comma is missing")],
    ),
    "a dash": (
        "{- min_replicas: 1, max_replicas: two, target_ongoing_requests: 4}",
        [(0, NOT_YAML, "a value is missing"), (0, "Y012", "max_replicas")],
    ),
    "a tab before a line": (
        "{min_replicas: 1,\n\tmax_replicas: two,\n    target_ongoing_requests: @4}",
        [(1, NOT_YAML, "a tab stands"), (1, "Y012", "max_replicas"), (2, NOT_YAML, "start with '@'")],
    ),
    "tabs before all lines": (
        "{\n\tmin_replicas: 1,\n\tmax_replicas: two,\n\ttarget_ongoing_requests: 4\n\t}",
        [(1, NOT_YAML, "a tab stands"), (2, "Y012", "max_replicas")],
    ),
    "a tab between": (
        "{min_replicas: 1,\tmax_replicas: two, target_ongoing_requests: 4}",
        [(0, NOT_YAML, "a tab stands"), (0, "Y012", "max_replicas")],
    ),
    "a quote in a line that is not of the brackets": ('{\n  "', [(1, NOT_YAML, "a quote is opened")]),
}
BEFORE = TEXT[: TEXT.index(AUTOSCALING)].count("\n") + 1
USUAL = [each.place for each in examine(TEXT).findings]


@pytest.mark.parametrize(("text", "expected"), BROKEN.values(), ids=BROKEN)
def test_a_mistake_in_brackets_is_one_finding_and_hides_no_other(
    text: str, expected: list[tuple[int, str, str]]
) -> None:
    findings = examine(TEXT.replace(AUTOSCALING, f"  autoscaling: {text}")).findings
    found = [each for each in findings if each.place not in USUAL]
    assert [(each.line - BEFORE, each.code) for each in found] == [(line, code) for line, code, _ in expected]
    for each, (*_, says) in zip(found, expected, strict=True):
        assert says in each.message if each.code == NOT_YAML else each.place == f"ingress.autoscaling.{says}"


FIELDS = {
    "backend": "python",
    "inputs": '{x: "float32[4]"}',
    "outputs": "{y: {tensor: 'float32[4]'}}",
    "max_batch": "8",
    "latency_budget": "100ms",
    "versions": "{only: [1, 2]}",
}
BREAKS = ["@{}", "`{}", '"{}', "{}: 1", "%{}", "{} }}", "{} ]", "*"]


@st.composite
def broken_model(draw: st.DrawFn) -> tuple[str, str]:
    """A model in braces, with an unknown key and one entry broken; and that entry's key."""
    keys = draw(st.permutations([*FIELDS, "colour"]))
    wrong = draw(st.sampled_from([key for key in keys[:-1] if key != "colour"]))
    how = draw(st.sampled_from(BREAKS))
    entries = [f"{key}: {FIELDS.get(key, 'red')}" for key in keys]
    is_scalar = FIELDS[wrong][0] not in "{["
    if is_scalar and draw(st.booleans()):
        entries[keys.index(wrong)] = f"{wrong}: {how.format(FIELDS[wrong])}"
        joined = ",\n     ".join(entries)
    else:
        parts = [f"{entry}{'' if key == wrong else ','}" for key, entry in zip(keys, entries, strict=True)]
        joined = "\n     ".join(parts)
        wrong = keys[keys.index(wrong) + 1]  # where the comma turns out to be missing
    return f"  n: {{\n     {joined}\n  }}\n", wrong


@given(broken_model())
def test_a_broken_entry_of_a_model_in_braces_hides_no_other(model: tuple[str, str]) -> None:
    text, wrong = model
    head, rest = TEXT.split("  n:\n", 1)
    whole = head + text + rest[rest.index("accept:") :]
    found = [each for each in examine(whole).findings if each.place not in USUAL]
    line = next(number for number, line in enumerate(whole.splitlines(), 1) if line.startswith(f"     {wrong}:"))
    assert [each.line for each in found if each.code == NOT_YAML] == [line], found
    assert [each.place for each in found if each.code != NOT_YAML] == ["models.n.colour"], found


def test_a_spec_in_json_is_read_past_its_mistakes(example: dict[str, Any]) -> None:
    text = json.dumps(example, indent=2)
    lines = {}
    for old, new in [
        ('"sla": "8s",', '"sla": 8,'),
        ('"host": "127.0.0.1",', '"host": "127.0.0.1"'),
        ('"device": "gpu"', '"device": "gpu'),
        ('"instances": 2,', '"instances": two,'),
        ('\n  },\n  "stages"', '\n  }\n  "stages"'),
    ]:
        lines[new] = text[: text.index(old)].count("\n") + 1
        text = text.replace(old, new, 1)
    sla, host, device, instances, stages = lines.values()
    found = [(each.line, each.code) for each in examine(text).findings]
    assert found == [
        (sla, "Y020"),
        (host + 1, NOT_YAML),
        (device, NOT_YAML),
        (instances, "Y012"),
        (stages + 2, NOT_YAML),
    ]


@pytest.mark.parametrize(
    "text", ["[" * 100_000, "{a: " * 100_000, "[" + "a, " * 100_000 + "@]", "{" + "a: @, " * 1_000, "[" + "}" * 5_000]
)
def test_brackets_without_end_are_answered(text: str) -> None:
    findings = examine(TEXT.replace(AUTOSCALING, f"  autoscaling: {text}")).findings
    assert 0 < len(findings) < 3 * MOST
