"""Optional steps: that there is an answer without them, and that they and the rest have the time that they need."""

from __future__ import annotations

from datetime import timedelta

from serve_app.spec.checks.registry import of_each_pipeline
from serve_app.spec.findings import Faults, error, warning
from serve_app.spec.paths import budget, longest_path, models_of, total
from serve_app.spec.pipeline import Pipeline
from serve_app.spec.schema import Spec
from serve_app.spec.units import show_duration

OPTIONAL_ANSWER = error(
    "P117", "A pipeline whose last step is optional", "its result is the answer, and there would be none",
    "leave `optional` out",
)  # fmt: skip
NO_EFFECT = error(
    "P118", "A `within` that changes nothing", "the step takes as long as it does without it",
    "make it less, or leave it out",
)  # fmt: skip
GIVEN_UP_EARLY = warning(
    "P126", "An optional step that is given up before its latency budgets",
    "at the load that its models are sized for, its result is missing", "lengthen `within` or the SLA",
)  # fmt: skip
LITTLE_LEFT = warning(
    "P127", "An optional step that may take the time that the rest needs",
    "where it is late, so is the answer", "write a shorter `within`",
)  # fmt: skip


@of_each_pipeline
def last_step(spec: Spec, name: str, pipeline: Pipeline) -> Faults:
    last = list(pipeline.steps)[-1]
    if pipeline.steps[last].optional:
        yield OPTIONAL_ANSWER.at(("pipelines", name, "steps", last, "optional"), "no step comes after it")


@of_each_pipeline
def no_effect(spec: Spec, name: str, pipeline: Pipeline) -> Faults:
    for step_name, step in pipeline.steps.items():
        if step.within is None:
            continue
        place = ("pipelines", name, "steps", step_name, "within")
        if not step.optional:
            yield NO_EFFECT.at(place, "the step is not optional", remedy="write optional: true too, or leave it out")
        elif step.within >= (half := spec.sla(name) / 2):
            yield NO_EFFECT.at(
                place,
                f"it is {show_duration(step.within)}, and after half of its request's time, which is "
                f"{show_duration(half)} at the most, a step is given up anyway",
            )


@of_each_pipeline
def time(spec: Spec, name: str, pipeline: Pipeline) -> Faults:
    path = longest_path(spec, pipeline)  # Unknown where steps go in a circle
    sla = spec.sla(name)
    if path is None or path[0] > sla:
        return
    before, after = _before(spec, pipeline), _after(spec, pipeline)
    for step_name, step in pipeline.steps.items():
        if not step.optional:
            continue
        place = ("pipelines", name, "steps", step_name, *(["within"] if step.within else []))
        left, own = sla - before[step_name], _own(spec, pipeline, step_name)
        given = min(step.within or left / 2, left / 2)
        if own > given:
            yield GIVEN_UP_EARLY.at(
                place, f"it is given up after {show_duration(given)}, and its budgets are {show_duration(own)}"
            )
        elif after[step_name] > left - given:
            yield LITTLE_LEFT.at(
                place,
                f"it is given up after {show_duration(given)}, which leaves {show_duration(left - given)} of the SLA, "
                f"and the budgets of what comes after it are {show_duration(after[step_name])}",
            )


def _before(spec: Spec, pipeline: Pipeline) -> dict[str, timedelta]:
    """By step, the longest time that the latency budgets before it add up to."""
    found: dict[str, timedelta] = {}
    for name, step in pipeline.steps.items():
        sources = [source for source in step.takes.values() if source in pipeline.steps]
        found[name] = max((total(found[each], _own(spec, pipeline, each)) for each in sources), default=timedelta())
    return found


def _after(spec: Spec, pipeline: Pipeline) -> dict[str, timedelta]:
    """The same of those after it."""
    found = dict.fromkeys(pipeline.steps, timedelta())
    for name, step in reversed(pipeline.steps.items()):
        for source in step.takes.values():
            if source in found:
                found[source] = max(found[source], total(found[name], _own(spec, pipeline, name)))
    return found


def _own(spec: Spec, pipeline: Pipeline, step: str) -> timedelta:
    return budget(spec, models_of(spec, pipeline, step))
