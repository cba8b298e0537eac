"""The deployments of serve_config.yaml: Triton, the stages, and the ingress."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from serve_app.admission import AdmissionLimits
from serve_app.spec import Spec
from serve_app.spec.replicas import (
    Autoscaling,
    Gang,
    Logging,
    Node,
    Placement,
    Policy,
    Replicas,
    RollingUpdate,
    Router,
    StageReplicas,
)
from serve_app.triton.server import GUARD_GRACE

# What makes the ingress's replicas as many as their requests need.
BY_REQUESTS = Policy(code="serve_app.http.scaling:by_requests")
# Seconds after the last answer, for connections to close.
DRAIN_GRACE = 2.0
# What an accelerator's type is among a node's resources, as `resources_from_ray_options` of ray._common.utils has it.
_ACCELERATOR = ("accelerator_type:", 0.001)


def given(**options: Any) -> dict[str, Any]:
    """The options that have a value; Ray refuses most of those that are null."""
    return {name: value for name, value in options.items() if value is not None}


def seconds(duration: timedelta | None) -> float | None:
    return None if duration is None else duration.total_seconds()


def triton_deployment(name: str, spec: Spec) -> dict[str, Any]:
    """The deployment that owns Triton, of the primary profile."""
    triton = spec.profiles[spec.primary_profile].triton
    askers = [spec.ingress, *(stage.replicas for stage in spec.stages.values() if stage.replicas)]
    needed = _listens_on(spec) + spec.longest_sla.total_seconds()
    return {
        "name": name,
        "num_replicas": triton.replicas,
        # No inference goes through Ray, only a question by each replica at a time where the server is.
        "max_ongoing_requests": sum(replicas.most for replicas in askers),
        "health_check_period_s": triton.health_check_period.total_seconds(),
        "health_check_timeout_s": triton.health_check_timeout.total_seconds(),
        # Ray ends all deployments at once; stages need Triton until the last request in work is answered.
        "graceful_shutdown_wait_loop_s": needed,
        "graceful_shutdown_timeout_s": needed + triton.exit_timeout.total_seconds() + GUARD_GRACE,
        **given(max_replicas_per_node=triton.max_per_node, logging_config=logging_config(triton.logging)),
        **_rolling_update(triton.rolling_update),
        "ray_actor_options": _actor_options(triton.cpus, triton.gpus, triton.memory, triton.node),
    }


def stage_deployment(name: str, replicas: StageReplicas, spec: Spec) -> dict[str, Any]:
    """The deployment of a stage."""
    backpressure = replicas.backpressure
    retry_after = spec.service.retry_after if backpressure.retry_after is None else backpressure.retry_after
    timeout = spec.longest_sla if replicas.shutdown_timeout is None else replicas.shutdown_timeout
    return {
        "name": name,
        **given(num_replicas=_num_replicas(replicas, replicas.autoscaling)),
        "max_ongoing_requests": replicas.max_ongoing_requests,
        "max_queued_requests": replicas.max_queued_requests,
        "backpressure_config": {"status_code": backpressure.status, "retry_after_s": retry_after.total_seconds()},
        **given(graceful_shutdown_wait_loop_s=seconds(replicas.drain_wait)),
        "graceful_shutdown_timeout_s": timeout.total_seconds(),
        **given(
            autoscaling_config=_autoscaling_config(replicas.autoscaling),
            user_config=replicas.user_config,
            request_router_config=_request_router_config(replicas.router),
        ),
        **_processes(replicas),
    }


def ingress_deployment(name: str, spec: Spec) -> dict[str, Any]:
    """The deployment of the ingress, whose requests come past Ray Serve: it counts and limits them by itself."""
    replicas = spec.ingress
    scaling = replicas.autoscaling
    if scaling is not None and scaling.policy is None and spec.ray.autoscaling_policy is None:
        scaling = scaling.model_copy(update={"policy": BY_REQUESTS})
    timeout = seconds(replicas.shutdown_timeout)
    return {
        "name": name,
        **given(num_replicas=_num_replicas(replicas, scaling)),
        # Nothing comes that it could limit, but Ray Serve warns where it is less than autoscaling's target.
        "max_ongoing_requests": replicas.max_ongoing_requests,
        # Ray Serve sees no request to wait for; after this the replica drains by itself.
        "graceful_shutdown_wait_loop_s": _listens_on(spec),
        "graceful_shutdown_timeout_s": _listens_on(spec) + spec.longest_sla.total_seconds() + DRAIN_GRACE
        if timeout is None
        else timeout,
        **given(autoscaling_config=_autoscaling_config(scaling)),
        "user_config": AdmissionLimits.of(spec).config(),
        **_processes(replicas),
    }


def _listens_on(spec: Spec) -> float:
    """How long an ingress that is to end takes new requests."""
    return seconds(spec.ingress.drain_wait) or 0.0


def _processes(replicas: Replicas) -> dict[str, Any]:
    """What is the same for every kind of process."""
    return {
        **given(
            health_check_period_s=seconds(replicas.health_check_period),
            health_check_timeout_s=seconds(replicas.health_check_timeout),
            gang_scheduling_config=_gang_scheduling_config(replicas.gang),
            logging_config=logging_config(replicas.logging),
            max_replicas_per_node=replicas.max_per_node,
        ),
        **_rolling_update(replicas.rolling_update),
        **_placement(replicas, replicas.placement),
        "ray_actor_options": _actor_options(
            replicas.cpus, replicas.gpus, replicas.memory, replicas.node, replicas.environment
        ),
    }


def logging_config(logging: Logging | None) -> dict[str, Any] | None:
    if logging is None:
        return None
    return given(
        log_level=logging.level and logging.level.upper(),
        encoding=logging.encoding and logging.encoding.upper(),
        enable_access_log=logging.access_log,
        additional_log_standard_attrs=logging.attributes or None,
    )


def policy(policy: Policy | None) -> dict[str, Any] | None:
    if policy is None:
        return None
    return {"policy_function": policy.code, **given(policy_kwargs=policy.arguments or None)}


def _num_replicas(replicas: Replicas, scaling: Autoscaling | None) -> int | str | None:
    # Only with "auto" the controller takes the policy's code from the build of the application, not from a module of
    # its own, and only then the bounds are checked against the size of gangs.
    is_auto = scaling is not None and (scaling.policy is not None or replicas.gang is not None)
    return "auto" if is_auto and replicas.count is None else replicas.count


def _autoscaling_config(scaling: Autoscaling | None) -> dict[str, Any] | None:
    if scaling is None:
        return None
    return {
        "min_replicas": scaling.min_replicas,
        **given(initial_replicas=scaling.initial_replicas),
        "max_replicas": scaling.max_replicas,
        "target_ongoing_requests": scaling.target_ongoing_requests,
        **given(
            metrics_interval_s=seconds(scaling.metrics_interval),
            look_back_period_s=seconds(scaling.look_back),
            aggregation_function=scaling.aggregation,
        ),
        "upscale_delay_s": scaling.upscale_delay.total_seconds(),
        "downscale_delay_s": scaling.downscale_delay.total_seconds(),
        **given(
            downscale_to_zero_delay_s=seconds(scaling.downscale_to_zero_delay),
            upscaling_factor=scaling.upscaling_factor,
            downscaling_factor=scaling.downscaling_factor,
            policy=policy(scaling.policy),
        ),
    }


def _request_router_config(router: Router | None) -> dict[str, Any] | None:
    if router is None:
        return None
    return given(
        request_router_class=router.code,
        request_router_kwargs=router.arguments or None,
        request_routing_stats_period_s=seconds(router.stats_period),
        request_routing_stats_timeout_s=seconds(router.stats_timeout),
        initial_backoff_s=seconds(router.backoff.first),
        backoff_multiplier=router.backoff.factor,
        max_backoff_s=seconds(router.backoff.longest),
    )


def _gang_scheduling_config(gang: Gang | None) -> dict[str, Any] | None:
    if gang is None:
        return None
    return {
        "gang_size": gang.size,
        **given(
            gang_placement_strategy=gang.strategy and gang.strategy.upper(),
            runtime_failure_policy=gang.failure_policy and gang.failure_policy.upper(),
        ),
    }


def _rolling_update(update: RollingUpdate) -> dict[str, Any]:
    return given(
        rolling_update_percentage=None if update.at_once is None else update.at_once / 100,
        max_surge_percent=None if update.surge is None else int(update.surge),
    )


def _actor_options(
    cpus: float, gpus: float, memory: int, node: Node, environment: dict[str, str] | None = None
) -> dict[str, Any]:
    return {
        "num_cpus": cpus,
        "num_gpus": gpus,
        "memory": memory,
        **given(
            resources=node.resources or None,
            accelerator_type=node.accelerator_type,
            label_selector=node.labels or None,
            fallback_strategy=[{"label_selector": labels} for labels in node.fallback] or None,
            runtime_env={"env_vars": environment} if environment else None,
        ),
    }


def _placement(replicas: Replicas, placement: Placement | None) -> dict[str, Any]:
    if placement is None:
        return {}
    node = replicas.node
    # A replica runs in the first bundle, which must have all that the replica asks for.
    own = _bundle(replicas.cpus, replicas.gpus, replicas.memory, node.resources)
    if node.accelerator_type is not None:
        prefix, amount = _ACCELERATOR
        own[prefix + node.accelerator_type] = amount
    beside = [_bundle(each.cpus, each.gpus, each.memory, each.resources) for each in placement.beside]
    labels = [node.labels, *(bundle.labels for bundle in placement.beside)]
    return {
        "placement_group_bundles": [own, *beside],
        **given(
            placement_group_strategy=placement.strategy and placement.strategy.upper(),
            placement_group_bundle_label_selector=labels if any(labels) else None,
        ),
    }


def _bundle(cpus: float, gpus: float, memory: int, resources: dict[str, float]) -> dict[str, float]:
    amounts = {"CPU": cpus, "GPU": gpus, "memory": memory, **resources}
    return {name: amount for name, amount in amounts.items() if amount}
