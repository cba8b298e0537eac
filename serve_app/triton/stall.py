"""When a model stands still: requests wait, and for longer than any batch takes none ends.

Time in which nothing waits does not count, and ends nothing: where few requests come, each waits until its deadline in
vain, and the next comes later. A failed batch counts as one that ended, a request that is rejected or cancelled does
not: Triton drops those from the queue of a model that executes nothing. Wake-up requests are sent only beside a request
that waits or runs, and are dropped within half a second, so they neither make an idle model look busy nor hide one that
stands still.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from serve_app.spec import ProfileName, Spec
from serve_app.spec.resolved import Resolved


@dataclass(frozen=True)
class Work:
    """What a server says of a model at one moment: requests that wait, and batches that it has executed so far."""

    pending: int
    executions: int


@dataclass(frozen=True)
class Stall:
    """A model that stands still. `reload` says whether to try that; False where it was tried and did not help."""

    model: str
    pending: int
    seconds: float
    reload: bool

    def __str__(self) -> str:
        return f"{self.pending} requests waited for {self.model} and for {self.seconds:.1f} s no batch of it ended"


class StallWatch:
    """Judges one server's models by what it says of them now and then.

    `limits` are seconds, by model; models without one are not judged. A model that stands still again within
    `RELAPSE` of its limits after it was reloaded is not to be reloaded again; see `reloaded`.
    """

    RELAPSE = 3.0

    def __init__(self, limits: Mapping[str, float], interval: float):
        """`interval` is how often `observe` is meant to be called, in seconds.

        Of a longer time between two calls only twice that counts: nobody was looking.
        """
        self._limits = limits
        self._longest_step = 2 * interval
        self._last: float | None = None
        self._before: dict[str, Work] = {}
        self._still: dict[str, float] = {}
        self._reloaded: dict[str, float] = {}

    def observe(self, now: float, work: Mapping[str, Work]) -> list[Stall]:
        """The models that stand still at `now`, in seconds. Each is judged anew after that."""
        step = 0.0 if self._last is None else min(now - self._last, self._longest_step)
        self._last = now
        before, self._before = self._before, dict(work)
        self._still = {
            model: self._still.get(model, 0.0) + (step if min(before[model].pending, seen.pending) else 0.0)
            for model, seen in work.items()
            if model in before and before[model].executions == seen.executions
        }
        stalls = []
        for model, seconds in list(self._still.items()):
            if (limit := self._limits.get(model)) is not None and seconds > limit:
                relapse = model in self._reloaded and now - self._reloaded[model] < self.RELAPSE * limit
                stalls.append(Stall(model, work[model].pending, seconds, not relapse))
                self._reloaded[model] = now
                del self._still[model]
        return stalls

    def reloaded(self, model: str, now: float) -> None:
        """Reloading it, which may have taken longer than it is watched for a relapse, has ended at `now`."""
        self._reloaded[model] = now


def stall_limits(spec: Spec, profile: ProfileName) -> dict[str, float]:
    """How long, in seconds, each model's requests may wait while none of its batches ends; none where nobody watches.

    A sequence may hold its slot for its idle timeout without a request. What waits for a resource that other models
    hold cannot be told from what stands still, and is not watched.
    """
    triton = spec.profiles[profile].triton
    if not triton.watchdog.enabled:
        return {}
    limits = {}
    for name in spec.models:
        found = Resolved(spec, name, profile)
        if triton.rate_limit and any(group.rate_limiter for group in found.instances):
            continue
        limits[name] = spec.stall_limit(profile).total_seconds()
        if found.sequence is not None:
            limits[name] += found.sequence.idle_timeout.total_seconds()
    return limits
