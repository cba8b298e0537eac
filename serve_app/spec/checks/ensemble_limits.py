"""What an ensemble takes from its steps: batch sizes, several answers, sequences, timeouts; and what it cannot have."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from datetime import timedelta

from serve_app.spec.checks.ensembles import known, steps_of
from serve_app.spec.checks.registry import of_each_ensemble
from serve_app.spec.circles import reachable
from serve_app.spec.findings import Faults, Place, error, warning
from serve_app.spec.model import Ensemble, EnsembleStep
from serve_app.spec.part import UNKNOWN
from serve_app.spec.paths import longest_chain, reached
from serve_app.spec.resolved import Resolved
from serve_app.spec.schema import ProfileName, Spec
from serve_app.spec.units import show_duration

MAX_BATCH = error(
    "T321", "An ensemble with larger batches than a step takes", "Triton refuses to load the ensemble",
    "lower the ensemble's max_batch, or raise the step's",
)  # fmt: skip
CAPPED = warning(
    "T322", "A step that caps the ensemble",
    "no request may bring more items, and the other steps fill their batches from several requests only",
    "raise the max_batch of that step's model and of the ensemble, or lower that of the others",
)  # fmt: skip
MIXED = error(
    "T323", "Tensors of different decoupled steps together", "Triton refuses to load the ensemble",
    "take all tensors of a step, and all outputs, from behind the same decoupled step",
)  # fmt: skip
NOT_SAID = error(
    "T324", "An ensemble of a decoupled step that does not say so",
    "Triton makes it decoupled, and refuses to answer its plain requests", "write decoupled: true",
)  # fmt: skip
NOT_DECOUPLED = warning(
    "T325", "A decoupled ensemble without a decoupled step", "it has no effect: Triton decides it by the steps",
    "remove decoupled",
)  # fmt: skip
CACHE_SEQUENCE = warning(
    "T327", "A response cache of an ensemble with sequences",
    "a request that looks like an earlier one is answered for another sequence, and its step does not run",
    "remove cache",
)  # fmt: skip
ONE_OF_A_SEQUENCE = warning(
    "T328", "A batch for a step with sequences", "each request with more than one item fails", "write max_batch: 1"
)
TIMEOUTS = warning(
    "T329", "Queue timeouts of an ensemble's steps that add up above the SLA",
    "each step's begins anew, and a request can wait longer than the SLA without being refused",
    "shorten them until they fit; one that is left out is as long as the SLA allows a single model, or without end",
)  # fmt: skip
INFLIGHT = warning(
    "T340", "A limit for answers in an ensemble without a decoupled step", "it has no effect",
    "remove max_inflight_requests",
)  # fmt: skip
NAMESPACE = warning(
    "T341", "A step of a namespace", "it has no effect: Tandem's Triton has one repository, without namespaces",
    "remove namespace",
)  # fmt: skip
NO_BACKEND = warning(
    "T342", "Parameters of an ensemble", "they have no effect: an ensemble has no backend to read them",
    "give them to a model",
)  # fmt: skip
RARE = warning("T343", "A backend's field of an ensemble", "it has no effect: an ensemble has no backend", "remove it")
PLATFORM = error("T344", "A platform of an ensemble", "Triton refuses to load the ensemble", "remove it")

_Step = tuple[Place, EnsembleStep]
_OF_BACKENDS = ("runtime", "cc_model_filenames", "model_operations")


def _max_batch(spec: Spec, model: str, profile: ProfileName) -> int:
    served = spec.served(model)
    return served.max_batch if isinstance(served, Ensemble) else Resolved(spec, model, profile).max_batch


def _sizes(spec: Spec, name: str, ensemble: Ensemble, profile: ProfileName) -> dict[str, int]:
    """The max_batch of each model of the steps that batches."""
    sizes = {
        step.model: _max_batch(spec, step.model, profile)
        for _, step in steps_of(name, ensemble)
        if known(spec, step.model) is not None
    }
    return {model: size for model, size in sizes.items() if size is UNKNOWN or size}


@of_each_ensemble
def max_batch(spec: Spec, name: str, ensemble: Ensemble) -> Faults:
    for profile in spec.profiles:
        for model, size in _sizes(spec, name, ensemble, profile).items():
            if size is not UNKNOWN and size < ensemble.max_batch:
                yield MAX_BATCH.at(
                    ("ensembles", name, "max_batch"),
                    f"max_batch is {ensemble.max_batch}, and {model} takes {size} in profile {profile}",
                )


@of_each_ensemble
def capped(spec: Spec, name: str, ensemble: Ensemble) -> Faults:
    sizes = _sizes(spec, name, ensemble, spec.primary_profile)
    if not sizes:
        return
    smallest, largest = min(sizes, key=sizes.__getitem__), max(sizes, key=sizes.__getitem__)
    if ensemble.max_batch == sizes[smallest] < sizes[largest]:
        yield CAPPED.at(
            ("ensembles", name, "max_batch"),
            f"{smallest} takes {sizes[smallest]} items in profile {spec.primary_profile}, and {largest} "
            f"{sizes[largest]}",
        )


def _decoupled(spec: Spec, model: str) -> bool:
    return any(spec.models[each].decoupled for each in reached(spec, model))


def _any_decoupled(spec: Spec, ensemble: Ensemble) -> bool:
    return any(_decoupled(spec, step.model) for step in ensemble.steps)


@of_each_ensemble
def mixed(spec: Spec, name: str, ensemble: Ensemble) -> Faults:
    """Each tensor belongs to the decoupled step that it comes from, or to none; what meets must belong to the same."""
    origin: dict[str, Place | None] = dict.fromkeys(ensemble.inputs)
    for place, step in _as_they_run(list(steps_of(name, ensemble)), ensemble.inputs):
        origins = {origin[tensor] for tensor in step.takes.values()}
        if len(origins) > 1:
            yield MIXED.at((*place, "takes"), f"{' and '.join(step.takes.values())} have different origins")
            return
        for tensor in step.gives.values():
            origin.setdefault(tensor, place if _decoupled(spec, step.model) else next(iter(origins), None))
    outputs = [tensor for tensor in ensemble.outputs if tensor in origin]
    if len({origin[tensor] for tensor in outputs}) > 1:
        yield MIXED.at(("ensembles", name, "outputs"), f"{' and '.join(outputs)} have different origins")


def _as_they_run(steps: Sequence[_Step], inputs: Collection[str]) -> Iterator[_Step]:
    """The steps whose tensors are given, each after those that give them."""
    missing = [{tensor for tensor in step.takes.values() if tensor not in inputs} for _, step in steps]
    takers: dict[str, list[int]] = {}
    for index, tensors in enumerate(missing):
        for tensor in tensors:
            takers.setdefault(tensor, []).append(index)
    ready = [index for index, tensors in enumerate(missing) if not tensors]
    while ready:
        index = ready.pop()
        yield steps[index]
        for tensor in steps[index][1].gives.values():
            for taker in takers.pop(tensor, ()):
                missing[taker].discard(tensor)
                if not missing[taker]:
                    ready.append(taker)


@of_each_ensemble
def said(spec: Spec, name: str, ensemble: Ensemble) -> Faults:
    for place, step in steps_of(name, ensemble):
        if _decoupled(spec, step.model) and not ensemble.decoupled:
            yield NOT_SAID.at((*place, "model"), f"{step.model} is decoupled, and {name} does not say so")
    if ensemble.decoupled and not _any_decoupled(spec, ensemble):
        yield NOT_DECOUPLED.at(("ensembles", name, "decoupled"), f"no step of {name} is decoupled")


@of_each_ensemble
def cached(spec: Spec, name: str, ensemble: Ensemble) -> Faults:
    for model in _with_sequences(spec, ensemble) if ensemble.cache else ():
        yield CACHE_SEQUENCE.at(("ensembles", name, "cache"), f"{model} has sequences")


def _with_sequences(spec: Spec, ensemble: Ensemble) -> Iterator[str]:
    for model in dict.fromkeys(each for step in ensemble.steps for each in reached(spec, step.model)):
        if spec.models[model].sequence is not None:
            yield model


@of_each_ensemble
def one_of_a_sequence(spec: Spec, name: str, ensemble: Ensemble) -> Faults:
    if ensemble.max_batch > 1:
        for model in _with_sequences(spec, ensemble):
            yield ONE_OF_A_SEQUENCE.at(
                ("ensembles", name, "max_batch"),
                f"{model} has sequences, whose requests bring one item, and {name} takes {ensemble.max_batch}",
            )


@of_each_ensemble
def timeouts(spec: Spec, name: str, ensemble: Ensemble) -> Faults:
    def given(model: str) -> timedelta:
        batching = spec.models[model].batching
        return (batching.queue.timeout if batching else None) or timedelta()

    total, models = longest_chain(spec, name, given)
    parts = [f"{model} {show_duration(given(model))}" for model in models if given(model)]
    sla = _sla(spec, name)
    if len(parts) > 1 and total > sla:
        what = f"they add up to {show_duration(total)} ({' + '.join(parts)}), and the SLA is {show_duration(sla)}"
        yield TIMEOUTS.at(("ensembles", name, "steps"), what)


def _sla(spec: Spec, name: str) -> timedelta:
    """The longest that a pipeline has for requests to the ensemble; the service's where none uses it."""
    uses = {each: [step.model for step in ensemble.steps] for each, ensemble in spec.ensembles.items()}
    stages = {
        stage for stage, entry in spec.stages.items() if any(name in reachable(uses, used) for used in entry.models)
    }
    slas = [
        spec.sla(each)
        for each, pipeline in spec.pipelines.items()
        if any(step.stage in stages for step in pipeline.steps.values())
    ]
    return max(slas, default=spec.service.sla)


@of_each_ensemble
def inflight(spec: Spec, name: str, ensemble: Ensemble) -> Faults:
    if ensemble.max_inflight_requests and not _any_decoupled(spec, ensemble):
        yield INFLIGHT.at(("ensembles", name, "max_inflight_requests"), f"no step of {name} is decoupled")


@of_each_ensemble
def namespace(spec: Spec, name: str, ensemble: Ensemble) -> Faults:
    for place, step in steps_of(name, ensemble):
        if step.namespace is not None:
            yield NAMESPACE.at((*place, "namespace"), f"the namespace is {step.namespace!r}")


@of_each_ensemble
def of_backends(spec: Spec, name: str, ensemble: Ensemble) -> Faults:
    if ensemble.parameters:
        yield NO_BACKEND.at(("ensembles", name, "parameters"), f"{name} has {', '.join(ensemble.parameters)}")
    for field in ensemble.triton:
        if field in _OF_BACKENDS:
            yield RARE.at(("ensembles", name, "triton", field), f"{field} is for backends")
        if field == "platform":
            yield PLATFORM.at(("ensembles", name, "triton", field), "an ensemble has one of its own")
