"""How a model's requests are put together: dynamic batching, or sequences of requests that belong together.

Source of what each field does: Triton's `model_config.proto`, whose own names are in the descriptions.
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

    timeout: Duration | None = Field(
        default=None,
        description="the longest a request may wait; 0s for no limit (Triton: default_timeout_microseconds)",
    )
    on_timeout: Literal["reject", "delay"] | None = Field(
        default=None, description="delay: serve it after all that have not timed out (Triton: timeout_action)"
    )
    allow_override: bool | None = Field(
        default=None, description="whether a request may shorten its timeout (Triton: allow_timeout_override)"
    )
    size: NonNegative | None = Field(
        default=None, description="requests that may wait, more are refused; 0: no limit (Triton: max_queue_size)"
    )


class Priorities(Part):
    """Which requests run first: by the tiers, all alike, or by levels of the model's own."""

    use: Literal["tiers", "none", "levels"] = Field(
        default="levels", description="tiers: a level for each tier; levels: as many as `levels` says"
    )
    levels: Positive | None = Field(
        default=None, description="how many there are; 1 is served first (Triton: priority_levels)"
    )
    default: Positive | None = Field(
        default=None, description="the level of a request that names none (Triton: default_priority_level)"
    )


class Batching(Part):
    """Dynamic batching: single requests wait a moment for others, and run together."""

    queue_delay: Duration | None = Field(
        default=None,
        description="how long a request waits for company; by default a quarter of the latency budget "
        "(Triton: max_queue_delay_microseconds)",
    )
    preferred_sizes: list[Whole] = Field(
        default_factory=list,
        description="batch sizes that are run without waiting; max_batch alone (Triton: preferred_batch_size)",
    )
    preserve_ordering: bool = Field(default=False, description="answer in the order of arrival")
    priorities: Annotated[Priorities, Shorthand("use")] = Field(
        default=Priorities(use="tiers"), description="which requests run first"
    )
    queue: QueuePolicy = Field(
        default=QueuePolicy(), description="of requests without a policy of their own (Triton: default_queue_policy)"
    )
    queues: dict[str, QueuePolicy] = Field(
        default_factory=dict,
        description="per tier, or per level where the model has its own; what is left out there is as in `queue` "
        "(Triton: priority_queue_policy)",
    )


class DirectSequences(Part):
    """Each sequence keeps an instance's slot; its requests run there, in order."""

    queue_delay: Duration | None = Field(
        default=None,
        description="how long a batch waits until minimum_slot_utilization is reached; not at all "
        "(Triton: max_queue_delay_microseconds)",
    )
    minimum_slot_utilization: float = Field(
        default=0.0, description="share of the slots, 0 to 1, that must be ready before the delay has passed"
    )


class OldestSequences(Part):
    """Requests of several sequences are batched dynamically, the oldest sequence first."""

    max_candidates: Positive = Field(
        description="sequences that each instance works on at a time (Triton: max_candidate_sequences)"
    )
    preferred_sizes: list[Whole] = Field(
        default_factory=list, description="batch sizes that are run without waiting (Triton: preferred_batch_size)"
    )
    queue_delay: Duration | None = Field(
        default=None,
        description="how long a request waits for those of other sequences; not at all "
        "(Triton: max_queue_delay_microseconds)",
    )
    preserve_ordering: bool = Field(default=False, description="answer in the order of arrival")


TensorName = Annotated[str, Field(min_length=1)]


class Control(Part):
    """A tensor by which Triton tells the model what a request is in its sequence."""

    input: TensorName = Field(description="the tensor's name; the model reads it as an input that no request brings")
    signals: Literal["start", "ready", "end", "corrid"] = Field(
        description="start, end: it is the sequence's first, last request; ready: there is a request at all; corrid: "
        "the sequence's id (Triton: kind)"
    )
    type: Dtype = Field(description="int32, float32 or bool for a flag; the type of the id for corrid")
    off: float | None = Field(default=None, description="value of the flag when it is not so")
    on: float | None = Field(
        default=None,
        description="value of the flag when it is so (Triton: int32_false_true, fp32_false_true, bool_false_true)",
    )


class InitialState(Part):
    """What a state is when a sequence starts."""

    name: TensorName = Field(description="a name for it, of your choice")
    tensor: TensorField = Field(description="the state's type, and its dimensions, none of which varies")
    file: str | None = Field(
        default=None, description="in the model's initial_state folder; by default it is zeros (Triton: data_file)"
    )


class State(Part):
    """What Triton keeps for a sequence from one of its requests to the next."""

    input: TensorName = Field(description="the tensor by which the model gets it (Triton: input_name)")
    output: TensorName = Field(description="the tensor by which the model gives what to keep (Triton: output_name)")
    tensor: TensorField = Field(description="type and dimensions of both")
    initial: list[InitialState] = Field(
        default_factory=list, description="its value at the start of a sequence, at most one (Triton: initial_state)"
    )
    same_buffer: bool = Field(
        default=False,
        description="both tensors share memory, which spares a copy (Triton: use_same_buffer_for_input_output)",
    )
    growable: bool = Field(
        default=False,
        description="its memory grows with it; needs same_buffer, and instances on GPUs (Triton: use_growable_memory)",
    )


class Sequence(Part):
    """Requests with the same sequence id go to the same instance, in order. Exactly one of direct and oldest."""

    direct: DirectSequences | None = Field(default=None, description="a slot of one instance for each sequence")
    oldest: OldestSequences | None = Field(default=None, description="batches of the oldest sequences' requests")
    idle_timeout: Duration = Field(
        description="a sequence without a request for so long loses its slot and state "
        "(Triton: max_sequence_idle_microseconds)"
    )
    controls: list[Control] = Field(
        default_factory=list, description="what the model is told of each request (Triton: control_input)"
    )
    states: list[State] = Field(default_factory=list, description="what Triton keeps of a sequence (Triton: state)")
    iterative: bool = Field(
        default=False,
        description="the model may ask to be run again with the same request (Triton: iterative_sequence)",
    )
