"""Tiers: what the X-Tier header may name, and the priority levels of every model they reach."""

from __future__ import annotations

from serve_app.spec.checks.registry import of_the_spec
from serve_app.spec.findings import Faults, error
from serve_app.spec.part import UNKNOWN
from serve_app.spec.schema import Spec

ONE_DEFAULT = error(
    "P001", "Not exactly one tier is the default", "a request without X-Tier would have no priority",
    "write default: true in exactly one tier",
)  # fmt: skip
NUMBERED = error(
    "P002", "Tiers' priorities with gaps or doubles", "two tiers would be served as one, or a level by nobody",
    "number them 1, 2, … without gaps, 1 served first",
)  # fmt: skip


@of_the_spec
def one_default(spec: Spec) -> Faults:
    known = [tier for tier in spec.tiers.values() if tier is not UNKNOWN and tier.default is not UNKNOWN]
    defaults = [tier for tier in known if tier.default]
    if len(defaults) > 1 or (not defaults and len(known) == len(spec.tiers)):
        yield ONE_DEFAULT.at(("tiers",), f"{len(defaults)} tiers have default: true")


@of_the_spec
def numbered(spec: Spec) -> Faults:
    priorities = sorted(tier.priority for tier in spec.tiers.values())
    if priorities != list(range(1, len(priorities) + 1)):
        yield NUMBERED.at(("tiers",), f"the priorities are {priorities}")
