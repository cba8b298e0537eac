"""What a spec uses of Triton, against the version that each profile names."""

from __future__ import annotations

import re
from collections.abc import Iterator

from serve_app.spec.checks.registry import of_each_ensemble, of_each_model, of_each_profile
from serve_app.spec.findings import Faults, Place, error, warning
from serve_app.spec.model import Ensemble, Model
from serve_app.spec.part import UNKNOWN
from serve_app.spec.profile import Profile
from serve_app.spec.schema import Spec
from serve_app.spec.versions import NEWEST_TRITON, TRITON_FIELDS, older

NEWER = error(
    "T405", "A field that the profile's Triton does not know", "Triton cannot read the model's configuration at all",
    "remove it, or name a newer version in the profile, and use that server",
)  # fmt: skip
NOT_READ = warning(
    "T425", "A Triton newer than Tandem knows", "what it has changed is not checked",
    "check the version, or try the rendered models with that server first",
)  # fmt: skip


@of_each_profile
def not_read(spec: Spec, name: str, profile: Profile) -> Faults:
    if older(NEWEST_TRITON, profile.triton.version):
        yield NOT_READ.at(
            ("profiles", name, "triton", "version"),
            f"{name} is for Triton {profile.triton.version}, and Tandem knows the fields up to {NEWEST_TRITON}",
        )


@of_each_model
def of_a_model(spec: Spec, name: str, model: Model) -> Faults:
    yield from _newer(spec, ("models", name), model)


@of_each_ensemble
def of_an_ensemble(spec: Spec, name: str, ensemble: Ensemble) -> Faults:
    yield from _newer(spec, ("ensembles", name), ensemble)


def _newer(spec: Spec, place: Place, served: Model | Ensemble) -> Faults:
    for where, field in _gated(served):
        since = TRITON_FIELDS.get(field)
        for profile, entry in spec.profiles.items():
            if since is None or entry is UNKNOWN or entry.triton is UNKNOWN or entry.triton.version is UNKNOWN:
                continue
            if older(entry.triton.version, since):
                yield NEWER.at(
                    (*place, *where),
                    f"{where[-1]} came with Triton {since}, and {profile} is for {entry.triton.version}",
                )


def _gated(served: Model | Ensemble) -> Iterator[tuple[Place, str]]:
    """The spec's keys that not every server knows, with Triton's names for them."""
    if served.metrics is not UNKNOWN and served.metrics:
        yield ("metrics",), "ModelConfig.model_metrics"
    if isinstance(served, Ensemble) and served.max_inflight_requests:
        yield ("max_inflight_requests",), "ModelEnsembling.max_inflight_requests"
    for side, entries, message in (
        ("inputs", served.inputs, "ModelInput"),
        ("outputs", served.outputs, "ModelOutput"),
    ):
        for key, entry in entries.items():
            if entry is not UNKNOWN and entry.non_linear:
                yield (side, key, "non_linear"), f"{message}.is_non_linear_format_io"
    for key in served.triton:
        snake = re.sub(r"(?<=[a-z])([A-Z])", r"_\1", key).lower()  # JSON's spelling is taken too
        yield ("triton", key), f"ModelConfig.{snake}"
