"""Models: names, backends, batching, instances, and what surrounds them."""

from __future__ import annotations

from serve_app.spec.checks.registry import of_each_model, of_each_model_in_each_profile
from serve_app.spec.findings import Faults, error
from serve_app.spec.model import AS_IS, ONNX, Model
from serve_app.spec.resolved import Resolved
from serve_app.spec.schema import Spec
from serve_app.spec.units import show_duration

NO_WEIGHTS = error(
    "W001", "An ONNX model without weights", "there is nothing to load",
    "add weights, or write backend: python for a model.py of its own",
)  # fmt: skip
NOTHING_TO_PREPARE = error(
    "W002", "Weights that name neither a file nor code", "there is nothing to prepare", "give file, or prepare"
)
WHICH_FILE = error(
    "W003", "A package without the file in it", "nobody knows which file is the model", "give the file in the package"
)
NOT_PINNED = error(
    "W004", "A file without its SHA-256", "another file would be served unnoticed",
    "add the sha256 that sha256sum prints",
)  # fmt: skip
SLOW_DELAY = error(
    "T101", "A queue delay longer than the latency budget", "a lone request always breaks the budget",
    "make the delay shorter",
)  # fmt: skip
LONELY_TIMEOUT = error(
    "T102", "A queue delay not shorter than the queue timeout", "a lone request will always fail",
    "make the delay shorter, or the timeout longer",
)  # fmt: skip
SHORT_QUEUE = error(
    "T103", "A queue shorter than a batch", "no batch is ever full", "make the queue at least as long as a batch"
)


@of_each_model
def weights(spec: Spec, name: str, model: Model) -> Faults:
    found = model.weights
    place = ("models", name, "weights")
    if found is None:
        if model.backend == ONNX:
            yield NO_WEIGHTS.at(("models", name), f"{name} has no weights")
        return
    if found.file is None and found.prepare == AS_IS:
        yield NOTHING_TO_PREPARE.at(place, "neither file nor prepare is given")
    if found.package is not None and found.file is None:
        yield WHICH_FILE.at(place, f"which file of {found.package} is the model")
    if found.file is not None and found.sha256 is None:
        yield NOT_PINNED.at(place, f"the {'package' if found.package else 'file'} has no sha256")


@of_each_model_in_each_profile
def slow_delay(found: Resolved) -> Faults:
    budget = found.model.latency_budget
    if found.batching is not None and budget is not None and found.queue_delay > budget:
        yield SLOW_DELAY.at(
            found.place("queue_delay"),
            f"the delay is {show_duration(found.queue_delay)} and the budget {show_duration(budget)}",
        )


@of_each_model_in_each_profile
def lonely_timeout(found: Resolved) -> Faults:
    if found.batching is None:
        return
    for level, policy in {0: found.default_queue, **found.level_queues}.items():
        timeout = policy.timeout
        if timeout and timeout <= found.queue_delay:
            of_level = f" of level {level}" if level else ""
            yield LONELY_TIMEOUT.at(
                found.place("queue_delay"),
                f"the delay of {show_duration(found.queue_delay)} is not shorter than the queue timeout{of_level}, "
                f"{show_duration(timeout)}",
                consequence=f"a lone request will always fail after {show_duration(timeout)}",
            )


@of_each_model_in_each_profile
def short_queue(found: Resolved) -> Faults:
    if found.batching is not None and 0 < (found.default_queue.size or 0) < found.max_batch:
        yield SHORT_QUEUE.at(
            ("models", found.name, "batching", "queue", "size"),
            f"a queue of {found.default_queue.size} can never fill a batch of {found.max_batch}",
        )
