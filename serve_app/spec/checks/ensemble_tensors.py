"""The tensors of ensembles: one type, shapes that agree, and a batch dimension in all steps or in none."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from serve_app.spec.checks.ensembles import known, steps_of
from serve_app.spec.checks.registry import of_each_ensemble
from serve_app.spec.findings import Faults, Place, error, warning
from serve_app.spec.model import Ensemble, Input, Output
from serve_app.spec.part import UNKNOWN
from serve_app.spec.schema import Spec

OTHER_TYPE = error(
    "T314", "A tensor of two types", "Triton refuses to load the ensemble", "put a step between that converts it"
)
OTHER_SHAPE = error(
    "T315", "A tensor of two shapes", "Triton refuses to load the ensemble, or fails every request",
    "make the dimensions the same, or -1 where they vary",
)  # fmt: skip
OPTIONAL = error(
    "T318", "An input that may be left out, and that a step needs", "each request without it fails",
    "remove optional, or make the model's input optional too",
)  # fmt: skip
ONE_BY_ONE = warning(
    "T319", "An ensemble that does not batch, of models that do",
    "its requests bring one item each, without a batch dimension", "write the max_batch that all its steps take",
)  # fmt: skip
ONE_ONLY = error(
    "T320", "An ensemble that batches, of a model that does not", "each request with more than one item fails",
    "write max_batch: 1, or let the model batch, or give its tensors a first dimension of -1",
)  # fmt: skip


@dataclass(frozen=True)
class _Use:
    """A tensor of the ensemble as one side knows it: the ensemble itself, or the model of a step."""

    dtype: str
    dims: tuple[int, ...]
    batched: bool

    def fits(self, other: _Use) -> bool:
        """Triton's rule: the same with or without the batch dimension, -1 being any size."""
        return _match(self.dims, other.dims) or _match(self.with_batch, other.with_batch)

    @property
    def with_batch(self) -> tuple[int, ...]:
        return (-1, *self.dims) if self.batched else self.dims

    def __str__(self) -> str:
        return f"{self.dtype}[{', '.join(map(str, self.dims))}]"


def _match(these: tuple[int, ...], those: tuple[int, ...]) -> bool:
    return len(these) == len(those) and all(
        -1 in (one, other) or one == other for one, other in zip(these, those, strict=True)
    )


def _use(entry: Input | Output | None, max_batch: int, *, of_the_ensemble: bool) -> _Use | None:
    """None where there is no such tensor, or it is not known. Triton looks at the reshape of an ensemble's own only."""
    if entry is None or any(part is UNKNOWN for part in (entry, max_batch)):
        return None
    if entry.tensor is UNKNOWN or entry.reshape is UNKNOWN:
        return None
    dims = tuple(entry.reshape) if of_the_ensemble and entry.reshape is not None else entry.tensor.dims
    return _Use(entry.tensor.dtype, dims, max_batch > 0)


def _own(ensemble: Ensemble, name: str) -> Iterator[tuple[Place, str, str, _Use]]:
    """Place, tensor, whose it is, and what it is, of the ensemble's inputs and outputs."""
    for kind, entries in (("inputs", ensemble.inputs), ("outputs", ensemble.outputs)):
        for tensor, entry in entries.items() if entries is not UNKNOWN else ():
            use = _use(entry, ensemble.max_batch, of_the_ensemble=True)
            if use is not None:
                yield ("ensembles", name, kind, tensor), tensor, f"as {kind[:-1]} of {name}", use


def _of_steps(spec: Spec, ensemble: Ensemble, name: str) -> Iterator[tuple[Place, str, str, _Use]]:
    """The same of the inputs and outputs of the steps' models."""
    for place, step in steps_of(name, ensemble):
        served = known(spec, step.model)
        if served is None:
            continue
        for key, mapped, kind, entries in (
            ("takes", step.takes, "input", served.inputs),
            ("gives", step.gives, "output", served.outputs),
        ):
            for own, tensor in mapped.items() if entries is not UNKNOWN else ():
                use = _use(entries.get(own), served.max_batch, of_the_ensemble=False)
                if use is not None:
                    yield (*place, key, own), tensor, f"as {kind} {own} of {step.model}", use


@of_each_ensemble
def types_and_shapes(spec: Spec, name: str, ensemble: Ensemble) -> Faults:
    seen: dict[str, dict[_Use, str]] = {}
    for place, tensor, whose, use in (*_own(ensemble, name), *_of_steps(spec, ensemble, name)):
        earlier = seen.setdefault(tensor, {})
        others = [other for other in earlier if other.dtype != use.dtype or not use.fits(other)]
        if others:
            rule = OTHER_TYPE if others[0].dtype != use.dtype else OTHER_SHAPE
            yield rule.at(place, f"{tensor} is {use} {whose}, and {others[0]} {earlier[others[0]]}")
        earlier.setdefault(use, whose)


@of_each_ensemble
def optional(spec: Spec, name: str, ensemble: Ensemble) -> Faults:
    for place, step in steps_of(name, ensemble):
        served = known(spec, step.model)
        for key, tensor in step.takes.items() if served is not None else ():
            given, wanted = ensemble.inputs.get(tensor), served.inputs.get(key) if served else None
            if given is None or wanted is None or given is UNKNOWN or wanted is UNKNOWN:
                continue
            if given.optional and not wanted.optional:
                yield OPTIONAL.at((*place, "takes", key), f"{tensor} is optional, and {step.model} needs its {key}")


@of_each_ensemble
def batch_dimension(spec: Spec, name: str, ensemble: Ensemble) -> Faults:
    own = {tensor: use for _, tensor, _, use in _own(ensemble, name)}
    for place, tensor, _, use in _of_steps(spec, ensemble, name):
        other = own.get(tensor)
        if place[-2] != "takes" or other is None or len(use.dims) != len(other.dims):
            continue
        model = spec.ensembles[name].steps[int(place[3])].model
        if use.batched and not other.batched:
            yield ONE_BY_ONE.at(("ensembles", name, "max_batch"), f"{model} batches, and {name} does not")
        if other.batched and not use.batched and ensemble.max_batch > 1:
            what = f"{model} takes no batch, and {name} up to {ensemble.max_batch} items"
            yield ONE_ONLY.at(("ensembles", name, "max_batch"), what)
