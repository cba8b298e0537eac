"""When a server's models are taken for ones that stand still or grow without end."""

from __future__ import annotations

from serve_app.spec.checks.registry import of_each_profile
from serve_app.spec.findings import Faults, warning
from serve_app.spec.profile import Profile
from serve_app.spec.schema import ProfileName, Spec
from serve_app.spec.units import show_duration, show_size

IMPATIENT = warning(
    "T409", "A watchdog's limit within an SLA",
    "a model is taken for one that stands still while it may yet answer in time, and a request that hangs it is still "
    "waited for, and hangs the next server as well",
    "make it longer than the longest SLA, or leave it out",
)  # fmt: skip

SMALL_LIMIT = warning(
    "T419", "A memory limit below the memory that Ray reserves", "a server that holds what it is meant to is ended",
    "make it larger than memory, or leave it out",
)  # fmt: skip


@of_each_profile
def small_limit(spec: Spec, name: ProfileName, profile: Profile) -> Faults:
    limit, memory = profile.triton.memory_limit, profile.triton.memory
    if limit is not None and limit < memory:
        yield SMALL_LIMIT.at(
            ("profiles", name, "triton", "memory_limit"), f"it is {show_size(limit)}, and memory is {show_size(memory)}"
        )


@of_each_profile
def impatient(spec: Spec, name: ProfileName, profile: Profile) -> Faults:
    watchdog = profile.triton.watchdog
    if watchdog.enabled and watchdog.limit is not None and watchdog.limit <= spec.longest_sla:
        yield IMPATIENT.at(
            ("profiles", name, "triton", "watchdog", "limit"),
            f"it is {show_duration(watchdog.limit)}, and the longest SLA is {show_duration(spec.longest_sla)}",
        )
