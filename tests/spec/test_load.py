"""From a file to findings: what YAML lets pass, or words badly, has a clear answer, and each finding its line."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from serve_app.spec import SpecError, digest, load_spec
from serve_app.spec.document import read_document
from serve_app.spec.load import LARGEST, examine, examine_file
from serve_app.spec.yaml_parser import DEEPEST


def found(text: str) -> list[tuple[int, str, str]]:
    """The line, code and text of each finding."""
    return [(finding.line, finding.code, finding.message) for finding in examine(text).findings]


def of_the_file(text: str) -> list[tuple[int, str, str]]:
    """The findings that are of the file itself, not of keys that are no spec's or missing in it."""
    return [finding for finding in found(text) if finding[1] not in ("Y010", "Y011")]


def first(text: str) -> tuple[int, str, str]:
    return of_the_file(text)[0]


def values(text: str) -> Any:
    document = read_document(text)
    assert document.findings == []
    return document.data


def line_of(text: str, part: str) -> int:
    return text[: text.index(part)].count("\n") + 1


def test_the_projects_own_spec_is_fine(example_text: str) -> None:
    spec = examine(example_text).usable()
    assert list(spec.pipelines) == ["verify", "embed", "compare", "read", "liveness"]


def test_all_mistakes_are_shown_at_once_each_with_its_line(example_text: str) -> None:
    text = (
        example_text.replace("sla: 8s", "sla: 8", 1)
        .replace("upload_limit: 10MiB", "upload_limit: 10MB")
        .replace("max_batch: 16", "max_batsch: 16", 1)
        .replace('"uint8[112, 112, 3]"', '"uint8[112, 112, 0]"')
        .replace("port: 6379", "port: 81")
        .replace("dashboard_port: 8265", "dashboard_port: 8000")
    )
    assert [(finding.line, finding.code, finding.place) for finding in examine(text).findings] == [
        (line_of(text, "sla: 8"), "Y020", "service.sla"),
        (line_of(text, "10MB"), "Y021", "service.upload_limit"),
        (line_of(text, "port: 81"), "Y013", "ray.port"),
        (line_of(text, "dashboard_port"), "R001", "ray.dashboard_port"),
        (line_of(text, "112, 112, 0"), "Y022", "models.arcface.inputs.crop"),
        (line_of(text, "max_batsch"), "Y010", "models.arcface.max_batsch"),
    ]


NOT_YAML = {
    "a tab": ("a:\n\tb: 1\n", 2, "a tab stands where only spaces may", "indent with spaces"),
    "a tab behind spaces": ("a:\n  \tb: 1\n", 2, "a tab stands", "indent with spaces"),
    "a colon in a text": ("a: b: c\n", 1, "a second `: ` in one line", "in quotes"),
    "a line without a key": ("a: 1\nb\n", 2, "a line without a key and its colon", "write `key: value`"),
    "too little indentation": ("a:\n    b: 1\n  c: 1\n", 3, "does not belong to the mapping", "same number of spaces"),
    "a bracket that stays open": ("a: [1, 2\nb: 1\n", 1, "a bracket is opened and never closed", "close the bracket"),
    "a quote that stays open": ('a: "b\n', 1, "a quote is opened and never closed", "close the quote"),
    "a text with @": ("a: @b\n", 1, "a text cannot start with '@'", "put the text in quotes"),
    "a text with %": ("a: %b\n", 1, "a text cannot start with '%'", "put the text in quotes"),
    "a star": ("a: *.onnx\n", 1, "a text cannot start with & or *", "put the text in quotes"),
    "a backslash": ('a: "C:\\p"\n', 1, "mean nothing in double quotes", "single quotes"),
    "an escape of nothing": ('a: "\\UFFFFFFFF"\n', 1, "this escape names no character", "write the character itself"),
    "something behind the end": ("a: 1\n...\nb: 1\n", 3, "something stands behind the document's end", "remove it"),
    "a newer YAML": ("%YAML 9.0\n---\na: 1\n", 1, "a version of YAML that there is no reader for", "%YAML"),
}


@pytest.mark.parametrize(("text", "line", "what", "remedy"), NOT_YAML.values(), ids=NOT_YAML)
def test_what_is_not_yaml_is_said_in_words_that_name_the_mistake(text: str, line: int, what: str, remedy: str) -> None:
    ((at, code, message),) = of_the_file(text)
    assert (at, code) == (line, "Y002")
    assert what in message
    assert remedy in message


REFUSED = {
    "a key twice": ("a: 1\nb: 2\na: 3\n", 3, "Y005", "this key is already on line 1"),
    "an alias": ("a: &x 1\nb: *x\n", 2, "Y004", "the alias *x is not allowed here"),
    "a merge key": ("a: &x {b: 1}\nc:\n  <<: *x\n", 3, "Y004", "the merge key << is not allowed"),
    "an object of Python's": ("a: !!python/object:os.system {}\n", 1, "Y017", "the tag !!python/object:os.system"),
    "binary": ("a: !!binary aGFsbG8=\n", 1, "Y017", "the tag !!binary is not allowed"),
    "a text by tag": ("a: !!str 5\n", 1, "Y017", "the tag !!str is not allowed"),
    "a tag of one's own": ("a: !secret b\n", 1, "Y017", "the tag !secret is not allowed"),
    "an empty key": ('a: 1\n"": 2\n', 2, "Y006", "the key is empty"),
    "a list for a key": ("a: 1\n? [b, c]\n: 2\n", 2, "Y006", "the key is a list or mapping"),
    "two documents": ("a: 1\n---\nb: 2\n", 2, "Y009", "another document starts here"),
    "a control character": ("a: 1\nb: c\x07d\n", 2, "Y018", r"the character '\x07'"),
    "a NUL": ("a: 1\nb: \x00\n", 2, "Y018", r"the character '\x00'"),
    "a NUL by escape": ('a: 1\nb: "c\\0"\n', 2, "Y018", r"the text holds the character '\x00'"),
    "a letter that turns a text round": ("a: 1\nb: c\u202ed\n", 2, "Y018", r"the text holds the character '\u202e'"),
    "a letter that turns a key round": ("a: 1\nb\u2066: c\n", 2, "Y018", r"the key holds the character '\u2066'"),
    "half a character by escape": ('a: "\\ud800"\n', 1, "Y018", r"the text holds the character '\ud800'"),
    "nothing": ("", 1, "Y003", "the file is empty"),
    "comments only": ("# a\n# b\n", 3, "Y003", "the file is empty"),
    "a list": ("- 1\n", 1, "Y003", "the file holds no mapping"),
    "a text": ("hello\n", 1, "Y003", "the file holds no mapping"),
    "nothing in a document": ("---\n", 2, "Y003", "the file holds no mapping"),
}


@pytest.mark.parametrize(("text", "line", "code", "what"), REFUSED.values(), ids=REFUSED)
def test_what_yaml_lets_pass_has_a_clear_answer(text: str, line: int, code: str, what: str) -> None:
    assert first(text)[:2] == (line, code)
    assert what in first(text)[2]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("no", "no"), ("yes", "yes"), ("on", "on"), ("off", "off"), ("y", "y"), ("True", "True"), ("true", True),
        ("false", False), ("null", None), ("~", None), ("", None), ("0x10", "0x10"), ("010", "010"), ("0o17", "0o17"),
        ("1_000", "1_000"), ("1e3", "1e3"), ("1:30", "1:30"), ("+5", "+5"), (".5", ".5"), ("-0", 0), ("-12", -12),
        ("12.50", 12.5), (".inf", ".inf"), (".nan", ".nan"), ("1e400", "1e400"), ("9" * 5000, "9" * 5000),
        ("9" * 400 + ".0", "9" * 400 + ".0"), ("2026-01-01", "2026-01-01"), ("2.51.0", "2.51.0"), ('"5"', "5"),
        ("'true'", "true"), ("|\n  a\n  b\n", "a\nb\n"), (">\n  a\n  b\n", "a b\n"), ("a\n  b", "a b"), ("=", "="),
    ],
)  # fmt: skip
def test_only_plain_words_and_decimals_are_anything_but_text(text: str, value: object) -> None:
    (read,) = values(f"key: {text}\n").values()
    assert read == value
    assert type(read) is type(value)


@pytest.mark.parametrize("key", ["1", "true", "null", "no", "2026-01-01", '"a b"', "1.5"])
def test_a_key_is_the_text_that_is_written(key: str) -> None:
    assert values(f"{key}: 1\n") == {key.strip('"'): 1}


def test_levels_of_a_queue_may_be_written_as_numbers(example_text: str) -> None:
    batching = "max_batch: 4\n    batching: {priorities: {levels: 2, default: 1}, queues: {1: {size: 9}}}"
    text = example_text.replace("max_batch: 4", batching, 1)
    spec = examine(text).spec
    assert spec is not None
    assert spec.models["paddleocr_det"].batching is not None
    assert list(spec.models["paddleocr_det"].batching.queues) == ["1"]


def test_a_key_in_capitals_is_told_its_spelling(example_text: str) -> None:
    ((_, code, message),) = found(example_text.replace("  sla: 8s", "  SLA: 8s", 1))
    assert code == "Y010"
    assert "did you mean sla?" in message


def test_two_mappings_under_the_same_key_are_both_checked(example_text: str) -> None:
    text = example_text + "\nmodels:\n  spare: {backend: python, max_batch: 8, latency_budget: 100ms}\n"
    assert [(finding.code, finding.place) for finding in examine(text).findings] == [
        ("Y005", "models"),
        ("Y011", "models.spare.inputs"),
        ("Y011", "models.spare.outputs"),
    ]


def test_a_value_that_could_not_be_read_causes_no_other_finding(example_text: str) -> None:
    text = example_text.replace("sla: 8s", "sla: &s 8s", 1).replace("retry_after: 1s", "retry_after: *s", 1)
    assert [(code, line) for line, code, _ in found(text)] == [("Y004", line_of(text, "retry_after"))]


@pytest.mark.parametrize(
    ("text", "line", "column", "place"),
    [
        ("a: {b: 1,\n  c: 2}\n", 2, 3, ("a", "c")),
        ("a:\n- b\n-   c: 1\n    d: 2\n", 4, 5, ("a", 1, "d")),
        ("a: [1, 2,\n 3]\n", 2, 2, ("a", 2)),
        ("a:\n  b: 1\n", 1, 1, ("a", "missing")),
        ("a:\r\n  b: 1\r\n  c: 2\r\n", 3, 3, ("a", "c")),
        ("a:\n  '1': 1\n", 2, 3, ("a", "1")),
        ("a:\n  b: 1\n", 2, 3, ("a", "b", "short")),
        ("a:\n  count: 1\n", 2, 3, ("a", 0, "count")),
        ("é: 1\nb: {ü: 1, c: 2}\n", 2, 11, ("b", "c")),
    ],
    ids=["flow", "list", "flow list", "missing", "CRLF", "quoted key", "shorthand", "list of one", "not ASCII"],
)
def test_every_value_has_its_line_and_column(text: str, line: int, column: int, place: tuple[str | int, ...]) -> None:
    position = read_document(text).root.of(place)
    assert (position.line, position.column) == (line, column)


@pytest.mark.parametrize("bracket", ["[", "{a: ", "- ", "{? [", "!!seq ["])
def test_a_file_nested_a_hundred_thousand_deep_is_answered(bracket: str) -> None:
    codes = [code for _, code, _ in of_the_file("a:\n  " + bracket * 100_000)]
    assert codes.count("Y008") == 1
    assert set(codes) <= {"Y008", "Y017"}


def test_a_spec_may_be_as_deep_as_any_part_of_it() -> None:
    assert values("a: " + "[" * (DEEPEST - 1) + "]" * (DEEPEST - 1))
    assert first("a: " + "[" * DEEPEST + "]" * DEEPEST)[1] == "Y008"


def test_a_bomb_of_aliases_is_answered_in_little_memory() -> None:
    names = "abcdefghijklmnopqrstuvwxyz"
    lines = [f"a: &a [{', '.join(['lol'] * 10)}]"]
    lines += [f"{name}: &{name} [{', '.join([f'*{before}'] * 10)}]" for before, name in zip(names, names[1:])]  # noqa: B905, RUF007
    tracemalloc.start()
    findings = found("\n".join(lines))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert [code for _, code, _ in findings].count("Y004") == 250
    assert peak < 20 * 2**20


def test_a_file_of_fifty_megabytes_is_answered_without_reading_it(tmp_path: Path) -> None:
    path = tmp_path / "spec.yaml"
    with path.open("wb") as file:
        file.truncate(50 * 2**20)
    tracemalloc.start()
    (finding,) = examine_file(path).findings
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert finding.code == "Y007"
    assert peak < 3 * LARGEST


@pytest.mark.parametrize(
    ("content", "line", "code", "what"),
    [
        ("application: kyc\n".encode("utf-16"), 1, "Y001", "it is UTF-16 or UTF-32 text"),
        ("application: kyc\n".encode("utf-16-le"), 1, "Y018", r"the character '\x00'"),
        ("application: kyc\nray: größe\n".encode("latin-1"), 2, "Y001", "the byte 0xf6 is not UTF-8 text"),
        (b"\x89PNG\r\n\x1a\n", 1, "Y001", "the byte 0x89 is not UTF-8 text"),
    ],
    ids=["UTF-16", "UTF-16 without a mark", "Latin-1", "a picture"],
)
def test_a_file_in_another_encoding_is_told_to_be_saved_as_utf8(
    tmp_path: Path, content: bytes, line: int, code: str, what: str
) -> None:
    (tmp_path / "spec.yaml").write_bytes(content)
    (finding,) = examine_file(tmp_path / "spec.yaml").findings
    assert (finding.line, finding.code) == (line, code)
    assert what in finding.message


@pytest.mark.parametrize("change", [lambda text: "\ufeff" + text, lambda text: text.replace("\n", "\r\n")])
def test_a_byte_order_mark_and_line_ends_of_windows_are_accepted(
    tmp_path: Path, example_text: str, change: Any
) -> None:
    (tmp_path / "spec.yaml").write_bytes(change(example_text).encode())
    assert digest(load_spec(tmp_path / "spec.yaml")) == digest(examine(example_text).usable())


def test_comments_do_not_change_the_digest_and_values_do(example_text: str) -> None:
    first = examine(example_text).usable()
    same = examine("# more\n" + example_text).usable()
    other = examine(example_text.replace("latency_budget: 100ms", "latency_budget: 101ms")).usable()
    assert digest(first) == digest(same) != digest(other)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"nowhere.yaml:1: error Y001 at the spec: No such file"):
        load_spec(tmp_path / "nowhere.yaml")


def test_a_folder_in_place_of_a_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="error Y001 at the spec: it is a folder, no file"):
        load_spec(tmp_path)


def test_a_tensor_without_quotes_in_braces_is_told_to_want_them() -> None:
    """YAML takes its brackets and commas for its own, and would say that a comma is missing."""
    text = "models:\n  m:\n    inputs: {crop: uint8[112, 112, 3]}\n"
    (message,) = [message for _, code, message in found(text) if code == "Y002"]
    assert 'write "uint8[112, 112, 3]" in quotes' in message
