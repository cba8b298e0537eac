"""The requests that a model is tried with: like its warm-ups, with its optional inputs and without, or the smallest."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pytest

from serve_app.live.trials import Sample, batches, request, trials
from serve_app.spec import Spec
from tests.rules.case import patched

Dims = dict[str, tuple[int, ...]]
VARIES = {"inputs": {"x": "float32[-1]"}}
OPTIONAL = {"inputs": {"x": "float32[4]", "z": {"tensor": "float32[-1]", "optional": True}}}


def spec_of(model: dict[str, Any], **others: Any) -> Spec:
    return Spec.model_validate(patched({"models": {"m": model}, **others}))


def warmup(inputs: dict[str, Any], name: str = "w", **fields: Any) -> dict[str, Any]:
    return {"name": name, "inputs": inputs, **fields}


def dims(sample: Sample) -> Dims:
    return {key: content.dims for key, content in sample.items()}


def tried(spec: Spec, name: str = "m", folder: Path = Path("/nowhere")) -> list[tuple[str, list[Dims]]]:
    return [(trial.like, [dims(sample) for sample in trial.samples]) for trial in trials(spec, name, folder)]


def contents(spec: Spec, folder: Path, batch: int | None = 1) -> list[bytes]:
    (trial,) = trials(spec, "m", folder)
    return list(request(spec, "m", "1", trial.samples[0], batch).raw_input_contents)


def test_without_a_warmup_the_smallest_requests_come_first() -> None:
    assert tried(spec_of(VARIES)) == [("", [{"x": (1,)}, {"x": (32,)}, {"x": (256,)}])]
    assert tried(spec_of({})) == [("", [{"x": (4,)}])]


def test_a_warmup_says_what_is_sent_and_nothing_else_is() -> None:
    first, second = ({"x": {"tensor": f"float32[{size}]"}} for size in (3, 7))
    spec = spec_of({**VARIES, "warmup": [warmup(first), warmup(second, "large")]})
    assert tried(spec) == [(" like its warm-up w", [{"x": (3,)}]), (" like its warm-up large", [{"x": (7,)}])]


def test_a_file_of_a_warmup_is_sent_for_each_item(tmp_path: Path) -> None:
    (tmp_path / "m" / "warmup").mkdir(parents=True)
    content = struct.pack("<4f", 1, 2, 3, 4)
    (tmp_path / "m" / "warmup" / "x.raw").write_bytes(content)
    spec = spec_of({"warmup": [warmup({"x": {"file": "x.raw"}})]})
    assert contents(spec, tmp_path) == [content]
    assert contents(spec, tmp_path, batch=3) == [content * 3]


def test_random_values_of_a_warmup_are_the_same_each_time_and_strings_are_empty(tmp_path: Path) -> None:
    inputs = {"x": {"fill": "random"}, "text": {"fill": "random"}}
    spec = spec_of({"inputs": {"x": "float32[4]", "text": "string[2]"}, "warmup": [warmup(inputs)]})
    values, strings = contents(spec, tmp_path)
    assert len(values) == 16
    assert values != bytes(16)
    assert contents(spec, tmp_path) == [values, strings]
    assert strings == bytes(8)


def test_optional_inputs_are_sent_once_and_left_out_once() -> None:
    sizes = [{"x": (4,), "z": (size,)} for size in (1, 32, 256)]
    assert tried(spec_of(OPTIONAL)) == [("", sizes), (" without z", [{"x": (4,)}])]


def test_an_optional_input_that_a_warmup_leaves_out_has_the_sizes_of_the_others_first() -> None:
    inputs = {"x": "float32[-1]", "z": {"tensor": "float32[-1]", "optional": True}}
    spec = spec_of({"inputs": inputs, "warmup": [warmup({"x": {"tensor": "float32[7]"}})]})
    assert tried(spec) == [
        (" like its warm-up w with z as well", [{"x": (7,), "z": (size,)} for size in (7, 1, 32, 256)]),
        (" like its warm-up w without z", [{"x": (7,)}]),
    ]


def test_a_request_without_any_input_is_not_tried() -> None:
    inputs = {key: {"tensor": "float32[4]", "optional": True} for key in ("x", "z")}
    assert tried(spec_of({"inputs": inputs})) == [("", [{"x": (4,), "z": (4,)}])]


def test_an_ensemble_is_tried_with_what_its_steps_are_warmed_up_with_and_then_the_smallest() -> None:
    step = {"model": "m", "takes": {"x": "picture"}, "gives": {"y": "z"}}
    ensemble = {"inputs": {"picture": "float32[-1]"}, "outputs": {"z": "float32[4]"}, "max_batch": 8, "steps": [step]}
    outer = {**ensemble, "steps": [{"model": "e", "takes": {"picture": "picture"}, "gives": {"z": "z"}}]}
    spec = spec_of(
        {**VARIES, "warmup": [warmup({"x": {"tensor": "float32[7]"}})]}, ensembles={"e": ensemble, "outer": outer}
    )
    for name in ("e", "outer"):
        assert tried(spec, name) == [("", [{"picture": (size,)} for size in (7, 1, 32, 256)])]


@pytest.mark.parametrize(
    ("model", "wanted"),
    [
        ({}, [[1, 8]]),
        ({"max_batch": 1}, [[1]]),
        ({"max_batch": 0}, [[None]]),
        (OPTIONAL, [[1, 8], [1]]),
        # 64 MiB for one item, of which four are as much as is sent.
        ({**VARIES, "warmup": [warmup({"x": {"tensor": f"float32[{2**24}]"}})]}, [[1, 4]]),
    ],
)
def test_one_item_and_as_many_as_the_model_takes_are_tried(
    model: dict[str, Any], wanted: list[list[int | None]]
) -> None:
    spec = spec_of(model)
    found = [batches(spec, "m", spec.models["m"].max_batch, trial) for trial in trials(spec, "m", Path("/nowhere"))]
    assert found == wanted


def ensemble(of: str = "m", **fields: Any) -> dict[str, Any]:
    """An ensemble of one step, whose input may have any size."""
    step = {"model": of, "takes": {"x": "x"}, "gives": {"y": "y"}}
    return {"inputs": {"x": "float32[-1]"}, "outputs": {"y": "float32[-1]"}, "max_batch": 8, "steps": [step], **fields}


def test_an_ensembles_dimension_that_varies_is_tried_as_its_step_has_it() -> None:
    spec = spec_of({}, ensembles={"e": ensemble(), "outer": ensemble("e")})
    assert tried(spec, "e") == tried(spec, "outer") == [("", [{"x": (4,)}])]
    spec = spec_of({"inputs": {"x": "float32[-1, 3]"}}, ensembles={"e": ensemble(inputs={"x": "float32[-1, -1]"})})
    assert tried(spec, "e") == [("", [{"x": (size, 3)} for size in (1, 32, 256)])]


def test_a_batch_dimension_that_only_one_of_the_two_has_changes_nothing_there() -> None:
    unbatched = ensemble(inputs={"x": "float32[-1, -1]"}, outputs={"y": "float32[-1, -1]"}, max_batch=0)
    assert tried(spec_of({}, ensembles={"e": unbatched}), "e") == [("", [{"x": (size, 4)} for size in (1, 32, 256)])]
    spec = spec_of({"inputs": {"x": "float32[-1, 4]"}, "max_batch": 0}, ensembles={"e": ensemble()})
    assert tried(spec, "e") == [("", [{"x": (4,)}])]


SEQUENCE = {"idle_timeout": "1s"}


@pytest.mark.parametrize("name", ["m", "e", "outer"])
def test_a_model_of_sequences_and_an_ensemble_of_it_are_tried_with_a_whole_sequence(name: str) -> None:
    model = {"sequence": SEQUENCE, "batching": None}
    spec = spec_of(model, ensembles={"e": ensemble(), "outer": ensemble("e")})
    (trial,) = trials(spec, name, Path("/nowhere"))
    assert batches(spec, name, 8, trial) == [1]
    sent = request(spec, name, "1", trial.samples[0], 1).parameters
    assert (sent["sequence_id"].int64_param, sent["sequence_start"].bool_param) == (1, True)
    assert sent["sequence_end"].bool_param


def test_an_ensemble_without_sequences_is_tried_without() -> None:
    spec = spec_of({}, ensembles={"e": ensemble()})
    (trial,) = trials(spec, "e", Path("/nowhere"))
    assert batches(spec, "e", 8, trial) == [1, 8]
    assert dict(request(spec, "e", "1", trial.samples[0], 1).parameters) == {}


@pytest.mark.parametrize(
    ("model", "wanted"),
    [
        ({"inputs": {"x": "float32[999999999999999999]"}}, []),
        ({"inputs": {"x": f"float32[{2**28}]"}}, [{"x": (2**28,)}]),
        ({"inputs": {"x": f"float32[{2**28 + 1}]"}}, []),
        ({"inputs": {"x": f"float32[{2**27}]", "z": f"float32[{2**27 + 1}]"}}, []),
        (
            {"inputs": {"x": "float32[-1, -1, -1, -1]"}},
            [{"x": (size, size, size, size)} for size in (1, 32)],
        ),
        (
            {**VARIES, "warmup": [warmup({"x": {"fill": "random", "tensor": f"float32[{2**28 + 1}]"}})]},
            [],
        ),
    ],
    ids=["huge", "the largest", "larger", "two inputs", "varying", "a warm-up"],
)
def test_what_is_too_large_to_send_is_not_made(model: dict[str, Any], wanted: list[Dims]) -> None:
    ((_, found),) = tried(spec_of(model))
    assert found == wanted


def test_random_values_of_a_large_warmup_are_made() -> None:
    tensor = f"uint8[{2**28}]"
    inputs = {"x": {"fill": "random", "tensor": tensor}}
    (sent,) = contents(spec_of({"inputs": {"x": "uint8[-1]"}, "warmup": [warmup(inputs)]}), Path("/nowhere"))
    assert len(sent) == 2**28
    assert sent[:1000] != bytes(1000)
