from __future__ import annotations

from pathlib import Path

import pytest

from serve_app.spec import SpecError, digest, load_spec
from serve_app.spec.load import examine


def shown(text: str) -> list[str]:
    return [finding.show("spec.yaml") for finding in examine(text, "spec.yaml").findings]


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
    found = [(finding.line, finding.code, finding.place) for finding in examine(text).findings]
    assert found == [
        (line_of(text, "sla: 8"), "Y020", "service.sla"),
        (line_of(text, "10MB"), "Y021", "service.upload_limit"),
        (line_of(text, "port: 81"), "Y013", "ray.port"),
        (line_of(text, "dashboard_port"), "R001", "ray.dashboard_port"),
        (line_of(text, "  arcface:"), "Y011", "models.arcface.max_batch"),
        (line_of(text, "112, 112, 0"), "Y022", "models.arcface.inputs.crop"),
        (line_of(text, "max_batsch"), "Y010", "models.arcface.max_batsch"),
    ]


@pytest.mark.parametrize(
    ("text", "finding"),
    [
        ("a: 1\na: 2\n", "Y005 at a: this key is already on line 1"),
        ("a: &x 1\nb: *x\n", "Y004 at b: an alias is not allowed here"),
        ("a:\n\tb: 1\n", "spec.yaml:2: error Y002 at the spec: found character '\\t' that cannot start any token"),
        ("", "Y003 at the spec: the file holds no mapping"),
        ("- 1\n", "Y003 at the spec: the file holds no mapping"),
    ],
    ids=["duplicate key", "alias", "tab", "empty", "list"],
)
def test_what_yaml_lets_pass_or_words_badly_has_a_clear_answer(text: str, finding: str) -> None:
    assert any(finding in line for line in shown(text)), shown(text)


def test_the_word_no_is_text_not_a_boolean(example_text: str) -> None:
    spec = examine(example_text.replace("summary: The embedding of the largest face", "summary: no")).usable()
    assert spec.pipelines["embed"].summary == "no"


def test_comments_do_not_change_the_digest_and_values_do(example_text: str) -> None:
    first = examine(example_text).usable()
    same = examine("# more\n" + example_text).usable()
    other = examine(example_text.replace("latency_budget: 100ms", "latency_budget: 101ms")).usable()
    assert digest(first) == digest(same) != digest(other)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"nowhere.yaml:1: error Y001 at the spec: No such file"):
        load_spec(tmp_path / "nowhere.yaml")


def test_a_file_that_is_no_text_is_named(tmp_path: Path) -> None:
    (tmp_path / "spec.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(SpecError, match="not UTF-8"):
        load_spec(tmp_path / "spec.yaml")
