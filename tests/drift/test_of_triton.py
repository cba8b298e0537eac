"""What each Triton says of itself, against the spec."""

from __future__ import annotations

from typing import Any

import pytest
from google.protobuf import text_format

from serve_app.drift.difference import Drift
from serve_app.drift.of_triton import triton_drift
from serve_app.render.triton import model_config
from serve_app.spec import Spec, digest
from serve_app.spec.built import built_from
from tests.rules.case import patched

APPLICATION = "restarts the application"


def spec_of(patch: dict[str, Any]) -> Spec:
    return Spec.model_validate(patched(patch))


def report(spec: Spec, **changes: Any) -> dict[str, Any]:
    """What a Triton that was started from `spec` reports."""
    configs = {name: text_format.MessageToString(model_config(spec, name, "embedded")) for name in spec.models}
    config = configs["m"].replace("instance_group {", 'instance_group { name: "m_0"')
    config = config.replace("dynamic_batching {", "dynamic_batching { preferred_batch_size: 8")
    pinned = "optimization { input_pinned_memory { enable: true } output_pinned_memory { enable: true } }"
    return {
        "replica": "r1",
        "version": "2.51.0",
        "configs": {**configs, "m": config + pinned},
        "built_from": built_from(spec),
        "failure": "",
        **changes,
    }


def drift(spec: Spec, *reports: dict[str, Any], deployed: Spec | None = None) -> list[Drift]:
    return list(triton_drift(spec, reports, digest(deployed or spec)))


def test_a_triton_started_from_the_spec_does_not_differ() -> None:
    spec = spec_of({})
    assert drift(spec, report(spec)) == []


def test_every_replica_is_compared() -> None:
    old, new = spec_of({}), spec_of({"models": {"m": {"batching": {"queue_delay": "2ms"}}}})
    found = drift(new, report(old), report(new, replica="r2"), deployed=old)
    field = "dynamic_batching.max_queue_delay_microseconds"
    assert found == [Drift("Triton r1 m", field, "1000", "2000", APPLICATION)]


def test_a_change_that_triton_does_not_see_is_told_in_the_specs_words() -> None:
    old, new = spec_of({}), spec_of({"tiers": {"second": {"priority": 3}}, "service": {"upload_limit": "2MiB"}})
    found = {each.what: (each.running, each.wanted) for each in drift(new, report(old), deployed=old)}
    assert found["tiers.second.priority"] == ("2", "3")
    assert found["service.upload_limit"] == ("1048576", "2097152")


def test_a_duration_is_told_as_the_spec_writes_it() -> None:
    old, new = (
        spec_of({}),
        spec_of({"models": {"m": {"latency_budget": "150ms", "batching": {"queue": {"timeout": "1s"}}}}}),
    )
    same_queue = spec_of({"models": {"m": {"latency_budget": "100ms", "batching": {"queue": {"timeout": "1s"}}}}})
    (found,) = drift(new, report(same_queue), deployed=old)
    assert found == Drift("spec", "models.m.latency_budget", "100ms", "150ms", APPLICATION)


def test_an_override_is_told_where_the_spec_has_it() -> None:
    old = spec_of({"models": {"m": {"profiles": {"embedded": {"queue_delay": "1ms"}}}}})
    (found,) = drift(spec_of({}), report(old), deployed=old)
    assert found.what == "models.m.profiles.embedded" or found.what.startswith("models.m.profiles.embedded.")


def test_a_triton_that_differs_though_the_spec_was_deployed_is_changed_by_no_redeploy() -> None:
    spec = spec_of({})
    text = report(spec)["configs"]["m"].replace("max_queue_delay_microseconds: 1000", "max_queue_delay_microseconds: 9")
    (found,) = drift(spec, report(spec, configs={"m": text}))
    assert (found.running, found.wanted, found.effect) == ("9", "1000", None)
    assert "start the service anew" in found.remedy


@pytest.mark.parametrize(
    ("changes", "part", "what", "running", "wanted"),
    [
        ({"configs": {}}, "Triton r1 m", "model", "not ready", "ready"),
        ({"version": "2.50.0"}, "Triton r1", "version", "2.50.0", "2.51.0 or newer"),
        ({"failure": "no answer: x"}, "Triton r1", "answer", "no answer: x", "its models' configurations"),
    ],
    ids=["a model that is not ready", "an older version", "no answer"],
)  # fmt: skip
def test_what_is_wrong_with_a_replica_is_told(changes: Any, part: str, what: str, running: str, wanted: str) -> None:
    spec = spec_of({})
    (found,) = drift(spec, report(spec, **changes))
    assert (found.part, found.what, found.running, found.wanted, found.effect) == (part, what, running, wanted, None)
    assert found.remedy


def test_a_replica_that_raises_is_told() -> None:
    spec = spec_of({})
    (found,) = drift(spec, {"failure": "the actor died"})
    assert (found.part, found.running) == ("Triton", "the actor died")


def test_models_that_come_and_go_are_told() -> None:
    other = {"backend": "python", "inputs": {"x": "float32[4]"}, "outputs": {"y": "float32[4]"}, "max_batch": 8}
    both, one = spec_of({"models": {"n": {**other, "latency_budget": "50ms"}}}), spec_of({})
    come = drift(both, report(one), deployed=one)
    assert Drift("Triton r1 n", "model", "not there", "ready", APPLICATION) in come
    gone = drift(one, report(both), deployed=both)
    assert Drift("Triton r1 n", "model", "ready", "nothing", APPLICATION) in gone
