from __future__ import annotations

from pathlib import Path

import pytest

from serve_app.spec import SpecError, digest, load_spec
from serve_app.spec.load import parse_spec


def shown(text: str) -> list[str]:
    with pytest.raises(SpecError) as refused:
        parse_spec(text, "spec.yaml")
    return str(refused.value).splitlines()


def line_of(text: str, part: str) -> int:
    return text[: text.index(part)].count("\n") + 1


def test_the_projects_own_spec_is_fine(example_text: str) -> None:
    spec, _ = parse_spec(example_text)
    assert list(spec.pipelines) == ["verify", "embed", "compare", "read", "liveness"]


def test_all_mistakes_are_shown_at_once_each_with_its_line(example_text: str) -> None:
    text = (
        example_text.replace("sla: 8s", "sla: 8", 1)
        .replace("upload_limit: 10MiB", "upload_limit: 10MB")
        .replace("max_batch: 16", "max_batsch: 16", 1)
        .replace('"uint8[112, 112, 3]"', '"uint8[112, 112, 0]"')
        .replace("port: 6379", "port: 81")
    )
    findings = shown(text)
    expected = {
        line_of(
            text, "sla: 8"
        ): "service.sla: 8 has no unit; write a duration with one of us, ms, s, min, h, as 90ms or 8s",
        line_of(
            text, "10MB"
        ): "service.upload_limit: '10MB' is not a size; write a number and one of B, KiB, MiB, GiB, as 10MiB",
        line_of(text, "port: 81"): "ray.port: Input should be greater than or equal to 1024",
        line_of(
            text, "112, 112, 0"
        ): "models.arcface.inputs.crop: 'uint8[112, 112, 0]': a dimension is a whole number from 1, "
        "or -1 where it varies; write a type and its dimensions without the batch, as uint8[112, 112, 3]",
        line_of(text, "max_batsch"): "models.arcface.max_batsch: unknown key; remove it or correct its spelling",
        line_of(text, "  arcface:"): "models.arcface.max_batch: this key is missing; add it",
    }
    assert findings == [f"spec.yaml:{line}: {message}" for line, message in sorted(expected.items())]


@pytest.mark.parametrize(
    ("text", "finding"),
    [
        ("a: 1\na: 2\n", "spec.yaml:2: a: this key is already on line 1; keep one of the two"),
        ("a: &x 1\nb: *x\n", "spec.yaml:1: b: an alias (*name) is not allowed here; write the value out"),
        (
            "a:\n\tb: 1\n",
            "spec.yaml:2: YAML: found character '\\t' that cannot start any token; the file is not valid YAML",
        ),
        ("", "spec.yaml:1: the spec: the file holds no mapping; start from the project's example"),
        ("- 1\n", "spec.yaml:1: the spec: the file holds no mapping; start from the project's example"),
    ],
    ids=["duplicate key", "alias", "tab", "empty", "list"],
)
def test_what_yaml_lets_pass_or_words_badly_has_a_clear_answer(text: str, finding: str) -> None:
    assert shown(text) == [finding]


def test_the_word_no_is_text_not_a_boolean(example_text: str) -> None:
    spec, _ = parse_spec(example_text.replace("summary: The embedding of the largest face", "summary: no"))
    assert spec.pipelines["embed"].summary == "no"


def test_comments_do_not_change_the_digest_and_values_do(example_text: str) -> None:
    first, _ = parse_spec(example_text)
    same, _ = parse_spec("# more\n" + example_text)
    other, _ = parse_spec(example_text.replace("latency_budget: 100ms", "latency_budget: 101ms"))
    assert digest(first) == digest(same) != digest(other)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"nowhere.yaml:1: file: there is no such file"):
        load_spec(tmp_path / "nowhere.yaml")


def test_a_file_that_is_no_text_is_named(tmp_path: Path) -> None:
    (tmp_path / "spec.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(SpecError, match="not UTF-8"):
        load_spec(tmp_path / "spec.yaml")
