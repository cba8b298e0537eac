"""Ensembles: their steps, the tensors between them, what they take from their steps; and models that call models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.rules.case import MINIMAL, Case

Map = Mapping[str, str]
MODEL: dict[str, Any] = MINIMAL["models"]["m"]
TWO_INPUTS = {**MODEL, "inputs": {"x": "float32[4]", "z": "float32[4]"}}
TWO_OUTPUTS = {**MODEL, "outputs": {"y": "float32[4]", "z": "float32[4]"}}
DECOUPLED = {**MODEL, "decoupled": True}
SEQUENCES = {
    **{key: value for key, value in MODEL.items() if key != "batching"},
    "sequence": {"direct": {}, "idle_timeout": "10s", "controls": []},
}
CALLED_ALONE = {**MODEL, "max_batch": 1, "batching": {"queue_delay": "0s", "priorities": "none"}}


def step(model: str, takes: Map | None = None, gives: Map | None = None, **changes: Any) -> dict[str, Any]:
    """One of x and y, where nothing else is said."""
    return {
        "model": model,
        "takes": {"x": "x"} if takes is None else dict(takes),
        "gives": {"y": "y"} if gives is None else dict(gives),
        **changes,
    }


def ensemble(*steps: Mapping[str, Any], models: Mapping[str, Any] | None = None, **changes: Any) -> dict[str, Any]:
    """A patch with the ensemble e, of x and y, of one step of m where none is given."""
    whole = {
        "inputs": {"x": "float32[4]"},
        "outputs": {"y": "float32[4]"},
        "max_batch": 8,
        "steps": [*steps] or [step("m")],
        **changes,
    }
    return {"models": dict(models or {}), "ensembles": {"e": whole}}


def calls(*called: str, models: Mapping[str, Any] | None = None, **changes: Any) -> dict[str, Any]:
    """A patch in which m calls others."""
    return {"models": {"m": {"calls": [*called], **changes}, **(models or {})}}


def of_n(**changes: Any) -> dict[str, Any]:
    """A patch with a model n, otherwise as m, and an ensemble of one step of it."""
    return ensemble(step("n"), models={"n": {**MODEL, **changes}})


E = "ensembles.e"
FIRST = f"{E}.steps.0"
STEPS = {
    "a step of a model that does not exist": Case(
        "T301",
        ensemble(step("nobody")),
        f"{FIRST}.model",
        "there is no model 'nobody'; there is m",
        refused="ensemble e contains models that are not available or ambiguous: nobody",
        model="e",
    ),
    "a step of a version that is not served": Case(
        "T302",
        ensemble(step("m", version=9)),
        f"{FIRST}.version",
        "m serves version 1, and the step wants 9",
        refused="ensemble 'e' depends on 'm' whose required version 9 is not loaded",
        model="e",
    ),
    "a step of version 0": Case(
        "T302",
        ensemble(step("m", version=0)),
        f"{FIRST}.version",
        "the latest is -1",
        refused="ensemble 'e' depends on 'm' whose required version 0 is not loaded",
        model="e",
    ),
    "a step that gives a model an input it does not have": Case(
        "T303",
        ensemble(step("m", {"x": "x", "w": "x"})),
        f"{FIRST}.takes.w",
        "m has no input 'w'; it has x",
        refused="ensemble tensor x is mapping to non-existing input w in model m",
        model="e",
    ),
    "a step that takes an output which its model does not have": Case(
        "T304",
        ensemble(step("m", gives={"y": "y", "w": "v"}), outputs={"y": "float32[4]", "v": "float32[4]"}),
        f"{FIRST}.gives.w",
        "m has no output 'w'; it has y",
        refused="ensemble tensor v is mapped from non-existing output w in model m",
        model="e",
    ),
    "a step that leaves out an input of its model": Case(
        "T305",
        ensemble(step("n"), models={"n": TWO_INPUTS}),
        f"{FIRST}.takes",
        "n needs its input z",
        refused="input z in model n is not mapped to any ensemble tensors",
        model="e",
    ),
    "a step that takes nothing": Case(
        "T306",
        ensemble(
            step("n", {}),
            step("m", {"x": "x"}, {"y": "z"}),
            outputs={"y": "float32[4]", "z": "float32[4]"},
            models={"n": {**MODEL, "inputs": {"x": {"tensor": "float32[4]", "optional": True}}}},
        ),
        f"{FIRST}.takes",
        refused="must specify 'input_map' in step 0 of ensemble 'e'",
        model="e",
    ),
    "a step that gives nothing": Case(
        "T306",
        ensemble(step("m"), step("m", gives={})),
        f"{E}.steps.1.gives",
        refused="must specify 'output_map' in step 1 of ensemble 'e'",
        model="e",
    ),
    "an input that no step takes": Case(
        "T307",
        ensemble(inputs={"x": "float32[4]", "w": "float32[4]"}),
        f"{E}.inputs.w",
        refused="ensemble input 'w' for ensemble e' is not used",
        model="e",
    ),
    "a tensor between steps that no step takes": Case(
        "T307",
        ensemble(step("n", gives={"y": "y", "z": "left"}), models={"n": TWO_OUTPUTS}),
        f"{FIRST}.gives.z",
        "no step takes left",
        refused="ensemble tensor 'left' is unused in ensemble 'e'",
        model="e",
    ),
    "a tensor that no step gives": Case(
        "T308",
        ensemble(step("n", {"x": "x", "z": "lost"}), models={"n": TWO_INPUTS}),
        f"{FIRST}.takes.z",
        "lost is no input of e, and no step gives it",
        refused="at least one of its depending tensors, 'lost', is not connected",
        model="e",
    ),
    "an output that no step gives": Case(
        "T308",
        ensemble(outputs={"y": "float32[4]", "w": "float32[4]"}),
        f"{E}.outputs.w",
        refused="ensemble output 'w' for ensemble e' is not used",
        model="e",
    ),
    "a tensor that is written twice": Case(
        "T310",
        ensemble(step("m"), step("m")),
        f"{E}.steps.1.gives.y",
        refused="ensemble tensor 'y' can appear in an output map only once for ensemble 'e' step 1",
        model="e",
    ),
    "a step that writes an input of the ensemble": Case(
        "T311",
        ensemble(step("m", {"x": "w"}, {"y": "x"}), step("m"), inputs={"x": "float32[4]", "w": "float32[4]"}),
        f"{FIRST}.gives.y",
        loads=True,
        model="e",
    ),
    "steps that wait for each other": Case(
        "T312",
        ensemble(
            step("n", {"x": "x", "z": "b"}, {"y": "a"}),
            step("m", {"x": "a"}, {"y": "b"}),
            step("m", {"x": "b"}),
            models={"n": TWO_INPUTS},
        ),
        f"{E}.steps",
        "among the steps 0 (n), 1 (m)",
        refused="output 'y' for ensemble 'e' is not written",
        model="e",
    ),
    "a step that waits for itself": Case(
        "T312",
        ensemble(step("n", {"x": "x", "z": "y"}), models={"n": TWO_INPUTS}),
        f"{E}.steps",
        refused="output 'y' for ensemble 'e' is not written",
        model="e",
    ),
    "an ensemble in itself": Case(
        "T313",
        ensemble(step("e")),
        f"{FIRST}.model",
        "a step of e is itself",
        refused="circular dependency between ensembles",
        model="e",
    ),
    "two ensembles in each other": Case(
        "T313",
        {"ensembles": {"e": ensemble(step("f"))["ensembles"]["e"], "f": ensemble(step("e"))["ensembles"]["e"]}},
        f"{FIRST}.model",
        "a step of e is f, which comes back to e",
        refused="circular dependency between ensembles",
        model="e",
    ),
}

TENSORS = {
    "a tensor of two types": Case(
        "T314",
        of_n(inputs={"x": "int32[4]"}),
        f"{FIRST}.takes.x",
        "x is int32[4] as input x of n, and float32[4] as input of e",
        refused="inconsistent data type: TYPE_FP32 is inferred from model e while TYPE_INT32 is inferred from model n",
        model="e",
    ),
    "an output of another type than the step's": Case(
        "T314",
        ensemble(outputs={"y": "int32[4]"}),
        f"{FIRST}.gives.y",
        refused="inconsistent data type",
        model="e",
    ),
    "a tensor of two shapes": Case(
        "T315",
        of_n(inputs={"x": "float32[3]"}),
        f"{FIRST}.takes.x",
        "x is float32[3] as input x of n, and float32[4] as input of e",
        refused="inconsistent shape: [-1,4] is inferred from model e while [-1,3] is inferred from model n",
        model="e",
    ),
    "a tensor with another number of dimensions": Case(
        "T315",
        ensemble(inputs={"x": "float32[-1, 4]"}),
        f"{FIRST}.takes.x",
        refused="inconsistent shape: [-1,-1,4] is inferred from model e while [-1,4] is inferred from model m",
        model="e",
    ),
    "a tensor of two shapes that a varying one hides from triton": Case(
        "T315",
        ensemble(
            step("vary", gives={"y": "between"}),
            step("three", {"x": "between"}, {"y": "other"}),
            step("m", {"x": "between"}),
            models={
                "vary": {**MODEL, "inputs": {"x": "float32[-1]"}, "outputs": {"y": "float32[-1]"}},
                "three": {**MODEL, "inputs": {"x": "float32[3]"}},
            },
            outputs={"y": "float32[4]", "other": "float32[4]"},
        ),
        f"{E}.steps.2.takes.x",
        "between is float32[4] as input x of m, and float32[3] as input x of three",
        loads=True,
        model="e",
    ),
    "an optional input that a step needs": Case(
        "T318",
        ensemble(inputs={"x": {"tensor": "float32[4]", "optional": True}}),
        f"{FIRST}.takes.x",
        loads=True,
        model="e",
    ),
    "an ensemble that does not batch": Case(
        "T319", ensemble(max_batch=0), f"{E}.max_batch", "m batches, and e does not", loads=True, model="e"
    ),
    "an ensemble that batches, of a model that does not": Case(
        "T320",
        of_n(max_batch=0),
        f"{E}.max_batch",
        "n takes no batch, and e up to 8 items",
        loads=True,
        model="e",
    ),
}

LIMITS = {
    "an ensemble with larger batches than a step takes": Case(
        "T321",
        ensemble(max_batch=16),
        f"{E}.max_batch",
        "max_batch is 16, and m takes 8 in profile embedded",
        refused="ensemble e allows maximum batch size 16, but it contains model m which only allows maximum batch "
        "size to be 8",
        model="e",
    ),
    "an ensemble with larger batches than a step takes in a profile": Case(
        "T321",
        of_n(profiles={"embedded": {"max_batch": 4}}),
        f"{E}.max_batch",
        "n takes 4 in profile embedded",
        refused="which only allows maximum batch size to be 4",
        model="e",
    ),
    "a step that caps the ensemble": Case(
        "T322",
        ensemble(
            step("tokenizer", gives={"y": "t"}),
            step("m", {"x": "t"}),
            max_batch=4,
            models={"tokenizer": {**MODEL, "max_batch": 4}},
        ),
        f"{E}.max_batch",
        "tokenizer takes 4 items in profile embedded, and m 8: no request may bring more items",
        loads=True,
        model="e",
    ),
    "two decoupled steps whose tensors meet": Case(
        "T323",
        ensemble(
            step("a", gives={"y": "a"}),
            step("b", gives={"y": "b"}),
            step("n", {"x": "a", "z": "b"}),
            models={"a": DECOUPLED, "b": DECOUPLED, "n": TWO_INPUTS},
            decoupled=True,
        ),
        f"{E}.steps.2.takes",
        refused="receives inputs originated from different decoupled models",
        model="e",
    ),
    "a decoupled step whose tensor meets the request's": Case(
        "T323",
        ensemble(
            step("a", gives={"y": "a"}),
            step("n", {"x": "a", "z": "x"}),
            models={"a": DECOUPLED, "n": TWO_INPUTS},
            decoupled=True,
        ),
        f"{E}.steps.1.takes",
        refused="receives inputs originated from different decoupled models",
        model="e",
    ),
    "outputs of which one comes from behind a decoupled step": Case(
        "T323",
        ensemble(
            step("a"),
            step("m", gives={"y": "z"}),
            models={"a": DECOUPLED},
            outputs={"y": "float32[4]", "z": "float32[4]"},
            decoupled=True,
        ),
        f"{E}.outputs",
        "y and z have different origins",
        refused="receives inputs originated from different decoupled models",
        model="e",
    ),
    "an ensemble of a decoupled step that does not say so": Case(
        "T324", of_n(decoupled=True), f"{FIRST}.model", "n is decoupled, and e does not say so", loads=True, model="e"
    ),
    "a decoupled ensemble without a decoupled step": Case(
        "T325", ensemble(decoupled=True), f"{E}.decoupled", loads=True, model="e"
    ),
    "a response cache of an ensemble with sequences": Case(
        "T327",
        ensemble(step("n"), models={"n": SEQUENCES}, cache=True, max_batch=1),
        f"{E}.cache",
        "n has sequences",
        loads=True,
        model="e",
    ),
    "a batch for a step with sequences": Case(
        "T328", ensemble(step("n"), models={"n": SEQUENCES}), f"{E}.max_batch", loads=True, model="e"
    ),
    "queue timeouts of steps that add up above the sla": Case(
        "T329",
        ensemble(
            step("n", gives={"y": "t"}),
            step("m", {"x": "t"}),
            models={
                "m": {"batching": {"queue": {"timeout": "5s"}}},
                "n": {**MODEL, "batching": {"queue_delay": "1ms", "queue": {"timeout": "4s"}}},
            },
        ),
        f"{E}.steps",
        "they add up to 9s (n 4s + m 5s), and the SLA is 8s: each step's begins anew, and a request can wait longer "
        "than the SLA without being refused; shorten them until they fit; one that is left out is as long as",
        loads=True,
        model="e",
    ),
    "a limit for answers of no decoupled step": Case(
        "T340", ensemble(max_inflight_requests=4), f"{E}.max_inflight_requests"
    ),
    "a step of a namespace": Case(
        "T341", ensemble(step("m", namespace="other")), f"{FIRST}.namespace", loads=True, model="e"
    ),
    "parameters of an ensemble": Case(
        "T342", ensemble(parameters={"a": "b"}), f"{E}.parameters", loads=True, model="e"
    ),
    "a backend's field of an ensemble": Case(
        "T343", ensemble(triton={"runtime": "other"}), f"{E}.triton.runtime", loads=True, model="e"
    ),
    "a platform of an ensemble": Case(
        "T344",
        ensemble(triton={"platform": "onnxruntime_onnx"}),
        f"{E}.triton.platform",
        refused="ensemble scheduling cannot be set for model 'e' whose platform is not ensemble",
        model="e",
    ),
}

CALLS = {
    "a call of a model that does not exist": Case(
        "T330", calls("nobody"), "models.m.calls", "there is no model 'nobody'", loads=True
    ),
    "a model that calls itself": Case("T331", calls("m"), "models.m.calls", "m calls itself", loads=True),
    "a model that an ensemble brings back to itself": Case(
        "T331",
        {**ensemble(), "models": {"m": {"calls": ["e"]}}},
        "models.m.calls",
        "m calls e, which comes back to m",
        loads=True,
    ),
    "calls of a model without code": Case(
        "T332",
        calls("n", models={"n": CALLED_ALONE}, backend="onnx"),
        "models.m.calls",
        "m runs in Tandem's ONNX code",
    ),
    "a call of a model with the tiers' priorities": Case(
        "T333",
        calls("n", models={"n": {**MODEL, "max_batch": 1}}),
        "models.m.calls",
        "n has 2 levels, and gets calls at tier first's only",
        loads=True,
    ),
    "a call of an ensemble of a model with priorities of its own": Case(
        "T333",
        {
            **ensemble(step("n"), max_batch=1),
            **calls(
                "e",
                models={
                    "n": {
                        **MODEL,
                        "max_batch": 1,
                        "batching": {"queue_delay": "0s", "priorities": {"levels": 3, "default": 2}},
                    }
                },
            ),
        },
        "models.m.calls",
        "n has 3 levels, and gets calls at level 2 only",
        loads=True,
    ),
    "a call of a model with wake-ups": Case(
        "T334",
        calls("n", models={"n": {**MODEL, "max_batch": 1}}),
        "models.m.calls",
        "under load it stands still for up to 500 ms",
        loads=True,
    ),
    "a call of a model with a bounded queue": Case(
        "T334",
        calls(
            "n",
            models={
                "n": {
                    **MODEL,
                    "max_batch": 1,
                    "batching": {"queue_delay": "0s", "priorities": "none", "queue": {"size": 8}},
                }
            },
        ),
        "models.m.calls",
        loads=True,
    ),
    "fewer callers than a batch has places": Case(
        "T335",
        calls(
            "n",
            models={"n": {**MODEL, "batching": {"queue_delay": "1ms", "priorities": "none"}}},
            instances=2,
        ),
        "models.m.calls",
        "2 instances of m call n, whose batches have 8 places",
        loads=True,
    ),
    "a call that takes longer than the caller may": Case(
        "T336",
        calls("n", models={"n": {**CALLED_ALONE, "latency_budget": "101ms"}}),
        "models.m.calls",
        "n has a latency budget of 101ms, and m has 100ms",
        loads=True,
    ),
    "calls that together take longer than the caller may": Case(
        "T337",
        calls(
            "a",
            "b",
            models={name: {**CALLED_ALONE, "latency_budget": "60ms"} for name in ("a", "b")},
        ),
        "models.m.calls",
        "the budgets are 120ms (a 60ms + b 60ms), and m has 100ms",
        loads=True,
    ),
}

CASES = {**STEPS, **TENSORS, **LIMITS, **CALLS}
