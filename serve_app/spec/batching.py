"""How a model's requests are put together: dynamic batching, or sequences of requests that belong together.

Source of what each field does: Triton's `model_config.proto`, named in each description.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from serve_app.spec.part import NonNegative, Part, Positive, Shorthand, Whole
from serve_app.spec.tensors import Dtype, TensorField
from serve_app.spec.units import Duration


class QueuePolicy(Part):
    """What happens to requests that wait. What is left out is Tandem's choice under `priorities: tiers`: a timeout
    that the SLA leaves, requests rejected after it, a request's own deadline honoured, 128 places; Triton's otherwise:
    no timeout and no limit.
    """

    timeout: Duration | None = Field(default=None, description="the longest a request may wait; 0s for no limit")
    on_timeout: Literal["reject", "delay"] | None = Field(
        default=None, description="delay: serve it after all that have not timed out"
    )
    allow_override: bool | None = Field(default=None, description="whether a request may shorten its timeout")
    size: NonNegative | None = Field(default=None, description="requests that may wait, more are refused; 0: no limit")


class Priorities(Part):
    """The tiers', none, or levels of the model's own."""

    use: Literal["tiers", "none", "levels"] = "levels"
    levels: Positive | None = Field(default=None, description="how many there are; 1 is served first")
    default: Positive | None = Field(default=None, description="the level of a request that names none")


class Batching(Part):
    """Dynamic batching: single requests wait a moment for others, and run together."""

    queue_delay: Duration | None = Field(
        default=None, description="how long a request waits for company; by default 30 % of the latency budget"
    )
    preferred_sizes: list[Whole] = Field(default_factory=list, description="batch sizes that are run without waiting")
    preserve_ordering: bool = Field(default=False, description="answer in the order of arrival")
    priorities: Annotated[Priorities, Shorthand("use")] = Priorities(use="tiers")
    queue: QueuePolicy = QueuePolicy()
    queues: dict[str, QueuePolicy] = Field(
        default_factory=dict,
        description="per tier, or per level where the model has its own; what is left out there is as in `queue`",
    )


class DirectSequences(Part):
    """Each sequence keeps an instance's slot; its requests run there, in order."""

    queue_delay: Duration | None = None
    minimum_slot_utilization: float = Field(
        default=0.0, description="share of the slots that must be ready before the delay has passed"
    )


class OldestSequences(Part):
    """Requests of several sequences are batched dynamically, the oldest sequence first."""

    max_candidates: Positive = Field(description="sequences that each instance works on at a time")
    preferred_sizes: list[Whole] = Field(default_factory=list)
    queue_delay: Duration | None = None
    preserve_ordering: bool = False


TensorName = Annotated[str, Field(min_length=1)]


class Control(Part):
    """A tensor by which Triton tells the model what a request is in its sequence."""

    input: TensorName
    signals: Literal["start", "ready", "end", "corrid"]
    type: Dtype = Field(description="int32, float32 or bool for a flag; the type of the id for corrid")
    off: float | None = Field(default=None, description="value of the flag when it is not so")
    on: float | None = None


class InitialState(Part):
    name: TensorName
    tensor: TensorField
    file: str | None = Field(default=None, description="in the model's initial_state folder; zeros where none is given")


class State(Part):
    """What Triton keeps for a sequence from one of its requests to the next."""

    input: TensorName
    output: TensorName
    tensor: TensorField
    initial: list[InitialState] = Field(default_factory=list)
    same_buffer: bool = False
    growable: bool = False


class Sequence(Part):
    """Requests with the same sequence id go to the same instance, in order. Exactly one of direct and oldest."""

    direct: DirectSequences | None = None
    oldest: OldestSequences | None = None
    idle_timeout: Duration = Field(description="a sequence without a request for so long loses its slot and state")
    controls: list[Control] = Field(default_factory=list)
    states: list[State] = Field(default_factory=list)
    iterative: bool = Field(default=False, description="the model may ask to be run again with the same request")
