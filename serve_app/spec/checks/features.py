"""What a model does besides running: cache, decoupled answers, tensors made for a batch, parameters, and schedulers."""

from __future__ import annotations

from collections.abc import Iterator

from serve_app.spec.checks.registry import (
    of_each_ensemble,
    of_each_model,
    of_each_model_in_each_profile,
    of_each_profile,
    of_each_stage,
)
from serve_app.spec.findings import Faults, Place, error, warning
from serve_app.spec.model import THREADS_PARAMETER, Ensemble, Model
from serve_app.spec.part import UNKNOWN
from serve_app.spec.paths import reached
from serve_app.spec.pipeline import Stage
from serve_app.spec.profile import Profile
from serve_app.spec.resolved import Resolved
from serve_app.spec.schema import Spec

TWO_SCHEDULERS = error(
    "T160", "Two schedulers for one model", "Triton takes one only, and refuses a configuration with two",
    "keep one of batching, sequence and unscheduled",
)  # fmt: skip
NO_EFFECT = warning("T161", "A value that has no effect", "nothing reads it", "remove it")
NOT_CACHED = warning(
    "T162", "A cached model on a server without a cache", "Triton loads it and caches nothing, without a word",
    "give the profile's triton a response_cache, as 64MiB, or remove cache",
)  # fmt: skip
IDLE_CACHE = warning(
    "T163", "A response cache that no model uses", "the server holds its memory for nothing",
    "write cache: true at a model, or remove response_cache",
)  # fmt: skip
CACHE_REFUSED = error(
    "T164", "A cache for answers that Triton cannot cache", "Triton refuses to load the model", "remove cache"
)
BATCH_TENSOR = error(
    "T165", "A batch input or output that Triton refuses", "Triton refuses to load the model", "correct it"
)
GIVEN_TWICE = warning(
    "T166", "A batch input with the name of an input", "a request and Triton would both give the tensor",
    "remove it from the inputs",
)  # fmt: skip
THREADS_TWICE = warning(
    "T176", "A parameter that the spec has a better word for", "it and `threads` would contradict each other",
    "write threads instead",
)  # fmt: skip
DECOUPLED_CALL = error(
    "T177", "A decoupled model that a stage calls", "every call fails: a stage gets one answer to each request, which "
    "Triton refuses to a decoupled model", "remove decoupled, or call a model whose code collects the answers",
)  # fmt: skip
DECOUPLED_ONNX = error(
    "T178", "A decoupled model that is an ONNX file", "every request fails: the code that runs it gives one answer to "
    "each", "remove decoupled",
)  # fmt: skip


def _place(name: str, served: Model | Ensemble) -> Place:
    return ("ensembles" if isinstance(served, Ensemble) else "models", name)


@of_each_model
def two_schedulers(spec: Spec, name: str, model: Model) -> Faults:
    given = {
        "batching": model.batching is not None,
        "sequence": model.sequence is not None,
        "unscheduled": model.unscheduled,
    }
    words = [field for field, there in given.items() if there]
    if len(words) > 1:
        yield TWO_SCHEDULERS.at(("models", name, words[-1]), f"{', '.join(words[:-1])} and {words[-1]} are given")


@of_each_model_in_each_profile
def idle_override(found: Resolved) -> Faults:
    if found.batching is not None:
        return
    # Sequences wait for each other too, and those of `oldest` are batched.
    idle = ("queue_delay", "preferred_sizes") if found.sequence is None else ("preferred_sizes",)
    if found.sequence is not None and found.sequence.oldest is not None:
        return
    for field in idle:
        if getattr(found.override, field) is not None:
            place = ("models", found.name, "profiles", found.profile, field)
            yield NO_EFFECT.at(place, f"{field} is given, and {found.name} does not batch dynamically")


@of_each_model_in_each_profile
def idle_threads(found: Resolved) -> Faults:
    everywhere = [Resolved(found.spec, found.name, profile) for profile in found.spec.profiles]
    where = [found] if found.override.threads is not None else everywhere
    if found.threads is not None and not any(each.has_tandems_code for each in where):
        remedy = "remove it"
        if found.backend == "onnxruntime":
            remedy = f"write parameters: {{intra_op_thread_count: '{found.threads}'}}"
        yield NO_EFFECT.at(
            found.place("threads"), f"threads is given, and backend {found.backend} does not know it", remedy=remedy
        )


def _entries(spec: Spec) -> Iterator[tuple[str, Model | Ensemble]]:
    """Models and ensembles, save those of which nothing can be known."""
    for part in (spec.models, spec.ensembles):
        for name, served in part.items():
            if served is not UNKNOWN:
                yield name, served


@of_each_profile
def caches(spec: Spec, name: str, profile: Profile) -> Faults:
    entries = list(_entries(spec))
    if profile.triton.response_cache is None:
        for key, served in entries:
            if served.cache is True:
                yield NOT_CACHED.at(
                    (*_place(key, served), "cache"), f"{key} is cached, and profile {name} has no response_cache"
                )
    elif all(served.cache is False for _, served in entries):
        yield IDLE_CACHE.at(("profiles", name, "triton", "response_cache"), "no model has cache: true")


def cache_refused(spec: Spec, name: str, served: Model | Ensemble) -> Faults:
    if not served.cache:
        return
    place = (*_place(name, served), "cache")
    if isinstance(served, Model) and served.sequence is not None:
        yield CACHE_REFUSED.at(place, f"{name} is cached and keeps sequences")
    if decoupled := _decoupled(spec, name):
        yield CACHE_REFUSED.at(place, f"{name} is cached, and {decoupled} is decoupled")


of_each_model(cache_refused)
of_each_ensemble(cache_refused)


def _decoupled(spec: Spec, name: str) -> str | None:
    """What makes a model or ensemble decoupled: itself, or a model that the ensemble runs."""
    return next((each for each in (name, *reached(spec, name)) if spec.served(each).decoupled), None)


@of_each_stage
def decoupled_call(spec: Spec, name: str, stage: Stage) -> Faults:
    for model in stage.models:
        if (model in spec.models or model in spec.ensembles) and (decoupled := _decoupled(spec, model)):
            yield DECOUPLED_CALL.at(("stages", name, "models"), f"{name} calls {model}, and {decoupled} is decoupled")


@of_each_model_in_each_profile
def decoupled_onnx(found: Resolved) -> Faults:
    if found.model.decoupled and found.has_tandems_code:
        yield DECOUPLED_ONNX.at(("models", found.name, "decoupled"), f"{found.name} is decoupled and an ONNX file")


@of_each_model
def batch_inputs(spec: Spec, name: str, model: Model) -> Faults:
    for index, entry in enumerate(model.batch_inputs):
        place = ("models", name, "batch_inputs", index)
        yield from _sources(place, entry.sources, model)
        if entry.type not in ("int32", "float32"):
            yield BATCH_TENSOR.at(
                (*place, "type"), f"a batch input cannot be {entry.type}", remedy="write int32 or float32"
            )
        for target in entry.targets:
            if target in model.inputs:
                yield GIVEN_TWICE.at((*place, "targets"), f"{target!r} is an input of {name} too")


@of_each_model
def batch_outputs(spec: Spec, name: str, model: Model) -> Faults:
    for index, entry in enumerate(model.batch_outputs):
        place = ("models", name, "batch_outputs", index)
        yield from _sources(place, entry.sources, model)
        for number, target in enumerate(entry.targets):
            if target not in model.outputs:
                yield BATCH_TENSOR.at(
                    (*place, "targets"),
                    f"{target!r} is no output of {name}",
                    remedy=f"name one: {', '.join(model.outputs)}",
                )
            elif target in entry.targets[:number]:
                yield BATCH_TENSOR.at((*place, "targets"), f"{target!r} is there twice", remedy="name it once")


def _sources(place: Place, sources: list[str], model: Model) -> Faults:
    """The inputs that the batch tensor at `place` is made from."""
    if len(sources) != 1:
        yield BATCH_TENSOR.at((*place, "sources"), f"{len(sources)} sources are given", remedy="name exactly one")
    for source in sources:
        if source not in model.inputs:
            known = ", ".join(model.inputs)
            yield BATCH_TENSOR.at((*place, "sources"), f"{source!r} is no input", remedy=f"name one: {known}")


@of_each_model_in_each_profile
def threads_twice(found: Resolved) -> Faults:
    if found.has_tandems_code and THREADS_PARAMETER in found.model.parameters:
        place = ("models", found.name, "parameters", THREADS_PARAMETER)
        yield THREADS_TWICE.at(place, f"{THREADS_PARAMETER} is a parameter")
