"""Sequence batching: its strategy, its times, and who can call a model that has it."""

from __future__ import annotations

from datetime import timedelta

from serve_app.spec.checks.registry import of_each_model, of_each_model_in_each_profile, of_each_stage
from serve_app.spec.findings import Faults, error, warning
from serve_app.spec.model import Model
from serve_app.spec.paths import reached
from serve_app.spec.pipeline import Stage
from serve_app.spec.resolved import Resolved
from serve_app.spec.schema import Spec
from serve_app.spec.units import show_duration

NOT_ONE = error(
    "T201", "Sequences by no strategy, or by both", "Triton would take direct for none, and refuses both",
    "give either direct or oldest",
)  # fmt: skip
PREFERRED = error(
    "T202", "A preferred size that no batch of sequences can have", "Triton refuses to load the model",
    "write sizes from 1 to max_batch",
)  # fmt: skip
UTILIZATION = error(
    "T203", "A slot utilization that is no share", "Triton refuses to load the model", "write a number from 0 to 1"
)
NO_DELAY = warning(
    "T204", "A slot utilization without a queue delay", "no request waits for it", "give queue_delay, or leave it out"
)
NO_UTILIZATION = warning(
    "T205", "A queue delay without a slot utilization", "no request waits", "give minimum_slot_utilization as well"
)
FEW_CANDIDATES = warning(
    "T207", "Fewer candidate sequences than a batch has places",
    "no batch is ever full, since it holds one request of each sequence", "raise max_candidates, or lower max_batch",
)  # fmt: skip
NOT_READY = warning(
    "T208", "Direct sequences of a model that is not told which are ready",
    "while one sequence pauses, its row of the batch holds whatever the memory held, and the model runs on it",
    "add a control that signals ready, or write max_batch: 1",
)  # fmt: skip
NO_IDLE_TIMEOUT = error(
    "T209", "An idle timeout of nothing", "Triton takes it for 1s", "write how long a sequence may pause"
)
SHORT_IDLE_TIMEOUT = warning(
    "T210", "An idle timeout shorter than the SLA",
    "a client whose request takes as long as the SLA allows finds its sequence ended, and the next request fails",
    "lengthen idle_timeout",
)  # fmt: skip
DELAYED_TO_DEATH = error(
    "T211", "A queue delay not shorter than the idle timeout",
    "a sequence that waits for others is ended meanwhile, and its next request fails",
    "shorten the delay, or lengthen idle_timeout",
)  # fmt: skip
SLOW_DELAY = error(
    "T212", "A queue delay of sequences longer than the latency budget", "a lone sequence always breaks the budget",
    "make the delay shorter",
)  # fmt: skip
NEVER_AGAIN = warning(
    "T213", "Iterative sequences of an ONNX model",
    "each request is a whole sequence, and no ONNX backend asks to be run again", "leave iterative out",
)  # fmt: skip
CALLED_IN_SEQUENCE = error(
    "T214", "A stage that uses a model with sequences", "a stage's requests belong to no sequence, and Triton refuses "
    "them", "call it over /v2, with a sequence id",
)  # fmt: skip


@of_each_model
def not_one(spec: Spec, name: str, model: Model) -> Faults:
    if model.sequence is not None and (model.sequence.direct is None) == (model.sequence.oldest is None):
        given = "neither direct nor oldest is given" if model.sequence.direct is None else "both are given"
        yield NOT_ONE.at(("models", name, "sequence"), given)


@of_each_model_in_each_profile
def preferred(found: Resolved) -> Faults:
    if found.sequence is None or found.sequence.oldest is None:
        return
    for size in found.sequence.oldest.preferred_sizes:
        if size < 1:
            yield PREFERRED.at(found.place("preferred_sizes"), f"preferred size {size} is no size")
        elif size > found.max_batch:
            yield PREFERRED.at(
                found.place("preferred_sizes"), f"preferred size {size} is larger than max_batch, {found.max_batch}"
            )


@of_each_model
def utilization(spec: Spec, name: str, model: Model) -> Faults:
    if model.sequence is None or model.sequence.direct is None:
        return
    share = model.sequence.direct.minimum_slot_utilization
    if not 0 <= share <= 1:
        place = ("models", name, "sequence", "direct", "minimum_slot_utilization")
        yield UTILIZATION.at(place, f"{share:g} is no share of the slots")


@of_each_model_in_each_profile
def one_without_the_other(found: Resolved) -> Faults:
    if found.sequence is None or found.sequence.direct is None:
        return
    share, delay = found.sequence.direct.minimum_slot_utilization, found.sequence.direct.queue_delay
    if share and not delay:
        place = ("models", found.name, "sequence", "direct", "minimum_slot_utilization")
        yield NO_DELAY.at(place, f"{share:g} of the slots are wanted, and nothing waits for them")
    if delay and not share:
        yield NO_UTILIZATION.at(
            found.place("queue_delay"), f"the delay is {show_duration(delay)}, and no slots are wanted"
        )


@of_each_model_in_each_profile
def few_candidates(found: Resolved) -> Faults:
    if found.sequence is None or found.sequence.oldest is None:
        return
    most = found.sequence.oldest.max_candidates
    if most < found.max_batch:
        yield FEW_CANDIDATES.at(
            ("models", found.name, "sequence", "oldest", "max_candidates"),
            f"an instance works on {most} sequences at a time, and a batch has {found.max_batch} places",
        )


@of_each_model_in_each_profile
def not_ready(found: Resolved) -> Faults:
    if found.sequence is None or found.sequence.direct is None or found.max_batch < 2:
        return
    if "ready" not in [control.signals for control in found.sequence.controls]:
        yield NOT_READY.at(("models", found.name, "sequence", "controls"), f"no control of {found.name} signals ready")


@of_each_model
def idle(spec: Spec, name: str, model: Model) -> Faults:
    if model.sequence is None:
        return
    place = ("models", name, "sequence", "idle_timeout")
    timeout = model.sequence.idle_timeout
    if not timeout:
        yield NO_IDLE_TIMEOUT.at(place, "idle_timeout is 0")
    elif timeout < spec.longest_sla:
        yield SHORT_IDLE_TIMEOUT.at(
            place, f"idle_timeout is {show_duration(timeout)} and the SLA {show_duration(spec.longest_sla)}"
        )


def _delay(found: Resolved) -> timedelta:
    """How long a request waits for other sequences' requests; none where nothing makes it wait."""
    sequence = found.sequence
    if sequence is None:
        return timedelta()
    if sequence.oldest is not None:
        return sequence.oldest.queue_delay or timedelta()
    waits = sequence.direct is not None and sequence.direct.minimum_slot_utilization > 0
    return (sequence.direct.queue_delay if waits and sequence.direct else None) or timedelta()


@of_each_model_in_each_profile
def delayed_to_death(found: Resolved) -> Faults:
    delay = _delay(found)
    if found.sequence is not None and delay and delay >= found.sequence.idle_timeout > timedelta():
        yield DELAYED_TO_DEATH.at(
            found.place("queue_delay"),
            f"the delay is {show_duration(delay)} and idle_timeout {show_duration(found.sequence.idle_timeout)}",
        )


@of_each_model_in_each_profile
def slow_delay(found: Resolved) -> Faults:
    budget = found.model.latency_budget
    if budget is not None and (delay := _delay(found)) > budget:
        yield SLOW_DELAY.at(
            found.place("queue_delay"),
            f"the delay is {show_duration(delay)} and the budget {show_duration(budget)}",
        )


@of_each_model_in_each_profile
def never_again(found: Resolved) -> Faults:
    if found.sequence is not None and found.sequence.iterative and found.is_onnx:
        yield NEVER_AGAIN.at(("models", found.name, "sequence", "iterative"), f"{found.name} is an ONNX model")


@of_each_stage
def called_by_a_stage(spec: Spec, name: str, stage: Stage) -> Faults:
    for used in stage.models:
        for each in reached(spec, used):
            model = spec.models[each]
            by = "" if each == used else f" in its step {each}"
            # An iterative sequence begins and ends within one request, which needs no id.
            if model.sequence is not None and not model.sequence.iterative:
                yield CALLED_IN_SEQUENCE.at(("stages", name, "models"), f"{used} has sequences{by}")
