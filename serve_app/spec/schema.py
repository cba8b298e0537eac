"""What a deployment is: the whole spec, and what follows from it for the parts.

Checks of one value live with its type; checks across values live in `checks/`.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Literal

from pydantic import Field

from serve_app.spec.model import Ensemble, Model
from serve_app.spec.part import Form, Identifier, Part, Positive, Unknown
from serve_app.spec.pipeline import Pipeline, Stage
from serve_app.spec.profile import Profile
from serve_app.spec.ray import Ray, Service
from serve_app.spec.replicas import Replicas

ProfileName = Literal["embedded", "gpu"]
# What the X-Tier header may carry.
TierName = Annotated[
    str, Form(r"[A-Za-z0-9][A-Za-z0-9_.-]*", "letters, digits, dots, hyphens and underscores, a letter or digit first")
]


class Tier(Part):
    priority: Positive = Field(description="1 is served first")
    default: bool = False


WarningCode = Annotated[str, Form(r"[A-Z][0-9]{3}", "a finding's code, as T116")]


class Acceptance(Part):
    """A warning that is known and meant: `tandem validate` leaves it out."""

    code: WarningCode = Field(description="of the warning, as T116")
    at: str = Field(description="its place, as `tandem validate` shows it; also for what is below that place")
    because: str = Field(description="why it is right here, for those who read the spec")


class Spec(Part):
    """A whole deployment."""

    application: Identifier
    service: Service
    ray: Ray
    tiers: dict[TierName, Tier] = Field(min_length=1)
    profiles: dict[ProfileName, Profile] = Field(min_length=1)
    ingress: Replicas
    models: dict[str, Model] = Field(min_length=1)
    ensembles: dict[str, Ensemble] = Field(default_factory=dict)
    stages: dict[Identifier, Stage] = Field(default_factory=dict)
    pipelines: dict[Identifier, Pipeline] = Field(default_factory=dict)
    accept: list[Acceptance] = Field(default_factory=list, description="warnings that are known and meant")

    def sla(self, pipeline: str) -> timedelta:
        return self.pipelines[pipeline].sla or self.service.sla

    @property
    def longest_sla(self) -> timedelta:
        """After this any request in work has been answered."""
        return max([self.service.sla, *(self.sla(name) for name in self.pipelines)])

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
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.service.host, self.service.host)
        scheme = "https" if self.service.tls else "http"
        return f"{scheme}://{f'[{host}]' if ':' in host else host}:{self.service.port}"

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
