"""What has the wrong shape is found in this project's words, and hides and causes nothing else."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from pydantic import ValidationError
from pydantic_core._pydantic_core import list_all_errors

from serve_app.spec.document import read_document
from serve_app.spec.load import examine
from serve_app.spec.spelling import KEYS, OTHERWISE
from serve_app.spec.structure import read_structure
from serve_app.spec.value_words import describe
from serve_app.spec.vocabulary import parts
from tests.rules.case import MINIMAL, report
from tests.spec.mutations import VALUES, mutations

SHIPPED = read_document((Path(__file__).parents[2] / "cluster" / "spec.yaml").read_text()).data
assert SHIPPED is not None
FOREIGN = ("nput should", "Input", "Value error", "Extra inputs", "Field required", "dictionary", "pydantic")


def found(model: dict[str, Any], **others: Any) -> list[tuple[str, str, str]]:
    """The code, place and message of each finding where the model of the smallest spec has these entries too."""
    findings = report({"models": {"m": model}, **others}).findings
    return [(finding.code, finding.place.removeprefix("models.m."), finding.message) for finding in findings]


@pytest.mark.parametrize("part", parts(), ids=lambda part: part.__name__)
def test_every_field_refuses_what_it_refuses_in_words_of_this_project(part: Any) -> None:
    for name in [*part.model_fields, "unknown"]:
        for value in VALUES:
            try:
                part.model_validate({name: copy.deepcopy(value)})
            except ValidationError as invalid:
                for problem in invalid.errors(include_url=False):
                    words = describe(problem, name)
                    said = f"{words.what}; {words.remedy or words.rule.remedy}"
                    assert not any(foreign in said for foreign in FOREIGN), said
                    assert "cannot be used" not in said, f"{problem['type']} has no words: {said}"


@pytest.mark.parametrize("known", list_all_errors(), ids=lambda known: known["type"])
def test_every_error_of_pydantic_has_words_for_settings_that_use_it(known: Any) -> None:
    problem = {
        "type": known["type"],
        "msg": known["example_message_python"],
        "ctx": known.get("example_context") or {},
        "input": "x",
    }
    what = describe(problem, "key").what
    assert "Input" not in what
    assert "nput should" not in what


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=mutations(SHIPPED, most=6))
def test_whatever_is_changed_in_the_shipped_spec_it_is_examined_to_the_end(data: dict[str, Any]) -> None:
    found = examine(yaml.safe_dump(data, sort_keys=False, allow_unicode=True))
    for finding in found.findings:
        assert not any(foreign in finding.message for foreign in FOREIGN), finding.message
    assert found.spec is not None or found.errors


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=mutations(SHIPPED, most=6))
def test_so_much_is_kept_of_any_spec_that_the_rest_can_be_checked(data: dict[str, Any]) -> None:
    assert read_structure(data).spec is not None


@pytest.mark.parametrize(
    ("value", "remedy"),
    [
        ("0x10", "as 16"),
        ("0o17", "as 15"),
        ("010", "write it without the leading 0, as 10; the octal number would be 8"),
        ("1_000", "write 1000"),
        ("1e3", "write 1000"),
        ("+5", "write 5"),
        ("1:30", "without colons"),
        ("8ms", "write the number alone, without a unit"),
        (".inf", "write a finite number"),
        ("99999999999999999999", "at most 18 digits"),
        ("many", "write a whole number"),
    ],
)
def test_a_number_in_another_way_of_writing_is_answered_with_the_right_one(value: str, remedy: str) -> None:
    ((code, place, message),) = found({"max_batch": value})
    assert (code, place) == ("Y012", "max_batch")
    assert f"{value!r} is not a whole number" in message
    assert remedy in message


@pytest.mark.parametrize(
    ("word", "remedy"), [("yes", "write true"), ("off", "write false"), ("True", "write true"), (1, "write true")]
)
def test_a_flag_in_another_word_is_answered_with_the_right_one(word: object, remedy: str) -> None:
    ((code, place, message),) = found({"cache": word})
    assert (code, place) == ("Y012", "cache")
    assert remedy in message


def test_a_whole_number_with_decimals_is_the_whole_number() -> None:
    assert found({"max_batch": 8.0}) == []


def test_a_number_where_a_text_belongs_is_to_be_quoted() -> None:
    ((_, _, message),) = found({"parameters": {"level": 3}})
    assert "3 is not text: it cannot be used; put it in quotes" in message


def test_a_version_with_too_few_numbers_is_told_its_form() -> None:
    ((code, place, message),) = found({}, profiles={"embedded": {"ray_version": 2.6}})
    assert (code, place) == ("Y012", "profiles.embedded.ray_version")
    assert message == "2.6 is not text: it cannot be used; write a version of three numbers, as 2.60.0"
    ((_, _, message),) = found({}, profiles={"embedded": {"triton": {"version": 2.51}}})
    assert message == "2.51 is not text: it cannot be used; write a version of three numbers, as 2.51.0"


def of_example(text: str, old: str, new: str) -> list[tuple[str, str, str]]:
    assert old in text
    return [(each.code, each.place, each.message) for each in examine(text.replace(old, new, 1)).findings]


@pytest.mark.parametrize(
    ("old", "new", "place", "message"),
    [
        (
            "models: [face_detector, arcface]",
            "models: face_detector , arcface",
            "stages.faces.models",
            "'face_detector , arcface' is not a list of models: it cannot be used; write [face_detector, arcface]",
        ),
        (
            "models: [antifraud]",
            "models: antifraud",
            "stages.antifraud.models",
            "'antifraud' is not a list of models: it cannot be used; write [antifraud]",
        ),
        (
            "models: [antifraud]",
            "models: 3",
            "stages.antifraud.models",
            "3 is not a list of models: it cannot be used; write a list of their names",
        ),
        (
            "exposed: true",
            "exposed: true\n    calls: a, b",
            "models.face_detector.calls",
            "'a, b' is not a list: it cannot be used; write [a, b]",
        ),
        (
            "      face: {call: faces.embed",
            "      - face: {call: faces.embed",
            "pipelines.embed.steps",
            "steps has a dash before its keys: it cannot be used; write them without dashes",
        ),
    ],
)
def test_a_list_and_a_mapping_are_told_apart(example_text: str, old: str, new: str, place: str, message: str) -> None:
    assert of_example(example_text, old, new) == [("Y012", place, message)]


@pytest.mark.parametrize(
    ("old", "new", "place", "message"),
    [
        (
            "latency_budget: 150ms",
            "latency_budget:  # later",
            "models.arcface.latency_budget",
            "latency_budget has no value: it cannot be used; write a number and its unit, as 90ms, or remove the key",
        ),
        (
            "max_batch: 4",
            "max_batch: 4\n    batching: ",
            "models.paddleocr_det.batching",
            "batching has no value: it cannot be used; write a mapping, or remove the key",
        ),
        (
            "object_store: 512MiB",
            "object_store: 512MiB\n  logging: {encoding: }",
            "ray.logging.encoding",
            "encoding has no value: it cannot be used; write one of text, json, or remove the key",
        ),
        ("sla: 8s", "sla:", "service.sla", "sla has no value: it cannot be used; write a number and its unit, as 90ms"),
        (
            "device: cpu",
            "device:",
            "profiles.embedded.device",
            "device has no value: it cannot be used; write one of cpu, gpu",
        ),
        (
            "models: [antifraud]",
            "models:",
            "stages.antifraud.models",
            "models has no value: it cannot be used; write a list of their names, or remove the key",
        ),
    ],
)
def test_a_key_with_nothing_behind_it_is_found_at_its_own_line(
    example_text: str, old: str, new: str, place: str, message: str
) -> None:
    assert of_example(example_text, old, new) == [("Y012", place, message)]


def test_null_that_is_written_out_is_what_a_key_has_that_is_left_out(example_text: str) -> None:
    assert of_example(example_text, "max_batch: 4", "max_batch: 4\n    batching: null\n    threads: ~") == []


def test_a_misspelt_key_with_nothing_behind_it_is_one_mistake(example_text: str) -> None:
    ((code, place, message),) = of_example(example_text, "latency_budget: 150ms", "latency_budgt:")
    assert (code, place) == ("Y010", "models.arcface.latency_budgt")
    assert message.endswith("did you mean latency_budget?")


def test_a_key_whose_mapping_has_too_little_indentation_is_not_empty(example_text: str) -> None:
    new = "max_batch: 4\n    batching:\n    preferred_sizes: [4]"
    ((code, place, message),) = of_example(example_text, "max_batch: 4", new)
    assert (code, place) == ("Y010", "models.paddleocr_det.preferred_sizes")
    assert "it belongs in models.paddleocr_det.batching" in message


@pytest.mark.parametrize(
    ("model", "code", "place", "remedy"),
    [
        ({"max_batsch": 8}, "Y010", "max_batsch", "did you mean max_batch?"),
        ({"maxBatch": 8}, "Y010", "maxBatch", "did you mean max_batch?"),
        ({"latency-budget": "1s"}, "Y010", "latency-budget", "did you mean latency_budget?"),
        ({"instance_group": [{"count": 1}]}, "Y010", "instance_group", "did you mean instances?"),
        ({"queue_delay": "1ms"}, "Y010", "queue_delay", "it belongs in models.m.batching"),
        ({"on_timeout": "reject"}, "Y010", "on_timeout", "models.m.batching.queue"),
        ({"max_queue_delay_microseconds": 5}, "Y010", "max_queue_delay_microseconds", "write queue_delay, a duration"),
        ({"profiles": {"embedded": {"cache": True}}}, "Y010", "profiles.embedded.cache", "it belongs in models.m"),
        ({"ray_actor_options": {}}, "Y010", "ray_actor_options", "write cpus"),
        ({"nonsense": 1}, "Y010", "nonsense", "remove it, or correct its spelling"),
        ({"instances": {"kind": "KIND_GPU"}}, "Y014", "instances.0.kind", "did you mean gpu?"),
        ({"instances": {"kind": "cpuu"}}, "Y014", "instances.0.kind", "did you mean cpu?"),
        ({"inputs": {"x": "TYPE_FP32[4]"}}, "Y022", "inputs.x", "did you mean float32?"),
        ({"inputs": {"x": "FP16[4]"}}, "Y022", "inputs.x", "did you mean float16?"),
        ({"batching": {"queue": {"on_timeout": "DELAY"}}}, "Y014", "batching.queue.on_timeout", "did you mean delay?"),
    ],
)
def test_what_was_probably_meant_is_named(model: dict[str, Any], code: str, place: str, remedy: str) -> None:
    matching = [message for each, where, message in found(model) if (each, where) == (code, place)]
    assert len(matching) == 1, found(model)
    assert remedy in matching[0]


@pytest.mark.parametrize("place", ["models", "tiers", "profiles"])
def test_nothing_where_something_is_needed(place: str) -> None:
    findings = examine(yaml.safe_dump(MINIMAL | {place: {}})).findings
    assert [(finding.code, finding.place) for finding in findings] == [("Y016", place)]


def test_a_share_without_its_sign_could_be_two_shares() -> None:
    findings = report({"ingress": {"rolling_update": {"at_once": 0.2}}}).findings
    assert [(finding.code, finding.place) for finding in findings] == [("Y025", "ingress.rolling_update.at_once")]


@pytest.mark.parametrize("word", sorted(KEYS) + sorted(OTHERWISE))
def test_every_word_of_another_tool_leads_to_a_key_of_the_spec(word: str) -> None:
    meant = KEYS[word] if word in KEYS else OTHERWISE[word][0]
    fields = {name for part in parts() for name in part.model_fields}
    assert meant in fields


def test_a_misspelt_key_that_must_be_there_is_one_mistake() -> None:
    model = {**MINIMAL["models"]["m"], "max_batsch": 8}
    del model["max_batch"]
    assert _of(model) == [("Y010", "models.m.max_batsch")]


def test_the_value_under_a_misspelt_key_is_checked_too() -> None:
    model = {**MINIMAL["models"]["m"], "batchng": {"queue_delay": 5, "queue": {"sice": 99}}}
    del model["batching"]
    assert _of(model) == [
        ("Y010", "models.m.batchng"),
        ("Y020", "models.m.batching.queue_delay"),
        ("Y010", "models.m.batching.queue.sice"),
    ]


def test_a_key_in_the_wrong_part_is_not_missing_in_the_right_one() -> None:
    model = copy.deepcopy(MINIMAL["models"]["m"])
    model["batching"]["max_batch"] = model.pop("max_batch")
    assert _of(model) == [("Y010", "models.m.batching.max_batch")]


def test_a_misspelt_profile_is_one_mistake() -> None:
    data = copy.deepcopy(MINIMAL)
    data["profiles"]["embeded"] = data["profiles"].pop("embedded")
    data["models"]["m"]["profiles"] = {"embedded": {"queue_delay": "2ms"}}
    findings = examine(yaml.safe_dump(data, sort_keys=False)).findings
    assert [(finding.code, finding.place) for finding in findings] == [("Y014", "profiles.embeded")]
    assert "did you mean embedded?" in findings[0].message


def test_all_mistakes_of_a_list_are_found_each_at_its_item() -> None:
    text = yaml.safe_dump(MINIMAL, sort_keys=False).replace(
        "      queue_delay: 1ms\n", "      queue_delay: 1ms\n      XX\n"
    )
    text = text.replace("      XX\n", "      preferred_sizes:\n      - two\n      - 4\n      - {}\n")
    at = text[: text.index("- two")].count("\n") + 1
    findings = examine(text).findings
    assert [(each.line, each.column, each.place) for each in findings] == [
        (at, 9, "models.m.batching.preferred_sizes.0"),
        (at + 2, 9, "models.m.batching.preferred_sizes.2"),
    ]


def _of(model: dict[str, Any]) -> list[tuple[str, str]]:
    data = {**MINIMAL, "models": {"m": model}}
    return [(each.code, each.place) for each in examine(yaml.safe_dump(data, sort_keys=False)).findings]


@pytest.mark.parametrize(
    ("value", "consequence"),
    [
        ("9999999999h", "it would be refused, or become another number"),
        ("1.5us", "what is finer would be cut off"),
        ("90", "milliseconds and seconds would be mixed up"),
    ],
)
def test_a_duration_that_is_wrong_in_another_way_has_another_consequence(value: str, consequence: str) -> None:
    ((code, _, message),) = found({"latency_budget": value})
    assert code == "Y020"
    assert f": {consequence}; write" in message


@pytest.mark.parametrize(("version", "codes"), [(10**18 - 1, []), (10**18, ["Y012"])], ids=["18 digits", "19 digits"])
def test_a_version_has_as_many_digits_as_any_number(version: int, codes: list[str]) -> None:
    assert [code for code, _, _ in found({"versions": {"only": [version]}})] == codes


@pytest.mark.parametrize("count", ["count", "max_replicas"])
def test_replicas_beyond_what_ray_can_count_are_out_of_range(count: str) -> None:
    ingress = {"count": 10001, "autoscaling": None} if count == "count" else {"autoscaling": {"max_replicas": 10001}}
    ((code, _, message),) = found({}, ingress=ingress)
    assert code == "Y013"
    assert "write at most 10000" in message
