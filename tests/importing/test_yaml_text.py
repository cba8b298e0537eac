from __future__ import annotations

import pytest
import yaml
from hypothesis import assume, given
from hypothesis import strategies as st

from serve_app.importing.yaml_text import Block, flow, yaml_lines
from serve_app.spec.document import read_document

# A spec takes no character that cannot be seen.
texts = st.text(st.characters(exclude_categories=["Cs", "Cc", "Cf", "Cn"]))
keys = texts.filter(bool)
OLD_WORDS = ("on", "off")
values = st.recursive(
    texts | st.none() | st.integers(-(10**17), 10**17) | st.booleans() | st.floats(-1e9, 1e9),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(keys, values, min_size=1))
def test_a_specs_reader_reads_back_what_was_written(value: dict[str, object]) -> None:
    document = read_document("\n".join(yaml_lines(value)))
    assert document.findings == []
    assert document.data == value


@given(st.dictionaries(keys, values, min_size=1))
def test_so_does_any_other_reader_of_yaml_unless_it_takes_on_for_a_boolean(value: dict[str, object]) -> None:
    assume(not any(f"{word}:" in line for word in OLD_WORDS for line in yaml_lines(value)))
    assert yaml.safe_load("\n".join(yaml_lines(value))) == value


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("float32[3, 4]", '"float32[3, 4]"'),
        ("100ms", "100ms"),
        ("2.51.0", "2.51.0"),
        ("input.1", "input.1"),
        ("no", '"no"'),
        ("308", '"308"'),
        ("1.5", '"1.5"'),
        ("", '""'),
        ('say "hi"\n', '"say \\"hi\\"\\u000a"'),
        (1e-7, "0.0000001"),
        (0.5, "0.5"),
        (2.0, "2.0"),
        (True, "true"),
        (None, "null"),
        ([1, 2], "[1, 2]"),
        ({"on": 1, "x": {}}, "{on: 1, x: {}}"),
    ],
)
def test_texts_are_quoted_only_where_they_must_be(value: object, text: str) -> None:
    assert flow(value) == text


def test_what_is_short_is_on_one_line_and_what_is_long_is_not() -> None:
    long = {"name": "a" * 60, "parameters": {"b": "c" * 60}}
    assert list(yaml_lines({"short": {"a": [1]}, "block": Block({"a": 1}), "long": [long, 2]})) == [
        "short: {a: [1]}",
        "block:",
        "  a: 1",
        "long:",
        f"  - name: {'a' * 60}",
        f"    parameters: {{b: {'c' * 60}}}",
        "  - 2",
    ]
