"""Stages and pipelines: names that lead somewhere, routes, and budgets that fit the SLA."""

from __future__ import annotations

from serve_app.spec.checks.registry import of_each_model, of_each_pipeline, of_each_stage, of_the_spec
from serve_app.spec.findings import Faults, error
from serve_app.spec.model import Model
from serve_app.spec.part import UNKNOWN
from serve_app.spec.paths import budget, longest_path, models_of, stages_of
from serve_app.spec.pipeline import Flag, Pipeline, Stage
from serve_app.spec.schema import Spec
from serve_app.spec.spelling import closest, did_you_mean
from serve_app.spec.units import show_duration
from serve_app.spec.value_words import NOT_IMAGES

RESERVED_ROUTES = ("/healthz", "/readyz", "/docs", "/openapi.json", "/v2", "/-")

NO_MODEL = error(
    "P101", "A model that does not exist", "the stage cannot be built", "correct the name, or add the model"
)
WHERE_IT_RUNS = error(
    "P102", "A stage that runs nowhere, or in two places", "it cannot be deployed",
    "write either replicas, for processes of its own, or runs_in: ingress",
)  # fmt: skip
UNREACHED = error(
    "P103", "A stage that no pipeline calls", "its processes would idle", "call it in a step, or remove it"
)
NO_STAGE = error("P104", "A stage that does not exist", "the step cannot be run", "correct the name, or add the stage")
NO_SOURCE = error(
    "P105", "A step that takes something that is not there", "the step cannot be run",
    "take an input of the pipeline or an earlier step",
)  # fmt: skip
SAME_NAME = error("P106", "A step with the name of an input", "later steps could not tell them apart", "rename one")
UNREAD = error(
    "P107", "A step whose result nobody takes", "its work would be for nothing", "take it in a later step, or remove it"
)
SAME_ROUTE = error("P108", "Two pipelines with the same route", "only one of them could answer", "change one route")
RESERVED = error("P109", "A route that the ingress keeps for itself", "the pipeline would hide it", "use another route")
OVER_BUDGET = error(
    "P110", "Budgets of a path above its SLA", "requests at the load it is sized for come late",
    "shorten a budget, or lengthen the SLA",
)  # fmt: skip
NO_BUDGET = error(
    "P111", "A stage's model without a latency budget", "neither its queue's timeout nor the path's time can be known",
    "add latency_budget to the model",
)  # fmt: skip


NO_IMAGE = error(
    "P113", "A pipeline that takes no picture", "its requests would bring nothing to work on", "add an input: image"
)
BUDGET_OVER_SLA = error(
    "P112", "A latency budget that leaves nothing of any SLA", "no request may wait in its queue at all",
    "shorten the budget, or lengthen the SLA",
)  # fmt: skip


@of_each_stage
def models_exist(spec: Spec, name: str, stage: Stage) -> Faults:
    known = [*spec.models, *spec.ensembles]
    for model in stage.models:
        if model not in known:
            yield NO_MODEL.at(
                ("stages", name, "models"),
                f"there is no model {model!r}; there is {', '.join(known)}",
                remedy=did_you_mean(model, known),
            )


@of_each_stage
def where_it_runs(spec: Spec, name: str, stage: Stage) -> Faults:
    if (stage.runs_in is None) == (stage.replicas is None):
        both = "both replicas and runs_in are given" if stage.replicas else "neither replicas nor runs_in is given"
        yield WHERE_IT_RUNS.at(("stages", name), both)


@of_each_stage
def unreached(spec: Spec, name: str, stage: Stage) -> Faults:
    called = {step.stage for pipeline in spec.pipelines.values() for step in pipeline.steps.values()}
    if name not in called | {closest(other, spec.stages) for other in called - set(spec.stages)}:
        yield UNREACHED.at(("stages", name), "no pipeline calls this stage")


@of_each_model
def no_budget(spec: Spec, name: str, model: Model) -> Faults:
    if model.latency_budget is None and (users := stages_of(spec, name)):
        yield NO_BUDGET.at(("models", name), f"stage {users[0]} uses {name}, which has no latency_budget")


@of_each_model
def budget_over_sla(spec: Spec, name: str, model: Model) -> Faults:
    sla = spec.longest_sla
    if model.latency_budget is not None and model.latency_budget >= sla:
        yield BUDGET_OVER_SLA.at(
            ("models", name, "latency_budget"),
            f"it is {show_duration(model.latency_budget)}, and no request may take longer than {show_duration(sla)}",
        )


@of_the_spec
def routes(spec: Spec) -> Faults:
    taken: dict[str, str] = {}
    for name, pipeline in spec.pipelines.items():
        place = ("pipelines", name, "route")
        if pipeline is UNKNOWN or pipeline.route is UNKNOWN:
            continue
        if pipeline.route in taken:
            yield SAME_ROUTE.at(place, f"pipeline {taken[pipeline.route]} has the route {pipeline.route} already")
        if any(pipeline.route == route or pipeline.route.startswith(f"{route}/") for route in RESERVED_ROUTES):
            yield RESERVED.at(place, f"the ingress keeps {', '.join(RESERVED_ROUTES)} for itself")
        taken.setdefault(pipeline.route, name)


@of_each_pipeline
def images(spec: Spec, name: str, pipeline: Pipeline) -> Faults:
    if all(isinstance(taken, Flag) for taken in pipeline.inputs.values()):
        yield NO_IMAGE.at(("pipelines", name, "inputs"), f"{name} takes flags alone")
    for input_name, taken in pipeline.images.items():
        if taken.many and (taken.fewest > taken.most or taken.most < 1):
            yield NOT_IMAGES.at(
                ("pipelines", name, "inputs", input_name),
                f"image[{taken.fewest}..{taken.most}] allows nothing",
                remedy="write the smaller count first, as image[0..8]",
            )


@of_each_pipeline
def steps(spec: Spec, name: str, pipeline: Pipeline) -> Faults:
    place = ("pipelines", name, "steps")
    earlier: list[str] = []
    for step_name, step in pipeline.steps.items():
        if step_name in pipeline.inputs:
            yield SAME_NAME.at((*place, step_name), f"an input is called {step_name} too")
        if step.stage not in spec.stages:
            known = ", ".join(spec.stages)
            yield NO_STAGE.at(
                (*place, step_name, "call"),
                f"there is no stage {step.stage!r}; there is {known}",
                remedy=did_you_mean(step.stage, spec.stages),
            )
        for argument, source in step.takes.items():
            if source not in pipeline.inputs and source not in earlier:
                known = ", ".join([*pipeline.inputs, *earlier])
                yield NO_SOURCE.at(
                    (*place, step_name, "takes", argument),
                    f"{source!r} is neither an input nor an earlier step: {known}",
                    remedy=did_you_mean(source, [*pipeline.inputs, *earlier]),
                )
        earlier.append(step_name)


@of_each_pipeline
def unread(spec: Spec, name: str, pipeline: Pipeline) -> Faults:
    read = {source for step in pipeline.steps.values() for source in step.takes.values()}
    named = [*pipeline.inputs, *pipeline.steps]
    meant = {closest(source, named) for source in read - set(named)}
    for step_name in list(pipeline.steps)[:-1]:
        if step_name not in read | meant:
            yield UNREAD.at(("pipelines", name, "steps", step_name), "no later step takes this result")


@of_each_pipeline
def over_budget(spec: Spec, name: str, pipeline: Pipeline) -> Faults:
    sla = spec.sla(name)
    longest = longest_path(spec, pipeline)
    if longest is not None and longest[0] > sla:
        models = [model for step in longest[1] for model in models_of(spec, pipeline, step)]
        parts = " + ".join(f"{model} {show_duration(budget(spec, [model]))}" for model in models)
        yield OVER_BUDGET.at(
            ("pipelines", name),
            f"the budgets along {' → '.join(longest[1])} are {show_duration(longest[0])} ({parts}), "
            f"more than the SLA of {show_duration(sla)}",
        )
