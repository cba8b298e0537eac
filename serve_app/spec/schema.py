"""What a deployment is: the whole spec, and what follows from it for the parts.

Checks of one value live with its type; checks across values live in `checks/`.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Annotated, Any, Literal, TypeVar

from pydantic import Field, PrivateAttr

from serve_app.spec.model import Ensemble, Model
from serve_app.spec.part import UNKNOWN, Form, Identifier, NonNegative, Part, Positive, Unknown, known
from serve_app.spec.pipeline import Pipeline, Stage
from serve_app.spec.profile import Profile
from serve_app.spec.ray import Ray, Service
from serve_app.spec.replicas import Replicas
from serve_app.spec.units import SomePercent

_Found = TypeVar("_Found")
_LEAST_STALL_LIMIT = timedelta(seconds=10)
ProfileName = Literal["embedded", "gpu"]
# What the X-Tier header may carry.
TierName = Annotated[
    str, Form(r"[A-Za-z0-9][A-Za-z0-9_.-]*", "letters, digits, dots, hyphens and underscores, a letter or digit first")
]


class Tier(Part):
    """A class of requests, that the header X-Tier names."""

    priority: Positive = Field(description="1 is served first; 1, 2, … without gaps")
    default: bool = Field(default=False, description="of requests that name no tier; true for exactly one")
    floor: SomePercent | None = Field(
        default=None, description="of the work, that it gets even while more urgent tiers could use all; nothing"
    )
    max_ongoing_requests: Positive | None = Field(
        default=None,
        description="of its requests, that each ingress works on at a time, those for its floor aside; the ingress's",
    )
    max_queued_requests: NonNegative | None = Field(
        default=None, description="of its requests, that may wait in each ingress; the ingress's"
    )


WarningCode = Annotated[str, Form(r"[A-Z][0-9]{3}", "a finding's code, as T116")]


class Acceptance(Part):
    """A warning that is known and meant: `tandem validate` leaves it out."""

    code: WarningCode = Field(description="of the warning, as T116")
    at: str = Field(description="its place, as `tandem validate` shows it; also for what is below that place")
    because: str = Field(description="why it is right here, for those who read the spec")


class Spec(Part):
    """A whole deployment: what is served, with which models, and where it runs."""

    application: Identifier = Field(description="its name in Ray Serve")
    service: Service = Field(description="where clients find it, and how much they may ask for")
    ray: Ray = Field(description="the cluster, and what is the same for all parts in it")
    tiers: dict[TierName, Tier] = Field(min_length=1, description="classes of requests, by which Triton orders them")
    profiles: dict[ProfileName, Profile] = Field(min_length=1, description="the places it can run in")
    ingress: Replicas = Field(description="the processes that take requests, and run the stages with runs_in: ingress")
    models: dict[str, Model] = Field(min_length=1, description="what Triton runs; a name is its folder's, too")
    ensembles: dict[str, Ensemble] = Field(default_factory=dict, description="chains of models that Triton runs itself")
    stages: dict[Identifier, Stage] = Field(default_factory=dict, description="code between requests and models")
    pipelines: dict[Identifier, Pipeline] = Field(default_factory=dict, description="the routes of the HTTP API")
    accept: list[Acceptance] = Field(default_factory=list, description="warnings that are known and meant")

    # What follows from the spec and takes long to find, by `remembered`; a spec never changes.
    _found: dict[tuple[Any, ...], Any] = PrivateAttr(default_factory=dict)

    def remembered(self, key: tuple[Any, ...], find: Callable[[], _Found]) -> _Found:
        """What `find` answers or that it cannot be known, found once for each key."""
        if key not in self._found:
            try:
                self._found[key] = find()
            except Unknown:
                self._found[key] = UNKNOWN
        answer: _Found = self._found[key]
        return known(answer)

    def sla(self, pipeline: str) -> timedelta:
        return self.pipelines[pipeline].sla or self.service.sla

    @property
    def longest_sla(self) -> timedelta:
        """After this any request in work has been answered."""
        return max([self.service.sla, *(self.sla(name) for name in self.pipelines)])

    def stall_limit(self, profile: ProfileName) -> timedelta:
        """How long requests may wait for a model while none of its batches ends: as given, else twice the longest SLA.

        Whoever waits that long has been told; yet the first batch after a start may be late, and is no standstill.
        """
        given = self.profiles[profile].triton.watchdog.limit
        return given or max(2 * self.longest_sla, _LEAST_STALL_LIMIT)

    @property
    def primary_profile(self) -> ProfileName:
        """The one that serve_config.yaml and each config.pbtxt are for: embedded, where there is one."""
        return "embedded" if "embedded" in self.profiles else next(iter(self.profiles))

    def served(self, name: str) -> Model | Ensemble:
        """The model or ensemble that Triton serves under this name. Unknown where there is none."""
        found = self.models.get(name) or self.ensembles.get(name)
        if found is None:
            raise Unknown
        return found

    @property
    def url(self) -> str:
        """Where the ingress is reached from this machine."""
        return f"{'https' if self.service.tls else 'http'}://{self._near}:{self.service.port}"

    @property
    def grpc_address(self) -> str:
        """The same for its gRPC port, as host:port."""
        return f"{self._near}:{self.service.grpc.port}"

    @property
    def _near(self) -> str:
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.service.host, self.service.host)
        return f"[{host}]" if ":" in host else host

    @property
    def default_tier(self) -> str:
        """Unknown where not exactly one tier says that it is."""
        defaults = [name for name, tier in self.tiers.items() if tier.default]
        if len(defaults) != 1:
            raise Unknown
        return defaults[0]

    @property
    def priority_levels(self) -> int:
        return max(tier.priority for tier in self.tiers.values())

    @property
    def wake_up_level(self) -> int:
        """The priority level below all tiers', kept for wake-up requests (`serve_app/triton/wake_up.py`)."""
        return self.priority_levels + 1
