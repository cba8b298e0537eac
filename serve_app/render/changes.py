"""What a change of serve_config.yaml does to a service that runs, by Ray Serve 2.60's own source.

- `_private/deploy_utils.get_app_code_version`: what makes it a new version of the application, all of whose replicas
  are then started anew. Every deployment's autoscaling policy and router are part of it, and so is a deployment's
  getting or losing autoscaling.
- `_private/version.DeploymentVersion.requires_actor_restart`: what starts one deployment's replicas anew.
- `_private/deployment_state.DeploymentState.deploy`: what is compared at all. Placement groups and
  `max_replicas_per_node` are not, for which reason Tandem has them in the `args` of the application.
- `dashboard/modules/serve/serve_head.put_all_applications`: what is read only while Serve is not running.
"""

from __future__ import annotations

from typing import Literal

Effect = Literal["in place", "restarts the deployment", "restarts the application", "needs a new start of Serve"]
Path = tuple[str | int, ...]

_IN_PLACE: Effect = "in place"
_DEPLOYMENT: Effect = "restarts the deployment"
_APPLICATION: Effect = "restarts the application"
_SERVE: Effect = "needs a new start of Serve"

CLUSTER: dict[str, Effect] = {
    "proxy_location": _SERVE,
    "http_options": _SERVE,
    "grpc_options": _SERVE,
    "controller_options": _SERVE,
    "tracing_config": _SERVE,  # replicas and proxies that run keep theirs
    "logging_config": _IN_PLACE,
    "target_capacity": _IN_PLACE,
}
APPLICATION: dict[str, Effect] = {
    "name": _APPLICATION,
    "import_path": _APPLICATION,
    "runtime_env": _APPLICATION,
    "args": _APPLICATION,
    "autoscaling_policy": _APPLICATION,
    "route_prefix": _IN_PLACE,
    "logging_config": _IN_PLACE,
    "external_scaler_enabled": _IN_PLACE,
    # Ray refuses these two in an application of a config of several; it takes http_options'.
    "host": _SERVE,
    "port": _SERVE,
}
DEPLOYMENT: dict[str, Effect] = {
    "name": _APPLICATION,
    "num_replicas": _IN_PLACE,
    "max_ongoing_requests": _IN_PLACE,
    "max_queued_requests": _IN_PLACE,
    "backpressure_config": _IN_PLACE,
    "user_config": _IN_PLACE,
    "graceful_shutdown_wait_loop_s": _IN_PLACE,
    "graceful_shutdown_timeout_s": _IN_PLACE,
    "health_check_period_s": _IN_PLACE,
    "health_check_timeout_s": _IN_PLACE,
    "logging_config": _IN_PLACE,
    "rolling_update_percentage": _IN_PLACE,
    "max_surge_percent": _IN_PLACE,
    "autoscaling_config": _IN_PLACE,  # but see `effect`
    "ray_actor_options": _DEPLOYMENT,
    "gang_scheduling_config": _DEPLOYMENT,
    "request_router_config": _APPLICATION,
    "deployment_actors": _APPLICATION,
    "placement_group_bundles": _APPLICATION,
    "placement_group_strategy": _APPLICATION,
    "placement_group_bundle_label_selector": _APPLICATION,
    "max_replicas_per_node": _APPLICATION,
}


def effect(path: Path) -> Effect:
    """What a change of the value at `path` of serve_config.yaml does to a service that runs.

    `path` is as ("applications", 0, "deployments", "faces", "max_queued_requests"); the third and fifth part may be an
    index or a name. A path that ends at an application or a deployment means that it comes or goes. KeyError for what
    is no field of Ray Serve 2.60.
    """
    if path[:1] != ("applications",):
        return CLUSTER[str(path[0])]
    if len(path) <= 2:
        return _APPLICATION
    if path[2] != "deployments":
        return APPLICATION[str(path[2])]
    if len(path) <= 4:
        return _APPLICATION
    option, *within = path[4:]
    # The version of an application counts the deployments that have autoscaling, and knows their policies.
    if option == "autoscaling_config" and (not within or within[0] == "policy"):
        return _APPLICATION
    return DEPLOYMENT[str(option)]
