"""What holds for every spec that the validator accepts, and what for any other."""

from __future__ import annotations

import copy
import os
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from google.protobuf import text_format
from hypothesis import example, given, settings
from hypothesis import strategies as st
from ray.serve.schema import ServeDeploySchema
from tritonclient.grpc import model_config_pb2 as pb

from serve_app.importing.conversion import import_repository
from serve_app.importing.yaml_text import yaml_lines
from serve_app.live.ray_schema import schema_faults
from serve_app.render import SPEC_FILE, render
from serve_app.render.ray_serve import render_serve_config, serve_config
from serve_app.render.triton import model_config, render_model_config
from serve_app.spec import Spec
from serve_app.spec.document import read_document
from serve_app.spec.load import examine
from serve_app.spec.resolved import Resolved
from tests.render.specs import specs
from tests.rules.case import merged, patched

LOG_ATTRIBUTES = "additional_log_standard_attrs"
RENDER = """
import sys
from serve_app.render import render
from serve_app.spec.load import examine
for name, text in render(examine(sys.stdin.read()).usable()).items():
    print(name, text)
"""
PROJECTS = read_document((Path(__file__).parents[2] / SPEC_FILE).read_text()).data


def text_of(data: dict[str, Any]) -> str:
    return "\n".join(yaml_lines(data))


def usable(data: dict[str, Any]) -> Spec:
    """The spec, which nobody may refuse."""
    report = examine(text_of(data))
    assert [finding.show("spec.yaml") for finding in report.errors] == []
    return report.usable()


def served(spec: Spec) -> list[str]:
    return [*spec.models, *spec.ensembles]


@settings(max_examples=40)
@given(specs())
def test_what_is_rendered_is_always_the_same_text_and_parses_back_to_the_same_message(data: dict[str, Any]) -> None:
    spec = usable(data)
    for profile in spec.profiles:
        for name in served(spec):
            text = render_model_config(spec, name, profile, "# A comment.\n")
            assert text_format.Parse(text, pb.ModelConfig()) == model_config(spec, name, profile)
            assert text == render_model_config(spec, name, profile, "# A comment.\n")


def in_order(value: Any) -> Any:
    """The value with the lists sorted that are sets to Ray."""
    if isinstance(value, list):
        return [in_order(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {key: sorted(each) if key == LOG_ATTRIBUTES else in_order(each) for key, each in value.items()}


@settings(max_examples=40)
@given(specs())
def test_serve_config_is_always_the_same_text_without_aliases_and_ray_serve_takes_every_word_of_it(
    data: dict[str, Any],
) -> None:
    spec = usable(data)
    text = render_serve_config(spec, "# A comment.\n")
    assert text == render_serve_config(usable(data), "# A comment.\n")
    assert yaml.safe_load(text) == serve_config(spec)
    assert [event for event in yaml.parse(text) if getattr(event, "anchor", None)] == []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what Ray warns of has rules of its own
        assert [(fault.place, fault.what) for fault in schema_faults(spec)] == []
        taken = ServeDeploySchema.model_validate(yaml.safe_load(text)).model_dump(mode="json", exclude_unset=True)
    assert in_order(taken) == in_order(yaml.safe_load(text))


def test_rendering_in_another_process_gives_the_same_files() -> None:
    """Sets and hashes, whose order changes from process to process, leave no trace."""
    words = {f"{letter}{number}": letter for letter in "abcdef" for number in range(3)}
    tensors = dict.fromkeys(words, "float32[4]")
    model = {
        "inputs": {f"{name}_in": tensor for name, tensor in tensors.items()},
        "outputs": tensors,
        "parameters": words,
        "metric_tags": words,
        "batching": {"queues": {"first": {"size": 64}, "second": {"size": 32}}},
    }
    text = text_of(patched({"models": {"m": model}}))
    outputs = [
        subprocess.run(
            [sys.executable, "-c", RENDER],
            input=text,
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert "model_repository/m/config.pbtxt" in outputs[0]
    assert outputs[0] == outputs[1]


@settings(max_examples=40)
@given(specs())
def test_importing_what_was_rendered_and_rendering_that_changes_no_message(data: dict[str, Any]) -> None:
    """The same messages to the last field, without any normalisation, of a spec that nobody refuses.

    The tiers' names alone are in no configuration.
    """
    spec = usable(data)
    primary = spec.primary_profile
    messages = {name: model_config(spec, name, primary) for name in served(spec)}
    with tempfile.TemporaryDirectory() as folder:
        for name, message in messages.items():
            (Path(folder) / name).mkdir()
            (Path(folder) / name / "config.pbtxt").write_text(text_format.MessageToString(message, as_utf8=True))
        imported = import_repository(Path(folder), primary)
    assert [loss for loss in imported.not_carried if loss.model is not None] == []
    assert [finding.show("imported") for finding in imported.report.errors] == []
    again = imported.report.usable()
    assert {name: model_config(again, name, primary) for name in messages} == messages
    by_tiers = any(Resolved(spec, name, primary).by_tiers for name in spec.models)
    assert bool(imported.not_carried) == by_tiers
    if by_tiers:
        assert sorted(tier.priority for tier in again.tiers.values()) == list(range(1, len(spec.tiers) + 1))


JUNK = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**30), 10**30),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=6),
    st.sampled_from(["", "no", "-1ms", "0s", "9999999h", "1e9", "float32[]", "float32[0]", "image[9..1]", "m0", "a:b"]),
    st.lists(st.integers(-1, 2) | st.text(max_size=2), max_size=3),
    st.dictionaries(st.text(max_size=3) | st.sampled_from(["x", "m0", "gpu"]), st.integers() | st.text(max_size=2)),
)


def places(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in inside:
        yield (*place, key)
        yield from places(item, (*place, key))


@st.composite
def spoilt_specs(draw: Any) -> dict[str, Any]:
    """A spec, at random or the project's own, with one value replaced, removed, or under another name."""
    data: dict[str, Any] = copy.deepcopy(draw(specs() | st.just(PROJECTS)))
    *way, last = draw(st.sampled_from(list(places(data))))
    holder: Any = data
    for step in way:
        holder = holder[step]
    how = draw(st.sampled_from(["replace", "replace", "replace", "remove", "rename"]))
    if how == "replace" or isinstance(holder, list):
        holder[last] = draw(JUNK)
    else:
        value = holder.pop(last)
        if how == "rename":
            holder[draw(st.text(max_size=5))] = value
    return data


@settings(max_examples=150)
@given(spoilt_specs())
@example(merged(PROJECTS, {"stages": {"liveness": {"models": ["arcface", "\x83"]}}}))
@example(
    merged(PROJECTS, {"models": {"extra": {"inputs": {"x": "bool[1]"}, "outputs": {"y": "bool[1]"}, "max_batch": 2}}})
)
def test_whatever_is_wrong_in_a_spec_becomes_a_finding_and_never_a_failure(data: dict[str, Any]) -> None:
    report = examine(text_of(data))
    for finding in report.findings:
        assert finding.show("spec.yaml")
    if not report.errors:
        assert render(report.usable())
