"""Amounts that the types allow and no server can have: what Triton makes for each of them when it loads the model."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from math import prod

from serve_app.spec.checks.registry import of_each_model, of_each_model_in_each_profile, of_each_profile
from serve_app.spec.findings import Faults, Place, error
from serve_app.spec.model import Model
from serve_app.spec.part import UNKNOWN
from serve_app.spec.profile import Profile
from serve_app.spec.resolved import Resolved
from serve_app.spec.schema import Spec
from serve_app.spec.tensors import Tensor
from serve_app.spec.units import show_duration, show_size

# What one message of gRPC can hold: no client could send a larger tensor.
LARGEST_TENSOR = 2**31 - 1
MOST_SLOTS = 1_000_000
MOST_INSTANCES = 1_000
# What a warm-up that does nothing takes at the least: 40 us were measured in the python backend of Triton 2.51.
_FASTEST_RUN = timedelta(microseconds=20)
# Triton 2.51 starts with 192 bytes, which it needs for itself.
SMALLEST_CACHE = 1024

LARGE_TENSOR = error(
    "T145", "A tensor of a warm-up or of an initial state that no request could hold",
    "Triton takes the memory for it as it loads the model, and ends with all other models where there is not enough",
    f"write dimensions and a batch of {show_size(LARGEST_TENSOR + 1)} at the most",
)  # fmt: skip
MANY_SLOTS = error(
    "T146", "More slots for sequences than a server can hold",
    "Triton makes all of them as it loads the model, 700MB and a second for each million, and ends with all other "
    "models where memory runs out",
    f"write fewer, {MOST_SLOTS} of all instances at the most",
)  # fmt: skip
MANY_INSTANCES = error(
    "T147", "More instances than a server can hold",
    "Triton starts one after the other, in the python backend a process each: 50 take 3s to 7s, and so many are never "
    "ready",
    f"write fewer, {MOST_INSTANCES} at the most",
)  # fmt: skip
LONG_WARMUP = error(
    "T148", "A warm-up that takes longer than the server may take to start",
    "the server is ended before the model is ready", "write a smaller count",
)  # fmt: skip
CACHE_SIZE = error(
    "T418", "A response cache that the server cannot have",
    "the server does not start, holds no answer, or runs out of memory",
    "write a size from 1KiB up to less than the profile's triton.memory, as 64MiB",
)  # fmt: skip


def least_bytes(tensor: Tensor) -> int:
    """What one item takes at the least: a text its length in four bytes, and a dimension that varies is 1."""
    return prod(dim for dim in tensor.dims if dim != -1) * (tensor.width or 4)


def _too_large(place: Place, tensor: Tensor, batch: int) -> Faults:
    if least_bytes(tensor) * batch > LARGEST_TENSOR:
        items = f"{batch} items of {tensor} take" if batch > 1 else f"{tensor} takes"
        yield LARGE_TENSOR.at(place, f"{items} more than {show_size(LARGEST_TENSOR + 1)}")


@of_each_model
def warmup_tensors(spec: Spec, name: str, model: Model) -> Faults:
    for index, entry in enumerate(model.warmup):
        if entry is UNKNOWN or entry.inputs is UNKNOWN or entry.batch is UNKNOWN:
            continue
        for key, given in entry.inputs.items():
            if given is UNKNOWN or (given.tensor is None and key not in model.inputs):
                continue
            tensor = given.tensor if given.tensor is not None else model.inputs[key].tensor
            place = ("models", name, "warmup", index, "inputs", key)
            yield from _too_large(place, tensor, max(1, entry.batch))


@of_each_model
def initial_tensors(spec: Spec, name: str, model: Model) -> Faults:
    for index, state in enumerate(model.sequence.states if model.sequence is not None else []):
        if state is UNKNOWN or state.initial is UNKNOWN:
            continue
        for number, initial in enumerate(state.initial):
            if initial is not UNKNOWN:
                place = ("models", name, "sequence", "states", index, "initial", number, "tensor")
                yield from _too_large(place, initial.tensor, 1)


@of_each_model_in_each_profile
def slots(found: Resolved) -> Faults:
    for place, each in _slots(found):
        whole = each * found.instance_count
        if whole > MOST_SLOTS:
            yield MANY_SLOTS.at(place, f"{each} for each of {found.instance_count} instances are {whole}")


def _slots(found: Resolved) -> Iterator[tuple[Place, int]]:
    sequence = found.sequence
    if sequence is not None and sequence.direct is not None:
        yield found.place("max_batch"), found.max_batch
    if sequence is not None and sequence.oldest is not None:
        yield ("models", found.name, "sequence", "oldest", "max_candidates"), sequence.oldest.max_candidates


@of_each_model_in_each_profile
def instances(found: Resolved) -> Faults:
    if found.instance_count > MOST_INSTANCES:
        yield MANY_INSTANCES.at(
            found.place("instances"), f"{found.name} has {found.instance_count} instances in {found.profile}"
        )


@of_each_model_in_each_profile
def warmup_counts(found: Resolved) -> Faults:
    limit = found.spec.profiles[found.profile].triton.startup_timeout
    for index, entry in enumerate(found.model.warmup):
        if entry is not UNKNOWN and entry.count is not UNKNOWN and entry.count * _FASTEST_RUN > limit:
            yield LONG_WARMUP.at(
                ("models", found.name, "warmup", index, "count"),
                f"it is run {entry.count} times, and {found.profile} has a startup_timeout of {show_duration(limit)}",
            )


@of_each_profile
def cache_size(spec: Spec, name: str, profile: Profile) -> Faults:
    size, memory = profile.triton.response_cache, profile.triton.memory
    place = ("profiles", name, "triton", "response_cache")
    if size is not None and size < SMALLEST_CACHE:
        yield CACHE_SIZE.at(place, f"{show_size(size)} is no size for a cache")
    elif size is not None and size >= memory:
        yield CACHE_SIZE.at(place, f"it is {show_size(size)}, and the server's memory {show_size(memory)}")
