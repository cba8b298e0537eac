"""How many replicas there are: counts, autoscaling and its policies."""

from __future__ import annotations

from serve_app.spec.checks.registry import all_replicas, of_all_replicas, of_each_stage, of_the_spec
from serve_app.spec.code import load_code, why_not_loaded
from serve_app.spec.findings import Faults, Place, error, warning
from serve_app.spec.part import UNKNOWN
from serve_app.spec.pipeline import Stage
from serve_app.spec.replicas import Policy, Replicas
from serve_app.spec.schema import Spec
from serve_app.spec.units import show_duration

REPLICA_BOUNDS = error(
    "R010", "max_replicas below min_replicas", "Ray Serve refuses the deployment", "make it at least min_replicas"
)
TARGET = error(
    "R011", "target_ongoing_requests above max_ongoing_requests", "a replica never has so many, so none is ever added",
    "make the target smaller",
)  # fmt: skip
INITIAL = error(
    "R012", "initial_replicas outside of min_replicas and max_replicas", "Ray Serve refuses the deployment",
    "write one of them, or a number between",
)  # fmt: skip
COLD_START = warning(
    "R013", "A part that may have no process at all", "the first request waits for one to start, within its SLA",
    "write min_replicas: 1, unless an idle service is rather slow than paid for",
)  # fmt: skip
NEVER_TO_ZERO = warning(
    "R014", "A delay for ending the last replica, which never ends", "it has no effect",
    "write min_replicas: 0, or remove it",
)  # fmt: skip
LOOK_BACK = warning(
    "R015", "A look back that is not longer than the metrics' interval", "replicas come and go by single measurements",
    "make look_back several times the metrics' interval",
)  # fmt: skip
COUNT = error(
    "R016", "Neither a count of replicas nor autoscaling, or both", "Ray Serve refuses both, and runs one without",
    "write count for a fixed number, or autoscaling",
)  # fmt: skip
HASTY_END = warning(
    "R017", "A downscale delay shorter than the upscale delay", "replicas end in every lull and are missed after it",
    "make downscale_delay the longer one",
)  # fmt: skip
NO_POLICY = error(
    "R018", "An autoscaling policy that cannot be used", "Ray Serve fails to deploy the application",
    "name a function, or a class whose instances can be called",
)  # fmt: skip
NO_ROUTER = error(
    "R019", "A request router that cannot be used", "Ray Serve fails to deploy the application",
    "name a class derived from ray.serve.request_router.RequestRouter",
)  # fmt: skip
EXTERNAL = error(
    "R020", "Autoscaling beside an external scaler", "Ray Serve refuses the application",
    "give every part a count to start with, or leave external_scaler out",
)  # fmt: skip
NOBODY_SCALES = warning(
    "R021", "A policy for an application in which nothing is scaled", "it is never asked",
    "give at least one part autoscaling, or remove the policy",
)  # fmt: skip
NO_INGRESS = error(
    "R025", "An ingress that may have no process at all", "nothing listens then, so no request can start one",
    "write min_replicas: 1",
)  # fmt: skip
OVERRULED = warning("R022", "A policy beside the one for all deployments", "it is never asked", "remove one of the two")
METRICS_INTERVAL_S = 10
LOOK_BACK_S = 30


@of_all_replicas
def count(spec: Spec, place: Place, replicas: Replicas) -> Faults:
    if replicas.count is not None and replicas.autoscaling is not None:
        yield COUNT.at((*place, "count"), "there is autoscaling too")
    elif replicas.count is None and replicas.autoscaling is None:
        yield COUNT.at(place, "there is neither count nor autoscaling")


@of_all_replicas
def bounds(spec: Spec, place: Place, replicas: Replicas) -> Faults:
    scaling = replicas.autoscaling
    if scaling is not None and scaling.min_replicas > scaling.max_replicas:
        yield REPLICA_BOUNDS.at(
            (*place, "autoscaling", "max_replicas"), f"{scaling.max_replicas} is less than {scaling.min_replicas}"
        )


@of_all_replicas
def initial(spec: Spec, place: Place, replicas: Replicas) -> Faults:
    scaling = replicas.autoscaling
    if scaling is None or scaling.initial_replicas is None or scaling.min_replicas > scaling.max_replicas:
        return
    if not scaling.min_replicas <= scaling.initial_replicas <= scaling.max_replicas:
        yield INITIAL.at(
            (*place, "autoscaling", "initial_replicas"),
            f"{scaling.initial_replicas} is not within {scaling.min_replicas} and {scaling.max_replicas}",
        )


@of_all_replicas
def target(spec: Spec, place: Place, replicas: Replicas) -> Faults:
    scaling = replicas.autoscaling
    if scaling is not None and scaling.target_ongoing_requests > replicas.max_ongoing_requests:
        yield TARGET.at(
            (*place, "autoscaling", "target_ongoing_requests"),
            f"{scaling.target_ongoing_requests:g} is more than {replicas.max_ongoing_requests}",
        )


@of_all_replicas
def cold_start(spec: Spec, place: Place, replicas: Replicas) -> Faults:
    if replicas.autoscaling is None or replicas.autoscaling.min_replicas > 0:
        return
    if place == ("ingress",):
        yield NO_INGRESS.at((*place, "autoscaling", "min_replicas"), "it is 0")
    else:
        shortest = min([spec.service.sla, *(spec.sla(name) for name in spec.pipelines)])
        yield COLD_START.at(
            (*place, "autoscaling", "min_replicas"), f"it is 0, and the shortest SLA {show_duration(shortest)}"
        )


@of_all_replicas
def never_to_zero(spec: Spec, place: Place, replicas: Replicas) -> Faults:
    scaling = replicas.autoscaling
    if scaling is not None and scaling.downscale_to_zero_delay is not None and scaling.min_replicas > 0:
        yield NEVER_TO_ZERO.at(
            (*place, "autoscaling", "downscale_to_zero_delay"), f"min_replicas is {scaling.min_replicas}"
        )


@of_all_replicas
def look_back(spec: Spec, place: Place, replicas: Replicas) -> Faults:
    scaling = replicas.autoscaling
    if scaling is None or (scaling.look_back is None and scaling.metrics_interval is None):
        return
    window = LOOK_BACK_S if scaling.look_back is None else scaling.look_back.total_seconds()
    interval = METRICS_INTERVAL_S if scaling.metrics_interval is None else scaling.metrics_interval.total_seconds()
    if window <= interval:
        given = "metrics_interval" if scaling.look_back is None else "look_back"
        yield LOOK_BACK.at((*place, "autoscaling", given), f"the look back is {window:g}s, the interval {interval:g}s")


@of_all_replicas
def hasty_end(spec: Spec, place: Place, replicas: Replicas) -> Faults:
    scaling = replicas.autoscaling
    if scaling is not None and scaling.downscale_delay < scaling.upscale_delay:
        yield HASTY_END.at(
            (*place, "autoscaling", "downscale_delay"),
            f"it is {show_duration(scaling.downscale_delay)}, and upscale_delay {show_duration(scaling.upscale_delay)}",
        )


@of_all_replicas
def policy(spec: Spec, place: Place, replicas: Replicas) -> Faults:
    if replicas.autoscaling is not None and replicas.autoscaling.policy is not None:
        yield from _policy((*place, "autoscaling", "policy"), replicas.autoscaling.policy)


@of_the_spec
def policy_for_all(spec: Spec) -> Faults:
    if spec.ray.autoscaling_policy is not None:
        yield from _policy(("ray", "autoscaling_policy"), spec.ray.autoscaling_policy)


def _policy(place: Place, policy: Policy) -> Faults:
    if reason := why_not_loaded(policy.code):
        yield NO_POLICY.at(place, f"{policy.code} cannot be loaded: {reason}")
        return
    code = load_code(policy.code)
    if not callable(code) or (isinstance(code, type) and "__call__" not in dir(code)):
        yield NO_POLICY.at(place, f"{policy.code} cannot be called")
    elif policy.arguments and not isinstance(code, type):
        yield NO_POLICY.at(
            (*place, "arguments"), f"{policy.code} is a function", consequence="Ray passes arguments to classes only",
            remedy="remove them, or make it a class",
        )  # fmt: skip


@of_each_stage
def router(spec: Spec, name: str, stage: Stage) -> Faults:
    place: Place = ("stages", name, "replicas")
    router = stage.replicas.router if stage.replicas is not None else None
    path = router.code if router is not None else None
    if path is None:
        return
    if reason := why_not_loaded(path):
        yield NO_ROUTER.at((*place, "router"), f"{path} cannot be loaded: {reason}")
    elif not _is_router(load_code(path)):
        yield NO_ROUTER.at((*place, "router"), f"{path} is no request router")


def _is_router(code: object) -> bool:
    # By name: the checks do without Ray.
    return isinstance(code, type) and any(
        base.__module__.startswith("ray.serve.") and base.__name__ == "RequestRouter" for base in code.__mro__[1:]
    )


@of_all_replicas
def external(spec: Spec, place: Place, replicas: Replicas) -> Faults:
    if spec.ray.external_scaler and replicas.autoscaling is not None:
        yield EXTERNAL.at((*place, "autoscaling"), "ray.external_scaler is true")


@of_all_replicas
def overruled(spec: Spec, place: Place, replicas: Replicas) -> Faults:
    if spec.ray.autoscaling_policy is not None and replicas.autoscaling and replicas.autoscaling.policy is not None:
        yield OVERRULED.at((*place, "autoscaling", "policy"), "there is ray.autoscaling_policy")


@of_the_spec
def nobody_scales(spec: Spec) -> Faults:
    scaling = [replicas.autoscaling for _, replicas in all_replicas(spec)]
    if spec.ray.autoscaling_policy is not None and not any(each is UNKNOWN or each is not None for each in scaling):
        yield NOBODY_SCALES.at(("ray", "autoscaling_policy"), "no part has autoscaling")
