"""Ray Serve's account of what runs, against the configuration that the spec renders to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ray.serve.schema import ServeApplicationSchema

from serve_app.drift.difference import ABSENT, Drift, leaves, shown
from serve_app.render.changes import effect

_HEALTHY = {"HEALTHY", "RUNNING"}


def ray_drift(config: Mapping[str, Any], details: Mapping[str, Any]) -> Iterator[Drift]:
    """What differs. `details` is what `GET /api/serve/applications/` answers.

    Tracing and the controller's environment are not in it; cluster-wide logging is where the application's would be.
    """
    wanted = {application["name"]: _with_logging(application, config) for application in config["applications"]}
    running = details["applications"]
    yield from _cluster(config, details, is_deployed=any(name in running for name in wanted))
    for name, application in wanted.items():
        if name not in running:
            yield Drift(name, "application", "not deployed", "deployed", effect(("applications", name)))
        else:
            yield from _application(name, application, running[name])
    for name in running:
        if name not in wanted:
            yield Drift(name, "application", "deployed", "nothing", effect(("applications", name)))


def _with_logging(application: Mapping[str, Any], config: Mapping[str, Any]) -> dict[str, Any]:
    """The application as Ray Serve keeps it: where it has no logging, with the cluster's."""
    cluster = config.get("logging_config")
    return {**({} if cluster is None else {"logging_config": cluster}), **application}


def _cluster(config: Mapping[str, Any], details: Mapping[str, Any], *, is_deployed: bool) -> Iterator[Drift]:
    """Whether Ray Serve has proxies, which it has read when it started, and which share of all replicas runs."""
    was, becomes = details.get("target_capacity"), config.get("target_capacity")
    if is_deployed and was != becomes:
        running, wanted = (shown(ABSENT if value is None else value) for value in (was, becomes))
        yield Drift("Ray Serve", "target_capacity", running, wanted, effect(("target_capacity",)))
    if details.get("proxy_location") not in (None, config["proxy_location"]):  # None: it has not been started
        yield Drift(
            "Ray Serve",
            "proxy_location",
            details["proxy_location"],
            config["proxy_location"],
            effect(("proxy_location",)),
        )


def _application(name: str, wanted: Mapping[str, Any], running: Mapping[str, Any]) -> Iterator[Drift]:
    if running["status"] not in _HEALTHY:
        yield _state(name, "status", running["status"].lower(), "running", running["message"])
    deployed = running.get("deployed_app_config")
    if deployed is None:
        remedy = "deploy serve_config.yaml, which takes its place"
        yield Drift(name, "source", "code (serve run)", "serve_config.yaml", None, remedy)
    else:
        yield from _config(name, _plain(wanted), _plain(deployed))
    known = {deployment["name"]: deployment for deployment in wanted["deployments"]}
    for each, deployment in running["deployments"].items():
        if each in known:
            yield from _replicas(each, known[each], deployment)


def _plain(application: Mapping[str, Any]) -> dict[str, Any]:
    """An application's configuration in Ray's own form, its deployments by name; only what is given."""
    plain = ServeApplicationSchema.model_validate(application).model_dump(mode="json", exclude_unset=True)
    plain["deployments"] = {deployment["name"]: deployment for deployment in plain.get("deployments", [])}
    return plain


def _config(name: str, wanted: Mapping[str, Any], running: Mapping[str, Any]) -> Iterator[Drift]:
    for path, was, becomes in leaves(running, wanted):
        whole = ("applications", name, *path)
        if path[0] != "deployments":
            yield Drift(name, _dotted(path), shown(was), shown(becomes), effect(whole))
        elif len(path) == 2:
            states = ["deployed" if isinstance(value, dict) else "nothing" for value in (was, becomes)]
            yield Drift(str(path[1]), "deployment", states[0], states[1], effect(whole))
        else:
            yield Drift(str(path[1]), _dotted(path[2:]), shown(was), shown(becomes), effect(whole))


def _replicas(name: str, wanted: Mapping[str, Any], running: Mapping[str, Any]) -> Iterator[Drift]:
    """Whether as many replicas run as the spec has, and Ray wants."""
    target = running["target_num_replicas"]
    alive = sum(replica["state"] == "RUNNING" for replica in running["replicas"])
    fixed = wanted.get("num_replicas")
    if isinstance(fixed, int) and target != fixed:
        yield Drift(name, "num_replicas that Ray keeps", str(target), str(fixed), "in place")
    if alive < target:
        yield _state(name, "replicas that run", str(alive), str(target), running["message"])
    elif running["status"] not in _HEALTHY:
        yield _state(name, "status", running["status"].lower(), "healthy", running["message"])


def _state(part: str, what: str, running: str, wanted: str, message: str) -> Drift:
    said = " ".join(message.split())
    return Drift(part, what, running, wanted, None, f"Ray says: {said}" if said else "see Ray's dashboard and logs")


def _dotted(path: tuple[str | int, ...]) -> str:
    return ".".join(map(str, path))
