"""The processes of the ingress, and which requests they take."""

from __future__ import annotations

from pydantic import Field

from serve_app.spec.part import Part
from serve_app.spec.replicas import Replicas
from serve_app.spec.units import SomePercent


DEFAULT_WORK_SHARE = 33.0


class Admission(Part):
    """Which requests an ingress takes, beside its bounds and those of the tiers. All of it is of each replica alone."""

    adaptive: bool = Field(
        default=True,
        description="work on fewer at a time than max_ongoing_requests while more make each too slow; false: never fewer",
    )
    work_share: SomePercent | None = Field(
        default=None,
        description="of an SLA, that the work on a request may take until it is too slow; the rest is for waiting, in "
        "the tiers' order; 33%",
    )
    refuse_late: bool = Field(
        default=True,
        description="refuse at once what cannot be answered before its deadline; false: let it wait until then",
    )


class IngressReplicas(Replicas):
    """The processes of the ingress."""

    admission: Admission = Field(default=Admission(), description="which requests each takes")
