"""Specs that are dense rather than long are checked in steps, not by walking every way through them.

Each of these took minutes, or for ever, when every way was walked; the test run's own limit would end it.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from tests.rules.case import MINIMAL, report
from tests.rules.pipeline_cases import PIPELINE, STAGE

MODEL: dict[str, Any] = MINIMAL["models"]["m"]


def codes(patch: dict[str, Any]) -> set[str]:
    return {finding.code for finding in report(patch).findings}


def test_models_that_each_call_all_before_them() -> None:
    names = [f"m{index}" for index in range(150)]
    models = {name: {**MODEL, "calls": names[:index]} for index, name in enumerate(names)}
    assert "T333" in codes({"models": models})


def test_many_stages_with_many_models_in_many_pipelines() -> None:
    models = {f"m{index}": MODEL for index in range(30)}
    stages = {f"s{index}": {**STAGE, "models": list(models)} for index in range(30)}
    steps = {f"t{index}": {"call": f"s{index}.run", "takes": {"image": "image"}} for index in range(30)}
    pipelines = {f"p{index}": {**PIPELINE, "route": f"/v1/{index}", "steps": steps} for index in range(30)}
    assert "P107" in codes({"models": models, "stages": stages, "pipelines": pipelines})


def test_ensembles_that_double_beyond_all_measure() -> None:
    def twice(name: str) -> dict[str, Any]:
        steps = [
            {"model": name, "takes": {"x": "x"}, "gives": {"y": "t"}},
            {"model": name, "takes": {"x": "t"}, "gives": {"y": "y"}},
        ]
        return {"inputs": {"x": "float32[4]"}, "outputs": {"y": "float32[4]"}, "max_batch": 8, "steps": steps}

    names = ["m", *(f"e{index}" for index in range(80))]
    ensembles = {name: twice(before) for before, name in pairwise(names)}
    caller = {**MODEL, "calls": [names[-1], "m"]}
    patch = {
        "models": {"caller": caller},
        "ensembles": ensembles,
        "stages": {"echo": {**STAGE, "models": [names[-1]]}},
        "pipelines": {"echo": PIPELINE},
    }
    assert "P110" in codes(patch)
