"""A model as one profile has it: the entry, its overrides, and Tandem's choices where neither says anything."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from math import ceil
from typing import Literal

from serve_app.spec.batching import Batching, QueuePolicy, Sequence
from serve_app.spec.findings import Place
from serve_app.spec.model import ONNX, PYTHON, Instances, Model, Override
from serve_app.spec.part import UNKNOWN, Unknown
from serve_app.spec.paths import queue_timeout
from serve_app.spec.schema import ProfileName, Spec

QUEUE_DELAY_SHARE = 0.25  # of the latency budget
QUEUE_SIZE = 128
LONGEST_LEVEL = 10  # digits of a level
_OF_BATCHING = ("queue_delay", "preferred_sizes")


@dataclass(frozen=True)
class Resolved:
    """What Triton is told about a model in one profile; `place` says where the spec has a value."""

    spec: Spec
    name: str
    profile: ProfileName

    @property
    def model(self) -> Model:
        return self.spec.models[self.name]

    @property
    def override(self) -> Override:
        return self.model.profiles.get(self.profile, Override())

    def place(self, field: str) -> Place:
        """Where the value of `field` is given: in the profile's override, or in the model."""
        if getattr(self.model.profiles.get(self.profile), field, None) is not None:
            return ("models", self.name, "profiles", self.profile, field)
        if field in _OF_BATCHING:
            sequence = self.model.sequence
            if sequence is not None:
                return ("models", self.name, "sequence", "direct" if sequence.oldest is None else "oldest", field)
            return ("models", self.name, "batching", field)
        return ("models", self.name, field)

    @property
    def backend(self) -> str:
        """The backend in Triton's terms. An ONNX model's is what the profile runs those with."""
        given = self.override.backend or self.model.backend
        return self.spec.profiles[self.profile].onnx if given == ONNX else given

    @property
    def is_onnx(self) -> bool:
        """Whether Tandem prepares the model as an ONNX file."""
        return (self.override.backend or self.model.backend) == ONNX

    @property
    def has_tandems_code(self) -> bool:
        """Whether it runs in the python backend by Tandem's own ONNX module."""
        return self.is_onnx and self.backend == PYTHON

    @property
    def max_batch(self) -> int:
        given = self.override.max_batch
        return self.model.max_batch if given is None else given

    @property
    def batching(self) -> Batching | None:
        """How it batches dynamically; None where it does not."""
        if self.model.sequence is not None or self.model.unscheduled:
            return None
        return Batching() if self.model.batching is None else self.model.batching

    @property
    def sequence(self) -> Sequence | None:
        """How it batches sequences, with the delay and sizes of this profile; None where it does not."""
        given = self.model.sequence
        if given is None:
            return None
        delay, sizes = self.override.queue_delay, self.override.preferred_sizes
        direct, oldest = given.direct, given.oldest
        if delay is not None:
            direct = direct and direct.model_copy(update={"queue_delay": delay})
            oldest = oldest and oldest.model_copy(update={"queue_delay": delay})
        if sizes is not None:
            oldest = oldest and oldest.model_copy(update={"preferred_sizes": sizes})
        return given.model_copy(update={"direct": direct, "oldest": oldest})

    @property
    def by_tiers(self) -> bool:
        """Whether its requests wait by the tiers' priorities, with Tandem's queue policies and wake-ups."""
        return self.batching is not None and self.batching.priorities.use == "tiers"

    @property
    def levels(self) -> int:
        """The number of priority levels that clients can use; 0 where there are no priorities."""
        if self.batching is None:
            return 0
        if self.by_tiers:
            return len(self.spec.tiers)
        return (self.batching.priorities.levels or 0) if self.batching.priorities.use == "levels" else 0

    def level_of(self, tier: str) -> int:
        """The priority level in which a tier's requests wait; 0 where there are no priorities."""
        if self.batching is None or not self.levels:
            return 0
        priority = self.spec.tiers[tier].priority
        return priority if priority <= self.levels else (self.batching.priorities.default or 0)

    @property
    def queue_delay(self) -> timedelta:
        """How long a request waits for others to share its batch: as given, else a quarter of the latency budget.

        Unknown where neither is given.
        """
        given = self._given_delay
        if given is not None:
            return given
        if self.max_batch <= 1:
            return timedelta()
        if self.model.latency_budget is None:
            raise Unknown
        return self.model.latency_budget * QUEUE_DELAY_SHARE

    @property
    def _given_delay(self) -> timedelta | None:
        given = self.override.queue_delay
        return self.model.batching.queue_delay if given is None and self.model.batching is not None else given

    @property
    def has_queue_delay(self) -> bool:
        """Whether the spec says how long a request waits for others, itself or by the latency budget."""
        return self._given_delay is not None or self.model.latency_budget is not None

    @property
    def preferred_sizes(self) -> list[int]:
        given = self.override.preferred_sizes
        return (self.batching or Batching()).preferred_sizes if given is None else given

    @property
    def default_queue(self) -> QueuePolicy:
        """The policy of requests whose level has none of its own, every field given."""
        batching = self.batching or Batching()
        if not self.by_tiers:
            chosen = QueuePolicy(timeout=timedelta(), on_timeout="reject", allow_override=False, size=0)
        else:
            # A request's own deadline may only shorten the timeout; Triton ignores a longer one.
            given = batching.queue.timeout is not None
            timeout = None if given else self._usual_timeout
            chosen = QueuePolicy(timeout=timeout, on_timeout="reject", allow_override=True, size=QUEUE_SIZE)
        return _completed(batching.queue, chosen)

    @property
    def _usual_timeout(self) -> timedelta:
        """What the SLA leaves for waiting; UNKNOWN where that follows from something wrong."""
        try:
            return queue_timeout(self.spec, self.name)
        except Unknown:
            unknown: timedelta = UNKNOWN
            return unknown

    def queue(self, name: str) -> QueuePolicy:
        """The policy of the tier or level that a key of `queues` names, every field given."""
        return _completed((self.batching or Batching()).queues[name], self.default_queue)

    @property
    def level_queues(self) -> dict[int, QueuePolicy]:
        """The policies of single levels, every field given. Unknown where a name is no tier or number."""
        return {self.level(name): self.queue(name) for name in (self.batching or Batching()).queues}

    def level(self, name: str) -> int:
        """The priority level that a key of `queues` names."""
        if self.by_tiers:
            if name not in self.spec.tiers:
                raise Unknown
            return self.spec.tiers[name].priority
        if not name.isdecimal() or len(name) > LONGEST_LEVEL:
            raise Unknown
        return int(name)

    @property
    def instances(self) -> list[Instances]:
        """The instance groups, each with its kind."""
        given = self.override.instances or self.model.instances or [Instances()]
        usual = usual_kind(self.backend, self.spec.profiles[self.profile].device)
        return [group if group.kind else group.model_copy(update={"kind": usual}) for group in given]

    @property
    def instance_count(self) -> int:
        """How many batches run at a time."""
        return sum(max(1, group.count) * self._devices(group) for group in self.instances if not group.passive)

    def _devices(self, group: Instances) -> int:
        """On how many devices a group has its count: on all the server's GPUs where it is for GPUs and names none."""
        profile = self.spec.profiles[self.profile]
        if group.gpus or profile.device == "cpu" or group.kind not in ("gpu", "auto"):
            return max(1, len(group.gpus))
        return max(1, ceil(profile.triton.gpus))

    @property
    def threads(self) -> int | None:
        return self.override.threads or self.model.threads or (1 if self.has_tandems_code else None)


def usual_kind(backend: str, device: Literal["cpu", "gpu"]) -> Literal["cpu", "gpu"]:
    """Where a backend's instances run if nothing is said."""
    # Code in the python backend works on the CPU; it is the native models that a GPU speeds up.
    return "gpu" if backend != PYTHON and device == "gpu" else "cpu"


def _completed(policy: QueuePolicy, default: QueuePolicy) -> QueuePolicy:
    return default.model_copy(update={key: value for key, value in policy if value is not None})
