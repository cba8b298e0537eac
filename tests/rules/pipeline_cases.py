"""Tiers, stages and pipelines: names that lead somewhere, budgets, and what stages can bring to a model."""

from __future__ import annotations

from typing import Any

from tests.rules.case import GONE, MINIMAL, Case, merged
from tests.rules.ensemble_cases import ensemble
from tests.rules.ensemble_cases import step as step_of

REPLICAS = {**MINIMAL["ingress"]}
STAGE: dict[str, Any] = {"code": "tests.rules.stages:Echo", "models": ["m"], "replicas": REPLICAS}
STEP: dict[str, Any] = {"call": "echo.run", "takes": {"image": "image"}}
NO_BUDGET = {key: value for key, value in MINIMAL["models"]["m"].items() if key != "latency_budget"}
OPTIONAL: dict[str, Any] = {**STEP, "optional": True}
AFTER: dict[str, Any] = {"call": "echo.judge", "takes": {"first": "first", "second": "first"}}
THIRD: dict[str, Any] = {"call": "echo.judge", "takes": {"first": "second", "second": "second"}}
PIPELINE: dict[str, Any] = {
    "route": "/v1/echo",
    "summary": "Echo",
    "inputs": {"image": "image"},
    "steps": {"answer": STEP},
}
SERVED: dict[str, Any] = {"stages": {"echo": STAGE}, "pipelines": {"echo": PIPELINE}}


def served(patch: dict[str, Any]) -> dict[str, Any]:
    """MINIMAL's model with a stage and a pipeline, and `patch` on top."""
    whole: dict[str, Any] = merged(SERVED, patch)
    return whole


def step(**changes: Any) -> dict[str, Any]:
    return served({"pipelines": {"echo": {"steps": changes}}})


def optional(sla: str = "8s", **how: Any) -> dict[str, Any]:
    """A pipeline whose first step is optional, and a second one."""
    steps = {"answer": GONE, "first": {**OPTIONAL, **how}, "second": AFTER}
    return served({"pipelines": {"echo": {"sla": sla, "steps": steps}}})


def batching(**changes: Any) -> dict[str, Any]:
    return served({"models": {"m": {"batching": changes}}})


CASES = {
    "no default tier": Case(
        "P001", {"tiers": {"first": {"default": GONE}}}, "tiers", "0 tiers have default: true", loads=False
    ),
    "two default tiers": Case("P001", {"tiers": {"second": {"default": True}}}, "tiers", "2 tiers"),
    "a gap in the priorities": Case("P002", {"tiers": {"second": {"priority": 3}}}, "tiers", "[1, 3]"),
    "two tiers of one priority": Case("P002", {"tiers": {"second": {"priority": 1}}}, "tiers", "[1, 1]"),
    "a stage with an unknown model": Case(
        "P101", served({"stages": {"echo": {"models": ["n"]}}}), "stages.echo.models", "there is no model 'n'"
    ),
    "a stage that runs nowhere": Case(
        "P102", served({"stages": {"echo": {"replicas": GONE}}}), "stages.echo", "neither replicas nor runs_in"
    ),
    "a stage that runs in two places": Case(
        "P102", served({"stages": {"echo": {"runs_in": "ingress"}}}), "stages.echo", "both replicas and runs_in"
    ),
    "a stage that nothing calls": Case("P103", served({"stages": {"idle": STAGE}}), "stages.idle"),
    "a step of an unknown stage": Case(
        "P104", step(answer={"call": "ecco.run"}), "pipelines.echo.steps.answer.call", "there is no stage 'ecco'"
    ),
    "a step that takes what is not there": Case(
        "P105", step(answer={"takes": {"image": "picture"}}), "pipelines.echo.steps.answer.takes.image", "'picture'"
    ),
    "a step that takes from a later one": Case(
        "P105",
        step(answer={"takes": {"image": "later"}}, later=STEP),
        "pipelines.echo.steps.answer.takes.image",
        "'later' is neither an input nor an earlier step",
    ),
    "a step with the name of an input": Case("P106", step(answer=GONE, image=STEP), "pipelines.echo.steps.image"),
    "a step whose result nobody takes": Case("P107", step(more=STEP), "pipelines.echo.steps.answer"),
    "two pipelines on one route": Case(
        "P108", served({"pipelines": {"again": PIPELINE}}), "pipelines.again.route", "pipeline echo has the route"
    ),
    "a route of the ingress": Case("P109", served({"pipelines": {"echo": {"route": "/v2/x"}}}), "pipelines.echo.route"),
    "budgets above the SLA": Case(
        "P110", served({"pipelines": {"echo": {"sla": "99ms"}}}), "pipelines.echo", "answer are 100ms (m 100ms)"
    ),
    "budgets of an ensemble's steps above the SLA": Case(
        "P110",
        served(
            {
                "models": {"n": {**MINIMAL["models"]["m"]}},
                "ensembles": {
                    "both": {
                        "inputs": {"x": "float32[4]"},
                        "outputs": {"y": "float32[4]"},
                        "max_batch": 8,
                        "steps": [
                            {"model": "m", "takes": {"x": "x"}, "gives": {"y": "between"}},
                            {"model": "n", "takes": {"x": "between"}, "gives": {"y": "y"}},
                        ],
                    }
                },
                "stages": {"echo": {"models": ["both"]}},
                "pipelines": {"echo": {"sla": "199ms"}},
            }
        ),
        "pipelines.echo",
        "answer are 200ms (both 200ms)",
    ),
    "a stage's model without a latency budget": Case(
        "P111", served({"models": {"m": {"latency_budget": GONE}}}), "models.m", "stage echo uses m"
    ),
    "a batch that no traffic can fill": Case(
        "P120",
        served({"models": {"m": {"max_batch": 17}}}),
        "models.m.max_batch",
        "at most 16 items come at a time, and a batch has 17",
        loads=True,
    ),
    "a queue too small for what may come": Case(
        "P121",
        served({"models": {"m": {"max_batch": 2, "batching": {"queue": {"size": 13}}}}}),
        "models.m.batching.queue.size",
        "16 requests can come at a time, and 15 can wait or run",
        loads=True,
    ),
    "a tier's queue too small for what may come": Case(
        "P121",
        served({"models": {"m": {"max_batch": 2, "batching": {"queues": {"second": {"size": 13}}}}}}),
        "models.m.batching.queues.second.size",
        "16 requests can come at a time, and 15 of tier second can wait or run: where they are all of it",
        loads=True,
    ),
    "a queue too small in one profile's batches": Case(
        "P121",
        served(
            {
                "profiles": {"gpu": MINIMAL["profiles"]["embedded"]},
                "models": {
                    "m": {"max_batch": 4, "batching": {"queue": {"size": 13}}, "profiles": {"gpu": {"max_batch": 2}}}
                },
            }
        ),
        "models.m.batching.queue.size",
        "in profile gpu, 16 requests can come at a time, and 15 can wait or run: "
        "requests that Ray Serve has accepted are answered 429 `queue_full`",
    ),
    "a tier below the lowest level": Case(
        "P122",
        batching(priorities={"levels": 1, "default": 1}, queue={"timeout": "1s"}),
        "models.m.batching.priorities",
        "tier second has priority 2, and m 1 levels",
        loads=True,
    ),
    "tiers at a model without priorities": Case(
        "P123", batching(priorities="none"), "models.m.batching.priorities", "m has no priorities", loads=True
    ),
    "an SLA that no request can keep": Case(
        "P114", {"service": {"sla": "1us"}}, "service.sla", "it is 1us, and Ray alone takes longer"
    ),
    "a pipeline's SLA that no request can keep": Case(
        "P114", served({"pipelines": {"echo": {"sla": "999us"}}}), "pipelines.echo.sla", "it is 999us"
    ),
    "budgets of all of an SLA": Case(
        "P115",
        served({"pipelines": {"echo": {"sla": "100ms"}}}),
        "pipelines.echo",
        "the budgets along answer are 100ms, and the SLA of 100ms leaves 0s to wait for m, which needs its queue delay "
        "of 1ms and 1ms more: a queue's timeout is what they leave, and a timeout of nothing is none; shorten a budget "
        "or the queue delay, or lengthen the SLA",
        loads=True,
    ),
    "budgets of nearly all of an SLA": Case(
        "P115",
        served({"pipelines": {"echo": {"sla": "101ms"}}}),
        "pipelines.echo",
        "leaves 1ms to wait for m, which needs its queue delay of 1ms and 1ms more: by no longer timeout than that a "
        "lone request will often fail",
        loads=True,
    ),
    "a budget of all of the service's SLA": Case(
        "P115",
        {
            "service": {"sla": "100ms"},
            **served({"models": {"other": MINIMAL["models"]["m"]}, "pipelines": {"echo": {"sla": "1s"}}}),
        },
        "models.other.latency_budget",
        "it is 100ms, and the service's SLA of 100ms leaves 0s to wait for other",
    ),
    "an object store below Ray's least": Case(
        "P116", {"ray": {"object_store": "1B"}}, "ray.object_store", "it is 1B: Ray refuses to start"
    ),
    "a tier's queue timeout that the path leaves no time for": Case(
        "P124",
        batching(queues={"second": {"timeout": "7901ms"}}),
        "models.m.batching.queues.second.timeout",
        "leaves 7900ms",
        loads=True,
    ),
    "queue timeouts of two steps that together leave the path no time": Case(
        "P125",
        served(
            {
                "models": {"m": {"batching": {"queue": {"timeout": "4s"}}}},
                "pipelines": {"echo": {"steps": {"answer": GONE, "first": STEP, "second": AFTER}}},
            }
        ),
        "pipelines.echo",
        "the queue timeouts (m 4s + m 4s) and latency budgets along first → second are 8200ms, and the SLA is 8s",
        loads=True,
    ),
    "a model without a latency budget in a stage's ensemble": Case(
        "P111",
        served(
            {
                **ensemble(step_of("n"), models={"n": NO_BUDGET}),
                "stages": {"echo": {"models": ["e"]}},
            }
        ),
        "models.n",
        "stage echo uses n",
    ),
    "a pipeline that takes no picture": Case(
        "P113",
        served({"pipelines": {"echo": {"inputs": {"image": "flag"}}}}),
        "pipelines.echo.inputs",
        "echo takes flags",
    ),
    "a latency budget as long as the SLA": Case(
        "P112", {"models": {"m": {"latency_budget": "8s"}}}, "models.m.latency_budget", "longer than 8s"
    ),
    "a queue timeout that the path leaves no time for": Case(
        "P124", batching(queue={"timeout": "7901ms"}), "models.m.batching.queue.timeout", "leaves 7900ms", loads=True
    ),
    "a pipeline whose last step is optional": Case(
        "P117", step(answer={"optional": True}), "pipelines.echo.steps.answer.optional", "no step comes after it"
    ),
    "a time of a step that is not optional": Case(
        "P118",
        optional(optional=False, within="1s"),
        "pipelines.echo.steps.first.within",
        "the step is not optional: the step takes as long as it does without it; write optional: true too",
    ),
    "a time of an optional step that is never reached": Case(
        "P118",
        optional(within="4s"),
        "pipelines.echo.steps.first.within",
        "it is 4s, and after half of its request's time, which is 4s at the most, a step is given up anyway",
    ),
    "an optional step that is given up before its budgets": Case(
        "P126",
        optional(within="99ms"),
        "pipelines.echo.steps.first.within",
        "it is given up after 99ms, and its budgets are 100ms",
    ),
    "an optional step whose budgets are more than half of the time": Case(
        "P126",
        merged(
            optional(sla="190ms"),
            {
                "stages": {"chooser": {"code": "tests.rules.stages:Chooser", "runs_in": "ingress"}},
                "pipelines": {"echo": {"steps": {"second": {"call": "chooser.choose", "takes": {"second": GONE}}}}},
            },
        ),
        "pipelines.echo.steps.first",
        "it is given up after 95ms, and its budgets are 100ms",
    ),
    "an optional step that may take the time of those after it": Case(
        "P127",
        merged(optional(sla="350ms"), {"pipelines": {"echo": {"steps": {"third": THIRD}}}}),
        "pipelines.echo.steps.first",
        "it is given up after 175ms, which leaves 175ms of the SLA, and the budgets of what comes after it are 200ms",
    ),
    "an optional step whose time leaves too little for those after it": Case(
        "P127",
        merged(optional(sla="350ms", within="160ms"), {"pipelines": {"echo": {"steps": {"third": THIRD}}}}),
        "pipelines.echo.steps.first.within",
        "it is given up after 160ms, which leaves 190ms of the SLA",
    ),
}
