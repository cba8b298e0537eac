"""What each model that clients may call takes and gives, worked out once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from serve_app.protocol.datatypes import SIZES
from serve_app.protocol.refusals import Code, Refusal, invalid, shown, unknown_model
from serve_app.spec import ProfileName, Spec
from serve_app.spec.model import Ensemble
from serve_app.spec.paths import reached
from serve_app.spec.resolved import Resolved
from serve_app.spec.tensors import Tensor


@dataclass(frozen=True)
class TensorSignature:
    """An input or output. `dims` has the batch dimension, as -1, where `batched`; `size` is an element's bytes."""

    name: str
    wire: str
    dims: tuple[int, ...]
    batched: bool
    optional: bool = False

    @property
    def size(self) -> int:
        return SIZES[self.wire]


@dataclass(frozen=True)
class Signature:
    """A model or ensemble that clients may call.

    `versions` is None where it depends on the folders which there are. `levels` is the least urgent priority that a
    request may have; None where Triton makes nothing of priorities. `by_tiers`: a request without a priority gets its
    tier's.
    """

    name: str
    versions: frozenset[int] | None
    inputs: Mapping[str, TensorSignature]
    outputs: Mapping[str, TensorSignature]
    required: frozenset[str]
    max_batch: int
    decoupled: bool
    sequence: bool
    levels: int | None
    by_tiers: bool

    def version(self, text: str) -> str:
        """The version as it is written on, empty for the newest. Refusal where it is none, or is not served."""
        if not text:
            return ""
        number = version_number(text)
        if self.versions is not None and number not in self.versions:
            raise unknown_model(self.name, str(number))
        return str(number)


def version_number(text: str) -> int:
    """Refusal where it is none."""
    if not (text.isascii() and text.isdigit() and len(text) <= 18 and int(text) > 0):
        raise invalid(f"invalid model version specified '{shown(text)}' , version should be an integral value > 0")
    return int(text)


class Signatures(Mapping[str, Signature]):
    """The exposed models of a spec, by name, and what the server calls itself."""

    def __init__(self, spec: Spec, profile: ProfileName):
        served = {**spec.models, **spec.ensembles}
        self._known = {name: _signature(spec, name, profile) for name, entry in served.items() if entry.exposed}
        self.server_name = spec.application

    def __getitem__(self, name: str) -> Signature:
        return self._known[name]

    def __iter__(self):  # type: ignore[no-untyped-def]
        return iter(self._known)

    def __len__(self) -> int:
        return len(self._known)

    def find(self, name: str) -> Signature:
        """Refusal where there is no such model, or clients may not call it: they cannot tell which."""
        found = self._known.get(name)
        if found is None:
            raise unknown_model(name)
        return found

    def for_one_answer(self, name: str, what: str) -> Signature:
        """The model, for a kind of request that has exactly one answer."""
        found = self.find(name)
        if found.decoupled:
            raise Refusal(
                Code.UNIMPLEMENTED,
                f"{what} doesn't support models with decoupled transaction policy; use a gRPC stream",
            )
        return found


def _signature(spec: Spec, name: str, profile: ProfileName) -> Signature:
    entry = spec.served(name)
    models = [Resolved(spec, model, profile) for model in reached(spec, name)]
    max_batch = entry.max_batch if isinstance(entry, Ensemble) else models[0].max_batch
    by_tiers = any(model.by_tiers for model in models)
    levels = [level for level in map(_levels, models) if level is not None]
    inputs = {
        key: _tensor(key, given.tensor, batched=max_batch > 0 and not given.shape_tensor, optional=given.optional)
        for key, given in entry.inputs.items()
    }
    return Signature(
        name=name,
        versions=None if entry.versions.only is None else frozenset(entry.versions.only),
        inputs=inputs,
        outputs={
            key: _tensor(key, given.tensor, batched=max_batch > 0 and not given.shape_tensor)
            for key, given in entry.outputs.items()
        },
        required=frozenset(key for key, tensor in inputs.items() if not tensor.optional),
        max_batch=max_batch,
        decoupled=entry.decoupled or any(model.model.decoupled for model in models),
        sequence=any(model.model.sequence is not None for model in models),
        levels=min(levels, default=None),
        by_tiers=by_tiers,
    )


def _levels(model: Resolved) -> int | None:
    """The least urgent level of the model that is for clients: the wake-up requests' is below the tiers'."""
    if model.by_tiers:
        return model.spec.priority_levels
    if model.batching is not None and model.batching.priorities.use == "levels":
        return model.batching.priorities.levels
    return None


def _tensor(name: str, tensor: Tensor, *, batched: bool, optional: bool = False) -> TensorSignature:
    return TensorSignature(name, tensor.wire, (-1, *tensor.dims) if batched else tensor.dims, batched, optional)
