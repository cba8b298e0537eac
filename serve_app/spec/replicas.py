"""How many processes run a part, what each may use, on which nodes, and how Ray Serve treats them.

Of what Ray Serve 2.60 takes for a deployment, this is not here: deployment actors, since a stage is a plain class that
knows nothing of Ray; a folder for logs, since the dashboard finds them in Ray's own only; an unlimited queue, since
whoever waits in it is not answered in time; the smoothing factors, which Ray replaces by the factors below.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, WithJsonSchema

from serve_app.spec.part import CodePath, Form, NonNegative, Part, Positive, Shorthand, Unknown, invalid
from serve_app.spec.units import Duration, Size, SomePercent, SomeSize, SomeTime, WholePercent

_FINEST = 0.0001


def _countable(amount: float) -> float:
    if 0 < amount < _FINEST:
        raise invalid("amount", f"Ray counts in steps of {_FINEST}; write that or more, or 0")
    return amount


_WORD = r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?"
_DOMAIN = r"[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?"
LabelKey = Annotated[str, Form(rf"({_DOMAIN}/)?{_WORD}", "a label's name, as region or example.com/pool")]
LabelValue = Annotated[
    str,
    Form(
        rf"!?(in\({_WORD}(, ?{_WORD})*\)|{_WORD})", 'a label\'s value, as eu-west, or "!spot", "in(a, b)", "!in(a, b)"'
    ),
]
Labels = dict[LabelKey, LabelValue]
_COUNTABLE = {"type": "number", "minimum": _FINEST}
Amount = Annotated[
    float, Field(ge=0), AfterValidator(_countable), WithJsonSchema({"anyOf": [{"const": 0}, _COUNTABLE]})
]
ResourceAmount = Annotated[float, Field(gt=0), AfterValidator(_countable), WithJsonSchema(_COUNTABLE)]
# The most of one deployment: the sum over all of them must stay one that Ray can count in 32 bits.
ReplicaCount = Annotated[int, Field(ge=1, le=10_000)]
EnvironmentName = Annotated[str, Form(r"[A-Za-z_][A-Za-z0-9_]*", "a variable's name, as OMP_NUM_THREADS")]
Environment = dict[EnvironmentName, str]
LogAttribute = Literal[
    "args", "asctime", "created", "exc_info", "exc_text", "filename", "funcName", "levelname", "levelno", "lineno",
    "message", "module", "msecs", "msg", "name", "pathname", "process", "processName", "relativeCreated", "stack_info",
    "taskName", "thread", "threadName",
]  # fmt: skip


class Logging(Part):
    """What Ray Serve writes to its logs. A deployment's own stands in for the whole of the application's, and that for
    the whole of the cluster's.
    """

    level: Literal["debug", "info", "warning", "error", "critical"] | None = Field(
        default=None, description="the least that is written; info (Ray: log_level)"
    )
    encoding: Literal["text", "json"] | None = Field(default=None, description="what a line looks like; text")
    access_log: bool | None = Field(default=None, description="a line for each request; true (Ray: enable_access_log)")
    attributes: list[LogAttribute] = Field(
        default_factory=list,
        description="more attributes of Python's log records (Ray: additional_log_standard_attrs)",
    )


class Policy(Part):
    """Code that says how many replicas there shall be, instead of Ray Serve's own rule."""

    code: CodePath = Field(
        description="module:name of a function, or of a class whose instances are called (Ray: policy_function)"
    )
    arguments: dict[str, Any] = Field(
        default_factory=dict, description="for the class's constructor (Ray: policy_kwargs)"
    )


PolicyField = Annotated[Policy, Shorthand("code")]


class Autoscaling(Part):
    """How the number of replicas follows the load."""

    min_replicas: NonNegative = Field(
        description="the fewest, without load; with 0 the first request waits for a start"
    )
    max_replicas: ReplicaCount = Field(description="the most")
    initial_replicas: NonNegative | None = Field(
        default=None, description="at the start; min_replicas, or what ran before"
    )
    target_ongoing_requests: float = Field(gt=0, description="what each replica shall work on, on average")
    metrics_interval: SomeTime | None = Field(default=None, description="how often replicas tell their load; 10s")
    look_back: SomeTime | None = Field(
        default=None, description="the time whose load counts; 30s (Ray: look_back_period_s)"
    )
    aggregation: Literal["mean", "max", "min"] | None = Field(
        default=None, description="of the load in it; mean (Ray: aggregation_function)"
    )
    upscale_delay: Duration = Field(
        default=timedelta(seconds=5), description="how long the load must ask for more replicas"
    )
    downscale_delay: Duration = Field(
        default=timedelta(minutes=5), description="how long the load must ask for fewer replicas"
    )
    downscale_to_zero_delay: Duration | None = Field(
        default=None, description="before the last replica ends, with min_replicas: 0; downscale_delay"
    )
    upscaling_factor: float | None = Field(
        default=None,
        gt=0,
        description="more than 1 adds replicas in larger, less in smaller steps than the load asks for; 1",
    )
    downscaling_factor: float | None = Field(default=None, gt=0, description="the same for removing them; 1")
    policy: PolicyField | None = Field(
        default=None,
        description="another one restarts the whole application. Ray Serve does not see the ingress's requests, so its "
        "own is serve_app.http.scaling:by_requests",
    )


class Node(Part):
    """What a node must have to run a replica, beside room for it."""

    labels: Labels = Field(
        default_factory=dict, description="label → value, !value, in(a, b) or !in(a, b) (Ray: label_selector)"
    )
    fallback: list[Labels] = Field(
        default_factory=list,
        description="labels to do with where no node has those, the best first (Ray: fallback_strategy)",
    )
    accelerator_type: str | None = Field(default=None, description="as Ray calls it: T4, A10G, L4, A100, H100, …")
    resources: dict[str, ResourceAmount] = Field(
        default_factory=dict, description="of the names and amounts that nodes were started with; taken from them"
    )


class Bundle(Part):
    """Room that is reserved together with a replica, for what its code starts with Ray."""

    cpus: Amount = Field(default=0, description="reserved beside the replica's own")
    gpus: Amount = Field(default=0, description="reserved beside the replica's own")
    memory: Size = Field(default=0, description="reserved beside the replica's own")
    resources: dict[str, ResourceAmount] = Field(
        default_factory=dict, description="reserved too, of the names and amounts that nodes were started with"
    )
    labels: Labels = Field(
        default_factory=dict,
        description="of the node that this bundle is on (Ray: placement_group_bundle_label_selector)",
    )


class Placement(Part):
    """What is reserved together with each replica. What the replica itself needs is reserved as the first bundle."""

    beside: list[Bundle] = Field(
        min_length=1, description="the bundles after the replica's own (Ray: placement_group_bundles)"
    )
    strategy: Literal["pack", "spread", "strict_pack", "strict_spread"] | None = Field(
        default=None,
        description="on as few or as many nodes as can be, or strictly so; pack (Ray: placement_group_strategy)",
    )


class Gang(Part):
    """Replicas that start together or not at all, and are replaced together."""

    size: Annotated[int, Field(ge=2)] = Field(description="the replicas of each gang (Ray: gang_size)")
    strategy: Literal["pack", "spread"] | None = Field(
        default=None,
        description="a gang's replicas on as few or as many nodes as can be; pack (Ray: gang_placement_strategy)",
    )
    failure_policy: Literal["restart_gang", "restart_replica"] | None = Field(
        default=None,
        description="what ends when one of them fails; restart_gang. Ray Serve 2.60 refuses the other (Ray: "
        "runtime_failure_policy)",
    )


class RollingUpdate(Part):
    """How a change that restarts replicas goes on."""

    at_once: SomePercent | None = Field(
        default=None, description="of the replicas, replaced at a time; 20% (Ray: rolling_update_percentage)"
    )
    surge: WholePercent | None = Field(
        default=None,
        description="replicas more than usual meanwhile; 0%: old ones end first (Ray: max_surge_percent)",
    )


class Backpressure(Part):
    """What a client is answered when too many requests wait for a replica. The status alone is the short form."""

    status: Literal[429, 503] = Field(default=429, description="of the HTTP answer (Ray: status_code)")
    retry_after: SomeTime | None = Field(default=None, description="what it is told to wait; service.retry_after")


class Backoff(Part):
    """How a router waits before it asks for a free replica again."""

    first: SomeTime | None = Field(default=None, description="the first wait; 25ms (Ray: initial_backoff_s)")
    factor: float | None = Field(
        default=None, gt=0, description="of each wait to the one before; 2 (Ray: backoff_multiplier)"
    )
    longest: SomeTime | None = Field(default=None, description="the longest wait; 500ms (Ray: max_backoff_s)")


class Router(Part):
    """What chooses the replica for a request. Any change restarts the whole application. Its code alone is the short
    form.
    """

    code: CodePath | None = Field(
        default=None, description="module:Class; the less busy of two by default (Ray: request_router_class)"
    )
    arguments: dict[str, Any] = Field(
        default_factory=dict, description="for its initialize_state (Ray: request_router_kwargs)"
    )
    stats_period: SomeTime | None = Field(
        default=None,
        description="how often the replica's record_routing_stats is asked; 10s (Ray: request_routing_stats_period_s)",
    )
    stats_timeout: SomeTime | None = Field(
        default=None, description="how long its answer may take; 30s (Ray: request_routing_stats_timeout_s)"
    )
    backoff: Backoff = Field(default=Backoff(), description="waiting while no replica is free; Ray's own")


class Replicas(Part):
    """How many processes run a part, and what each may use. Either count or autoscaling."""

    count: ReplicaCount | None = Field(default=None, description="always so many; or autoscaling (Ray: num_replicas)")
    autoscaling: Autoscaling | None = Field(
        default=None, description="as many as the load asks for (Ray: autoscaling_config)"
    )
    cpus: Amount = Field(description="that Ray reserves for each; not a limit (Ray: num_cpus)")
    gpus: Amount = Field(default=0, description="that Ray reserves for each, or a share of one (Ray: num_gpus)")
    memory: SomeSize = Field(description="that Ray reserves for each; not a limit")
    environment: Environment = Field(default_factory=dict, description="variables of its processes (Ray: env_vars)")
    node: Node = Field(default=Node(), description="what a node must have to run one; anything")
    max_per_node: Annotated[int, Field(ge=1, le=100)] | None = Field(
        default=None, description="on one node at the most; no limit (Ray: max_replicas_per_node)"
    )
    placement: Placement | None = Field(default=None, description="room reserved together with each; none")
    gang: Gang | None = Field(
        default=None, description="groups that start and end together; none (Ray: gang_scheduling_config)"
    )
    max_ongoing_requests: Positive = Field(description="requests that one replica works on at a time")
    max_queued_requests: Positive = Field(
        description="requests that may wait for a replica, for each process that sends them; of the ingress, in each "
        "replica. More get 429"
    )
    backpressure: Annotated[Backpressure, Shorthand("status")] = Field(
        default=Backpressure(), description="what a client is answered when too many wait (Ray: backpressure_config)"
    )
    health_check_period: SomeTime | None = Field(
        default=None, description="how often Ray asks each whether it lives; 10s"
    )
    health_check_timeout: SomeTime | None = Field(
        default=None, description="after three checks longer than this, the replica is replaced; 30s"
    )
    drain_wait: Duration | None = Field(
        default=None,
        description="how long a replica that is to end waits before it looks whether it is idle; 2s. The ingress takes "
        "new requests until then; 0s",
    )
    shutdown_timeout: Duration | None = Field(
        default=None,
        description="how long it may work on its last requests; the longest SLA (Ray: graceful_shutdown_timeout_s)",
    )
    rolling_update: RollingUpdate = Field(
        default=RollingUpdate(), description="how a change that restarts them goes on"
    )
    logging: Logging | None = Field(default=None, description="what they log; ray.logging")

    @property
    def most(self) -> int:
        """How many processes there are at the most. Unknown where the spec does not say."""
        if self.count is None and self.autoscaling is None:
            raise Unknown
        return self.count if self.autoscaling is None else self.autoscaling.max_replicas  # type: ignore[return-value]

    @property
    def at_first(self) -> int:
        """How many processes there are when the application is ready."""
        scaling = self.autoscaling
        if scaling is None:
            return self.most
        return scaling.min_replicas if scaling.initial_replicas is None else scaling.initial_replicas


class StageReplicas(Replicas):
    """The processes of a stage."""

    router: Annotated[Router, Shorthand("code")] | None = Field(
        default=None, description="what chooses the replica for a request; Ray's own (Ray: request_router_config)"
    )
    user_config: dict[str, Any] | None = Field(
        default=None,
        description="given to the stage's `async def reconfigure(self, user_config)`, at the start and whenever it "
        "changes, which restarts nothing; settings are for what never changes",
    )
