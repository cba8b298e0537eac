"""`tandem drift`: ask, and compare."""

from __future__ import annotations

from serve_app.cluster.error import ClusterError
from serve_app.drift.cluster import Dashboard, ask_inside, serve_details
from serve_app.drift.difference import Drift
from serve_app.drift.of_cluster import cluster_drift, port_drift
from serve_app.drift.of_ray import ray_drift
from serve_app.drift.of_triton import triton_drift
from serve_app.render.ray_serve import TRITON, serve_config
from serve_app.spec import Spec
from serve_app.weights.errors import Progress


def find_drift(spec: Spec, dashboard: Dashboard, progress: Progress) -> list[Drift]:
    """Every way in which what runs is not what the spec says. ClusterError where the cluster cannot be asked."""
    progress(f"asking Ray Serve at {dashboard.url}")
    details = serve_details(dashboard)
    config = serve_config(spec)
    ports = [] if dashboard.ray_port is None else list(port_drift(spec, dashboard.url, dashboard.ray_port))
    drift = list(ray_drift(config, details))
    application = details["applications"].get(spec.application)
    if application is None or TRITON not in application["deployments"]:
        return [*ports, *drift]
    deployed = application.get("deployed_app_config") or {}
    digest = deployed.get("args", {}).get("spec")
    progress("asking each Triton")
    try:
        told = ask_inside(dashboard, spec.application, deployed.get("runtime_env") or {})
    except ClusterError as error:
        unasked = Drift(
            TRITON, "answer", str(error), "its models' configurations", None, "see Ray's dashboard and logs"
        )
        return [*ports, *drift, unasked]
    explained = list(triton_drift(spec, told["replicas"], digest))
    # The digest alone says no more than what explains it.
    if any(each.effect == "restarts the application" for each in explained):
        drift = [each for each in drift if each.what != "args.spec"]
    return [*ports, *cluster_drift(spec, config, told), *drift, *explained]
