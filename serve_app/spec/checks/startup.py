"""Whether a server can be ready within its startup timeout: each instance in the python backend is a process."""

from __future__ import annotations

from datetime import timedelta
from math import ceil

from serve_app.spec.checks.amounts import MOST_INSTANCES
from serve_app.spec.checks.registry import of_each_profile
from serve_app.spec.findings import Faults, error, warning
from serve_app.spec.model import PYTHON
from serve_app.spec.part import UNKNOWN
from serve_app.spec.profile import Profile
from serve_app.spec.resolved import Resolved
from serve_app.spec.schema import ProfileName, Spec
from serve_app.spec.units import show_duration

# Triton 2.51 on two cores: a server with one small model is ready after 250 ms, and each further instance in the python
# backend takes it from 55 ms, with nothing else to do, to 140 ms. No machine is faster than the first two.
_FASTEST_SERVER = timedelta(milliseconds=100)
_FASTEST_START = timedelta(milliseconds=20)
_USUAL_START = timedelta(milliseconds=100)
# Triton's --model-load-thread-count, by default; the instances of one model are started one after the other.
_MODELS_AT_ONCE = 4

NEVER_READY = error(
    "T156", "A startup timeout in which no server starts", "the server is ended before its models are ready, each time",
    "lengthen startup_timeout, or run fewer instances",
)  # fmt: skip
LONG_START = warning(
    "T157", "Instances that take longer to start than the server may",
    "the server is ended before its models are ready, unless the machine is faster than most",
    "lengthen startup_timeout, or run fewer instances",
)  # fmt: skip


@of_each_profile
def startup(spec: Spec, name: ProfileName, profile: Profile) -> Faults:
    limit, place = profile.triton.startup_timeout, ("profiles", name, "triton", "startup_timeout")
    models = [Resolved(spec, model, name) for model, entry in spec.models.items() if entry is not UNKNOWN]
    counts = [found.instance_count for found in models if found.backend == PYTHON]
    counts = [count for count in counts if count <= MOST_INSTANCES]  # the others have a rule of their own
    largest, total = max(counts, default=0), sum(counts)
    if limit < (least := _FASTEST_SERVER + largest * _FASTEST_START):
        which = f"a model of {largest} instances in the python backend" if largest > 1 else "a server"
        yield NEVER_READY.at(
            place, f"it is {show_duration(limit)}, and {which} cannot be there before {show_duration(least)}"
        )
        return
    usual = max(largest, ceil(total / _MODELS_AT_ONCE)) * _USUAL_START
    if limit < usual:
        yield LONG_START.at(
            place,
            f"it is {show_duration(limit)}, and {total} instances in the python backend take about "
            f"{show_duration(timedelta(seconds=ceil(usual.total_seconds())))}, {show_duration(_USUAL_START)} each and "
            f"{_MODELS_AT_ONCE} models at a time",
        )
