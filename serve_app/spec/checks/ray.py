"""What Ray Serve drops in silence or refuses late: ports, autoscaling bounds, limits."""

from __future__ import annotations

from collections.abc import Iterator

from serve_app.spec.checks.registry import of_the_spec
from serve_app.spec.findings import Faults, Place, error
from serve_app.spec.part import UNKNOWN
from serve_app.spec.ray import Replicas
from serve_app.spec.schema import Spec
from serve_app.spec.units import show_duration

SAME_PORT = error("R001", "Two ports that are the same", "the second to listen fails", "give each a port of its own")
UPLOAD = error(
    "R002", "An upload limit above the request limit", "such a file is always refused as part of its request",
    "make it at most request_limit",
)  # fmt: skip
PROXY_TIMEOUT = error(
    "R003", "A proxy timeout that is not longer than every SLA", "Ray's proxy answers 408 to requests still in time",
    "make it longer than the longest SLA",
)  # fmt: skip
REPLICA_BOUNDS = error(
    "R010", "max_replicas below min_replicas", "Ray Serve refuses the deployment", "make it at least min_replicas"
)
TARGET = error(
    "R011", "target_ongoing_requests above max_ongoing_requests", "a replica never has so many, so none is ever added",
    "make the target smaller",
)  # fmt: skip


@of_the_spec
def same_port(spec: Spec) -> Faults:
    ports = [
        (("service", "port"), spec.service.port),
        (("ray", "port"), spec.ray.port),
        (("ray", "dashboard_port"), spec.ray.dashboard_port),
    ]
    known = [(place, port) for place, port in ports if port is not UNKNOWN]
    for index, (place, port) in enumerate(known):
        for other, taken in known[:index]:
            if port == taken:
                yield SAME_PORT.at(place, f"{'.'.join(other)} is {port} too")


@of_the_spec
def upload(spec: Spec) -> Faults:
    if spec.service.upload_limit > spec.service.request_limit:
        yield UPLOAD.at(("service", "upload_limit"), "a request could never be that large")


@of_the_spec
def proxy_timeout(spec: Spec) -> Faults:
    if spec.longest_sla >= spec.service.proxy_timeout:
        timeout, sla = show_duration(spec.service.proxy_timeout), show_duration(spec.longest_sla)
        yield PROXY_TIMEOUT.at(("service", "proxy_timeout"), f"it is {timeout}, and a request may take {sla}")


@of_the_spec
def replicas(spec: Spec) -> Faults:
    for place, each in _all_replicas(spec):
        scaling = each.autoscaling
        if scaling.min_replicas > scaling.max_replicas:
            yield REPLICA_BOUNDS.at(
                (*place, "autoscaling", "max_replicas"), f"{scaling.max_replicas} is less than {scaling.min_replicas}"
            )
        if scaling.target_ongoing_requests > each.max_ongoing_requests:
            yield TARGET.at(
                (*place, "autoscaling", "target_ongoing_requests"),
                f"{scaling.target_ongoing_requests:g} is more than {each.max_ongoing_requests}",
            )


def _all_replicas(spec: Spec) -> Iterator[tuple[Place, Replicas]]:
    yield ("ingress",), spec.ingress
    for name, stage in spec.stages.items():
        if stage is not UNKNOWN and stage.replicas is not None:
            yield ("stages", name, "replicas"), stage.replicas
