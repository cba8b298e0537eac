"""What the cluster itself is, apart from the application, against the spec."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from ray.serve.schema import TracingConfig

from serve_app.drift.difference import Drift, leaves, shown
from serve_app.render.changes import effect
from serve_app.spec import Spec
from serve_app.spec.units import show_size

_NODE_ANEW = "no redeploy changes it: start the node anew"

_HEAD_ANEW = "no redeploy changes it: `tandem down`, then `tandem up`"


def port_drift(spec: Spec, dashboard: str, ray_port: int) -> Iterator[Drift]:
    """Which ports differ, of a head node that `tandem up` started: `dashboard` is its dashboard's URL."""
    running = {"port": ray_port, "dashboard_port": urlsplit(dashboard).port}
    for key, port in running.items():
        wanted = getattr(spec.ray, key)
        if port != wanted:
            yield Drift("head node", f"ray.{key}", str(port), str(wanted), None, _HEAD_ANEW)


def cluster_drift(spec: Spec, config: Mapping[str, Any], told: Mapping[str, Any]) -> Iterator[Drift]:
    """What differs. `config` is what the spec renders to, `told` is what `serve_app.drift.probe` answers.

    A node may have a larger object store than the spec says: other applications may need it.
    """
    for node, size in told["object_stores"].items():
        if size < spec.ray.object_store:
            wanted = f"{show_size(spec.ray.object_store)} or more"
            yield Drift(f"node {node}", "object store", show_size(size), wanted, None, _NODE_ANEW)
    if "tracing" in told:
        yield from _tracing_drift(config.get("tracing_config"), told["tracing"])


def _tracing_drift(wanted: Mapping[str, Any] | None, running: Mapping[str, Any] | None) -> Iterator[Drift]:
    """What Ray Serve was told last. None is what it does by itself, which is no tracing."""
    now, then = (TracingConfig.model_validate(config or {}).model_dump(mode="json") for config in (running, wanted))
    if now["enabled"] or then["enabled"]:
        for path, was, becomes in leaves(now, then):
            place = ("tracing_config", *path)
            yield Drift("Ray Serve", ".".join(map(str, place)), shown(was), shown(becomes), effect(place))


def not_compared(spec: Spec, *, knows_ports: bool) -> list[str]:
    """What the spec gives and Ray tells nobody, by its place in the spec.

    `knows_ports`: whether `tandem up` started the head node, and so knows its ports.
    """
    ray = spec.ray
    places = [] if knows_ports else ["ray.port", "ray.dashboard_port"]
    if ray.controller_environment:
        places.append("ray.controller_environment")
    if ray.logging is not None and ray.application_logging is not None:
        places.append("ray.logging")  # Ray tells the application's, and the controller alone has this one
    return places
