"""What is no YAML hides nothing else in the file, and makes nothing else look wrong."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from serve_app.spec.load import LARGEST, examine
from serve_app.spec.recovery import MOST

# `service.sla` and `accept` are wrong values, before and behind all that is broken.
TEXT = """\
application: small
service:
  sla: 8
  host: 127.0.0.1
  port: 8000
  upload_limit: 1MiB
  request_limit: 2MiB
  retry_after: 1s
ray:
  port: 6379
  dashboard_port: 8265
  object_store: 128MiB
tiers:
  first: {priority: 1, default: true}
  second: {priority: 2}
profiles:
  embedded:
    device: cpu
    onnx: python
    ray_version: 2.60.0
    triton:
      version: 2.51.0
      cpus: 1
      memory: 1GiB
      startup_timeout: 60s
      exit_timeout: 10s
      health_check_period: 2s
      health_check_timeout: 10s
ingress:
  cpus: 0.1
  memory: 512MiB
  max_ongoing_requests: 8
  max_queued_requests: 8
  autoscaling: {min_replicas: 1, max_replicas: 2, target_ongoing_requests: 4}
models:
  m:
    backend: python
    inputs: {x: "float32[4]"}
    outputs: {y: "float32[4]"}
    max_batch: 8
    latency_budget: 100ms
    batching:
      queue_delay: 1ms
      preferred_sizes:
        - 4
        - 8
  n:
    backend: python
    inputs: {x: "float32[4]"}
    outputs: {y: "float32[4]"}
    max_batch: 8
    latency_budget: 100ms
    versions: {only: [1]}
accept:
  - code: L007
    at: models.m
    because: 5
"""
LINES = TEXT.splitlines()
AUTOSCALING = next(line for line in LINES if line.startswith("  autoscaling:"))
PLANTED = {("Y020", "service.sla"), ("Y012", "accept.0.because")}
# The line that is broken (by what it begins with), what stands there instead, and the words for it.
BROKEN = {
    "a second colon": ("  host:", "  host: a: b", "a second `: ` in one line"),
    "@": ("  upload_limit:", "  upload_limit: @1MiB", "a text cannot start with '@'"),
    "%": ("      memory: 1GiB", "      memory: %1GiB", "a text cannot start with '%'"),
    "a backtick": ("  object_store:", "  object_store: `128MiB`", "a text cannot start with '`'"),
    "a star": ("    backend:", "    backend: *.py", "a text cannot start with & or *"),
    "an escape": ("    backend:", '    backend: "C:\\python"', "mean nothing in double quotes"),
    "an escape of no character": ("    backend:", '    backend: "\\UFFFFFFFF"', "this escape names no character"),
    "a quote": ("  host:", '  host: "127.0.0.1', "a quote is opened and never closed"),
    "a single quote": ("      version:", "      version: '2.51.0", "a quote is opened and never closed"),
    "a quote that another one ends": ('    inputs: {x: "', '    inputs: {x: "float32[4]}', "a quote is opened"),
    "a quote with none below": ("    versions:", '    versions: {only: "1]}', "a quote is opened and never closed"),
    "a bracket": ("    versions:", "    versions: {only: [1]", "a bracket is opened and never closed"),
    "a brace": ("  first:", "  first: {priority: 1, default: true", "a bracket is opened and never closed"),
    "a brace at a part's end": ("  autoscaling:", AUTOSCALING[:-1], "a bracket is opened"),
    "a bracket with a comma": ("  memory: 512", "  memory: [512MiB,", "a bracket is opened and never closed"),
    "a bracket too many": ("    versions:", "    versions: {only: [1]]}", "a comma is missing"),
    "a brace too many": ("  second:", "  second: {priority: 2}}", "a } that closes nothing"),
    "a brace that is missing": ("  second:", "  second: priority: 2}", "a second `: ` in one line"),
    "a bracket for a brace": ("  second:", "  second: {priority: 2]", "a comma is missing"),
    "a bracket for a value": ("    versions:", "    versions: ]", "a ] that closes nothing"),
    "no space behind the first key's colon": ("  port: 6379", "  port:6379", "put a space behind it, as port: 6379"),
    "no space behind a colon": ("  port: 8000", "  port:8000", "put a space behind it, as port: 8000"),
    "no space behind the last key's": ("  object_store", "  object_store:1MiB", "put a space behind it, as object_"),
    "no space before a brace": ("  first:", "  first:{priority: 1, default: true}", "put a space behind it, as first:"),
    "no colon": ("  port: 8000", "  port 8000", "a line without a key and its colon"),
    "no colon of a part": ("    triton:", "    triton", "a line without a key and its colon"),
    "no colon of a name": ("  n:", "  n", "a line without a key and its colon"),
    "no colon of the only name": ("  embedded:", "  embedded  # here", "a line without a key and its colon"),
    "no colon of a section": ("ray:", "ray", "a line without a key and its colon"),
    "one space too many": ("  host:", "   host: 127.0.0.1", "the line is indented deeper than its mapping"),
    "one space too many behind quotes": ("    outputs:", "     outputs: {}", "the line does not belong to"),
    "one space too few": ("  host:", " host: 127.0.0.1", "the line does not belong to"),
    "one space too many of the first key": ("  port: 6379", "   port: 6379", "the line does not belong to"),
    "one space too few of the first key": ("  port: 6379", " port: 6379", "the line is indented deeper"),
    "one space too many of a part": ("    triton:", "     triton:", "the line is indented deeper"),
    "one space too many of a name": ("  n:", "   n:", "the line does not belong to"),
    "one space too few of a name": ("  n:", " n:", "the line does not belong to"),
    "one space too many of a section": ("ray:", " ray:", "the line does not belong to"),
    "one space too many of the first section": ("application:", " application: small", "stands behind the"),
    "a tab": ("      cpus:", "\tcpus: 1", "a tab stands where only spaces may"),
    "a tab behind spaces": ("      cpus:", "    \tcpus: 1", "a tab stands where only spaces may"),
    "a tab before a part": ("    triton:", "\ttriton:", "a tab stands where only spaces may"),
    "a tab before a section": ("ray:", "\tray:", "a tab stands where only spaces may"),
    "a tab before a value": ("      cpus:", "      cpus:\t1", "a tab stands where only spaces may"),
    "a tab behind a value": ("      cpus:", "      cpus: 1\t", "a tab stands where only spaces may"),
    "a dash": ("  host:", "  - host: 127.0.0.1", "a dash stands before a key"),
    "a dash before a section": ("ray:", "- ray:", "a dash stands before a key"),
    "a dash as a value": ("    versions:", "    versions: - 1", "a list's `- ` stands behind a key"),
    "an item": ("        - 8", "        - @8", "a text cannot start with '@'"),
    "an item without its dash": ("        - 8", "        8", "a line without a key and its colon"),
    "an item's key": ("    at:", "    at: `models.m`", "a text cannot start with '`'"),
    "an item's first key": ("  - code:", "  - code: @L007", "a text cannot start with '@'"),
    "a block that is none": ("    backend:", "    backend: |python", "start a text of several lines"),
    "nonsense": ("  host:", "  ?!! what is this", "a line without a key and its colon"),
    "a tag for the first key": ("application:", "!application: small", "a line without a key and its colon"),
    "nonsense before all": ("application:", "  what is this", "a line without a key and its colon"),
    "a line of %": ("ray:", "%ray:", "a line that starts with % and means nothing"),
    "a character that cannot be seen": ("  host:", "  host: 127.0.\x070.1", "the character '\\x07' is not allowed"),
    "a NUL": ("    backend:", "    back\x00end: python", "the character '\\x00' is not allowed"),
}


def broken(begin: str, text: str) -> tuple[str, int]:
    """The text with another line, and that line's number."""
    number = next(number for number, line in enumerate(LINES) if line.startswith(begin))
    return "\n".join([*LINES[:number], text, *LINES[number + 1 :]]) + "\n", number + 1


def test_the_text_has_two_wrong_values_and_nothing_else() -> None:
    assert {(finding.code, finding.place) for finding in examine(TEXT).findings} == PLANTED


@pytest.mark.parametrize(("begin", "text", "says"), BROKEN.values(), ids=BROKEN)
def test_what_is_broken_is_one_finding_at_its_line_and_hides_no_other(begin: str, text: str, says: str) -> None:
    whole, line = broken(begin, text)
    planted = [(each.line, each.code) for each in examine(TEXT).findings]
    findings = examine(whole).findings
    assert [(each.line, each.code) for each in findings if each.place != "the spec"] == planted, findings
    ((at, message),) = [(each.line, each.message) for each in findings if each.place == "the spec"]
    assert at == line
    assert says in message


def dedents(text: str) -> Iterator[tuple[int, str]]:
    """The text with each line in turn indented by less, as far as that is no YAML; and the line's number."""
    lines = text.splitlines()
    for number, line in enumerate(lines):
        for indent in range(0, len(line) - len(line.lstrip()), 2):
            broken = "\n".join([*lines[:number], " " * indent + line.lstrip(), *lines[number + 1 :]]) + "\n"
            try:
                yaml.compose(broken)
            except yaml.YAMLError:
                yield number + 1, broken


def test_a_line_indented_too_little_is_the_only_finding_where_that_is_no_yaml(example_text: str) -> None:
    """The syntax error is at another line, below."""
    tried = 0
    for line, text in dedents(example_text):
        if tried % 7 == 0:  # each takes as long as a whole spec
            findings = [(each.line, each.message) for each in examine(text).findings]
            of_list = text.splitlines()[line - 1].startswith("- ")
            assert findings == [(line, NOT_THERE if of_list else LESS)], f"{text.splitlines()[line - 1]!r}: {findings}"
        tried += 1
    assert tried > 200


NOT_THERE = (
    "the line does not belong to the mapping or list above it: it cannot be read; "
    "indent every key of a mapping by the same number of spaces"
)
LESS = (
    "the line is indented less than the mapping that goes on below it: it cannot be read; "
    "indent every key of a mapping by the same number of spaces"
)


@pytest.mark.parametrize("item", range(5))
def test_an_item_at_the_column_of_its_lists_key_is_to_blame_alone(example_text: str, item: int) -> None:
    lines = example_text.splitlines()
    number = lines.index("accept:                      # warnings that are known and meant") + 1 + item
    lines[number] = lines[number].lstrip()
    findings = examine("\n".join(lines) + "\n").findings
    assert [(each.line, each.message) for each in findings] == [(number + 1, NOT_THERE)]


def test_several_lines_indented_too_little_are_one_mistake(example_text: str) -> None:
    two = "    latency_budget: 150ms\n    exposed: true\n"
    assert two in example_text
    text = example_text.replace(two, two.replace("    ", "  "), 1)
    line = text[: text.index("  latency_budget: 150ms\n  exposed")].count("\n") + 1
    assert [(each.line, each.message) for each in examine(text).findings] == [(line, LESS)]


def test_a_line_that_fits_where_it_stands_is_not_to_blame(example_text: str) -> None:
    text = example_text.replace(
        "  grpc: {port: 9000}\n", "  grpc:\n    port: 9000\n  http: {root_path: /kyc}\n    tls: {}\n", 1
    )
    assert text != example_text
    ((line, message),) = [(each.line, each.message) for each in examine(text).findings]
    assert text.splitlines()[line - 1] == "    tls: {}"
    assert message.startswith("the line does not belong to the mapping")


@pytest.mark.parametrize("key", ["interactive", "standard", "bulk"])
def test_a_dash_too_many_is_to_be_removed(example_text: str, key: str) -> None:
    text = example_text.replace(f"  {key}: {{", f"  - {key}: {{", 1)
    assert text != example_text
    ((line, message),) = [(each.line, each.message) for each in examine(text).findings]
    assert line == text[: text.index(f"  - {key}")].count("\n") + 1
    assert message == "a dash stands before a key of a mapping: it cannot be read; remove the dash"


def test_an_item_of_a_list_keeps_its_dash(example_text: str) -> None:
    text = f"{example_text}  code: T116\n"
    assert not any("remove the dash" in each.message for each in examine(text).findings)


def test_each_of_many_breaks_is_found(example_text: str) -> None:
    """Every kind in one file, each in a model of its own, with a wrong value in every second model."""
    kinds = [(begin, text) for begin, text, _ in BROKEN.values() if begin.startswith("    ")]
    model = [line for line in LINES[LINES.index("  n:") :] if line.startswith("    ")][:6]
    lines, expected = LINES[: LINES.index("  m:")], [("service.sla", 3)]
    for number, (begin, text) in enumerate(kinds):
        changed = [text if line.startswith(begin) else line for line in model]
        if changed == model:
            continue
        lines += [f"  m{number}:", *changed]
        expected.append(("the spec", len(lines) - len(model) + changed.index(text) + 1))
        lines += [f"  n{number}:", *model, "    cache: 8"]
        expected.append((f"models.n{number}.cache", len(lines)))
    findings = examine("\n".join(lines) + "\n").findings
    assert len(expected) > 20
    assert [(each.place, each.line) for each in findings] == expected


BREAKS = list(":[]{}\"'\t-&*!%@`,#|>? ")


@st.composite
def breaks(draw: st.DrawFn) -> str:
    """The text with a character more or less somewhere, or a line indented otherwise."""
    number = draw(st.sampled_from([0, *range(3, LINES.index("accept:"))]))
    line = LINES[number]
    at = draw(st.integers(0, len(line)))
    kind = draw(st.sampled_from(["more", "less", "indent", "cut"]))
    if kind == "more":
        line = line[:at] + draw(st.sampled_from(BREAKS)) + line[at:]
    elif kind == "less":
        line = line[:at] + line[at + 1 :]
    elif kind == "indent":
        line = " " * draw(st.integers(0, 9)) + line.lstrip()
    else:
        line = line[:at]
    return "\n".join([*LINES[:number], line, *LINES[number + 1 :]]) + "\n"


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(text=breaks())
def test_whatever_breaks_a_line_the_values_of_other_parts_are_examined(text: str) -> None:
    found = {(finding.code, finding.place) for finding in examine(text).findings}
    assert found >= PLANTED, text


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_any_text_is_examined_to_an_end(data: st.DataObject) -> None:
    nonsense = st.text(" -:[]{}\"'|>&*!%@#?,ab\t\n", max_size=12)
    lines = data.draw(st.lists(st.sampled_from(LINES) | nonsense, max_size=30))
    for finding in examine("\n".join(lines)).findings:
        assert finding.line <= len("\n".join(lines).splitlines()) + 1
        assert chr(0xF0000) not in finding.show("spec.yaml")


@pytest.mark.parametrize(
    "line",
    ["  a: @x", '  a: "x', "  a: [x", "a:x", "\ta: x", "   a: x: y", "- a: x", "  'a: |x", "]", "x\x07", "a: \t", "&"],
)
def test_a_file_that_is_broken_in_every_line_is_answered(line: str) -> None:
    text = "service:\n" + f"{line}\n" * (LARGEST // (len(line) + 1) - 2)
    findings = examine(text).findings
    assert 0 < len(findings) < 3 * MOST


def test_more_breaks_than_can_be_shown_are_said_to_be_there() -> None:
    text = TEXT.replace("models:", "models:\n" + "".join(f"  b{each}: @\n" for each in range(MOST + 50)), 1)
    findings = examine(text).findings
    assert [each.code for each in findings].count("Y002") == MOST
    last = findings[-1]
    assert (last.code, last.line) == ("Y027", LINES.index("models:") + 2 + MOST)
    assert findings[0].place == "service.sla"
    assert [each for each in findings if each.code not in ("Y002", "Y020", "Y027")] == []


def test_more_odd_characters_than_can_be_shown_are_said_to_be_there() -> None:
    text = TEXT.replace("ray:", "  retry_after: 1s\nx host: 127.0.0.1\n" * (MOST + 50) + "ray:", 1)
    findings = examine(text).findings
    assert sum("stands before" in each.message for each in findings) == MOST
    assert findings[-1].code == "Y027"
    assert {each.code for each in findings} == {"Y002", "Y005", "Y020", "Y027"}


def test_characters_that_cannot_be_seen_are_found_in_every_line() -> None:
    text = TEXT.replace("host: 127", "host:\x07 127").replace("backend: python", "backend: pyth\x1bon")
    findings = [(each.line, each.code) for each in examine(text).findings if each.place == "the spec"]
    lines = [number for number, line in enumerate(text.splitlines(), 1) if "\x07" in line or "\x1b" in line]
    assert findings == [(line, "Y018") for line in lines]
    assert len(lines) == 3


@pytest.mark.parametrize(
    "text",
    ["      - {model: m, takes: {x: a}, gives: {y: @y}}", "      - model: n, takes: {x: a}, gives: {y: y}}"],
    ids=["a value", "a brace"],
)
def test_a_broken_step_of_an_ensemble_makes_no_tensor_look_unused(text: str) -> None:
    ensemble = f"""\
ensembles:
  e:
    inputs: {{x: "float32[4]"}}
    outputs: {{y: "float32[4]"}}
    max_batch: 8
    steps:
      - {{model: m, takes: {{x: x}}, gives: {{y: a}}}}
{text}
"""
    findings = examine(TEXT.replace("accept:", f"{ensemble}accept:")).findings
    assert [each.code for each in findings] == ["Y020", "Y002", "Y012"]


def in_the_example(text: str, *lines: str) -> tuple[int, str]:
    """The number of the line with the documents' processors, from 1, and the text with others for it."""
    begin = text.index("      cpus: 0.1\n", text.index("    code: serve_app.kyc.document_stage:Documents\n"))
    end = text.index("\n", begin)
    return text[:begin].count("\n") + 1, text[:begin] + "\n".join(lines) + text[end:]


def found_in(text: str) -> list[tuple[int, str]]:
    return [(each.line, each.code) for each in examine(text).findings]


@pytest.mark.parametrize("both", [False, True], ids=["one side", "both sides"])
def test_conflict_markers_are_a_finding_each_and_hide_no_other(example_text: str, both: bool) -> None:
    ours, theirs = ["      cpus: 0.1"], ["      cpus: 1"] if both else []
    line, text = in_the_example(example_text, "<<<<<<< HEAD", *ours, "=======", *theirs, ">>>>>>> other")
    twice = [(line + 3, "Y005")] if both else []
    assert found_in(text) == [(line, "Y002"), (line + 2, "Y002"), *twice, (line + 3 + both, "Y002")]
    said = [each.message for each in examine(text).findings if each.code == "Y002"]
    assert all(each.startswith("a conflict marker of git is left in the file") for each in said)


def test_the_markers_of_a_conflict_of_three_versions_are_found(example_text: str) -> None:
    key = "      cpus: 0.1"
    line, text = in_the_example(example_text, "<<<<<<< HEAD", "||||||| 1a2b3c4", "=======", key, ">>>>>>> other")
    assert found_in(text) == [(line, "Y002"), (line + 1, "Y002"), (line + 2, "Y002"), (line + 4, "Y002")]


@pytest.mark.parametrize("at", [0, 2])
@pytest.mark.parametrize("stray", list("`@x+>7:|!&*%.=~"))
def test_one_character_in_place_of_a_space_is_to_blame_alone(example_text: str, stray: str, at: int) -> None:
    key = "      cpus: 0.1"
    line, text = in_the_example(example_text, f"{key[:at]}{stray}{key[at + 1 :]}")
    assert found_in(text) == [(line, "Y002")]
    assert f"{stray}' stands before the key cpus" in examine(text).findings[0].message


@pytest.mark.parametrize(
    "begin", ["  host:", "  object_store:", "    device:", "      cpus:", "    batching:", "        - 8", "    at:"]
)
def test_one_character_before_a_line_is_found_wherever_the_line_is_in_its_block(begin: str) -> None:
    line = next(line for line in LINES if line.startswith(begin))
    text, number = broken(begin, f"x{line[1:]}")
    planted = [(each.line, each.code) for each in examine(TEXT).findings]
    assert found_in(text) == sorted([*planted, (number, "Y002")])


@pytest.mark.parametrize("begin", ["      face: {call: faces.embed,", "  faces:", "  - {code: ", "      embedded: {"])
def test_one_character_before_the_only_line_of_a_block_is_to_blame_alone(example_text: str, begin: str) -> None:
    at = example_text.index(f"\n{begin}") + 1
    text = f"{example_text[:at]}x{example_text[at + 1 :]}"
    assert found_in(text) == [(text[:at].count("\n") + 1, "Y002")]


def test_a_character_before_a_section_does_not_put_it_into_the_one_above() -> None:
    text, number = broken("ray:", "x ray:")
    assert (number, "Y010") in found_in(text)
    assert not any(each.code == "Y005" for each in examine(text).findings)


def test_a_key_of_several_words_is_no_stray_character_where_any_key_may_be(example_text: str) -> None:
    old = "    settings:\n      detection_side: 736 "
    assert old in example_text
    free = "    settings:\n      deep:\n        a: 1\n      x of: 2\n      detection_side: 736 "
    assert not any("stands before" in each.message for each in examine(example_text.replace(old, free)).findings)


@pytest.mark.parametrize("indent", ["\xa0     ", "  \xa0   ", "     \xa0", "\xa0" * 6, " \u3000    "])
def test_an_odd_space_among_the_indentation_is_one_finding(example_text: str, indent: str) -> None:
    line, text = in_the_example(example_text, f"{indent}cpus: 0.1")
    assert found_in(text) == [(line, "Y002")]
    odd = indent.strip(" ")[0]
    assert f"the character U+{ord(odd):04X} is no space" in examine(text).findings[0].message


@pytest.mark.parametrize("end", ["\r", "\u2028", "\u2029", "\x85"])
@pytest.mark.parametrize(
    "key", ["      cp{}us: 0.1", "      cpus: {} 0.1", "      cpus: 0.{}1", "      cpus: 0.1 # no{}te"]
)
def test_an_end_of_line_within_a_line_is_one_finding(example_text: str, key: str, end: str) -> None:
    line, text = in_the_example(example_text, key.format(end))
    assert found_in(text) == [(line, "Y018")]
    assert repr(end) in examine(text).findings[0].message


@pytest.mark.parametrize("end", ["\r", "\r\n"])
def test_other_ends_of_lines_are_fine(example_text: str, end: str) -> None:
    assert found_in(example_text.replace("\n", end)) == []
    assert found_in(in_the_example(example_text, f"      cpus: 0.1{end}")[1]) == []
    assert found_in(TEXT.replace("\n", end)) == found_in(TEXT)


@pytest.mark.parametrize(
    ("key", "says"),
    [
        ("      cpus:\xa00.1", "the character U+00A0 is no space: it cannot be read; write a space"),
        ("      cpus\xa0: 0.1", "the character U+00A0 is no space"),
        ("      cpus\uff1a0.1", "the character '\uff1a' (U+FF1A) is no colon: it cannot be read; write ':'"),
        ("      cpus\uff1a 0.1", "the character '\uff1a' (U+FF1A) is no colon"),
        ("      cpus: “0.1”", "the character '“' (U+201C) is no quote: it cannot be read; write \""),
        ("      cpus: \u20180.1\u2019  # as measured", "the character '\u2018' (U+2018) is no quote"),
    ],
)
def test_a_character_that_looks_like_another_is_named(example_text: str, key: str, says: str) -> None:
    line, text = in_the_example(example_text, key)
    assert found_in(text) == [(line, "Y002")]
    assert says in examine(text).findings[0].message


def test_quotes_of_another_kind_are_found_within_brackets() -> None:
    text, line = broken("    outputs:", "    outputs: {y: “float32[4]”}")
    assert (line, "Y002") in found_in(text)
    assert len(found_in(text)) == len(found_in(TEXT)) + 1


def test_quotes_of_both_kinds_in_one_text_come_to_an_end() -> None:
    text, line = broken("    outputs:", '    outputs: {y: “a "float32[4]" b”}')
    assert all(each.line == line for each in examine(text).findings if (each.code, each.place) not in PLANTED)


def test_such_characters_are_fine_within_a_text(example_text: str) -> None:
    old = "    summary: The embedding of the largest face\n"
    assert old in example_text
    for new in ("The “largest”\xa0face\uff1a one", "|\n      x note\uff1a of\xa0one\n      note\uff1a\xa0“two”"):
        assert found_in(example_text.replace(old, f"    summary: {new}\n")) == []
