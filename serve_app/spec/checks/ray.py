"""The service's front and the cluster: what fails only when something starts, or is dropped in silence."""

from __future__ import annotations

import inspect
import ipaddress
import re
from collections.abc import Iterator
from itertools import count

from serve_app.spec.checks.registry import all_replicas, of_the_spec
from serve_app.spec.code import load_code, parameters_of, why_not_loaded
from serve_app.spec.findings import Faults, Place, error, warning
from serve_app.spec.part import UNKNOWN
from serve_app.spec.schema import Spec
from serve_app.spec.units import show_size

SAME_PORT = error("R001", "Two ports that are the same", "the second to listen fails", "give each a port of its own")
UPLOAD = error(
    "R002", "An upload limit above the request limit", "such a file is always refused as part of its request",
    "make it at most request_limit",
)  # fmt: skip
TAKEN_PORT = warning(
    "R004", "A port that something else may take first", "the service does not start when that is there before it",
    "use a port that nobody hands out, as 8000 or 9000",
)  # fmt: skip
OPEN = warning(
    "R005", "An ingress open to every network of its nodes", "nothing asks who sends a request",
    "listen on 127.0.0.1, or put a gateway with authentication in front of it",
)  # fmt: skip
NO_HOST = error(
    "R006", "A host that is no address", "the ingress cannot listen there",
    "write an address or a name of the node alone, as 127.0.0.1 or 0.0.0.0",
)  # fmt: skip
NO_EXPORTER = error(
    "R009", "A tracing exporter that cannot be used", "no part of Ray Serve sends a trace, and only its logs say so",
    "name a function without parameters that answers a list of OpenTelemetry's span processors",
)  # fmt: skip
SMALL_STORE = error(
    "P116", "An object store smaller than Ray's least", "Ray refuses to start", "write 75MiB or more, as 512MiB"
)
NO_CAPACITY = warning(
    "R023", "A target capacity of nothing", "Ray Serve ends every replica, Triton's too", "write how much shall run"
)
IMAGE = error(
    "R024", "A container image together with other things to prepare", "Ray refuses the application",
    "put them into the image",
)  # fmt: skip
UNUSED_LOGGING = warning(
    "R070", "Logging of an application whose parts all have their own", "no part ever uses it",
    "remove it, or logging of the parts that shall have this",
)  # fmt: skip

# ray._private.ray_constants.OBJECT_STORE_MINIMUM_MEMORY_BYTES of 2.60.
SMALLEST_STORE = 75 * 2**20
# What plain `ray start --head` and the Linux kernel hand out by default, first and last.
_TAKEN = {
    (10001, 10001): "Ray's client server",
    (10002, 19999): "workers of a plain `ray start`",
    (32768, 60999): "every connection of this machine",
}
# Where to begin to look for a port that is free, by the place that wants one.
_USUAL: dict[Place, int] = {
    ("service", "port"): 8000,
    ("service", "grpc", "port"): 9000,
    ("ray", "port"): 6379,
    ("ray", "dashboard_port"): 8265,
}
# A host's name after RFC 1123, whose last part cannot be a number: what looks like an address is one.
_HOST_NAME = re.compile(
    r"(?=.{1,253}$)([A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.)*(?![0-9]+$)[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
)


def _ports(spec: Spec) -> Iterator[tuple[Place, int]]:
    yield ("service", "port"), spec.service.port
    if spec.service.grpc is not UNKNOWN:
        yield ("service", "grpc", "port"), spec.service.grpc.port
    yield ("ray", "port"), spec.ray.port
    yield ("ray", "dashboard_port"), spec.ray.dashboard_port


@of_the_spec
def same_port(spec: Spec) -> Faults:
    known = [(place, port) for place, port in _ports(spec) if port is not UNKNOWN]
    for index, (place, port) in enumerate(known):
        for other, taken in known[:index]:
            if port == taken:
                yield SAME_PORT.at(place, f"{'.'.join(map(str, other))} is {port} too")


@of_the_spec
def taken_port(spec: Spec) -> Faults:
    known = [(place, port) for place, port in _ports(spec) if port is not UNKNOWN]
    used = {port for _, port in known}
    for place, port in known:
        for (first, last), user in _TAKEN.items():
            if first <= port <= last:
                span = f"{first}" if first == last else f"{first} to {last}"
                free = next(each for each in count(_USUAL[place]) if each not in used)
                used.add(free)
                remedy = f"use a port that nobody hands out, as {free}"
                yield TAKEN_PORT.at(place, f"{port} may be taken by {user} ({span})", remedy=remedy)


@of_the_spec
def upload(spec: Spec) -> Faults:
    if spec.service.upload_limit > spec.service.request_limit:
        yield UPLOAD.at(("service", "upload_limit"), "a request could never be that large")


@of_the_spec
def small_store(spec: Spec) -> Faults:
    if (size := spec.ray.object_store) < SMALLEST_STORE:
        yield SMALL_STORE.at(("ray", "object_store"), f"it is {show_size(size)}")


@of_the_spec
def host(spec: Spec) -> Faults:
    given, place = spec.service.host, ("service", "host")
    if address := _address(given):
        if address.is_unspecified:
            yield OPEN.at(place, f"{given} is every interface")
    elif _HOST_NAME.fullmatch(given) is None:
        bare = given[1:-1] if given[:1] + given[-1:] == "[]" else given.rpartition(":")[0]
        remedy = f"write {bare} alone" if _address(bare) or _HOST_NAME.fullmatch(bare) else None
        yield NO_HOST.at(place, f"{given!r} is no address", remedy=remedy)


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None


@of_the_spec
def exporter(spec: Spec) -> Faults:
    path = spec.ray.tracing.exporter if spec.ray.tracing is not None else None
    if path is None:
        return
    place = ("ray", "tracing", "exporter")
    if reason := why_not_loaded(path):
        yield NO_EXPORTER.at(place, f"{path} cannot be loaded: {reason}")
    elif not _takes_nothing(load_code(path)):
        yield NO_EXPORTER.at(place, f"{path} is not a function without parameters")


def _takes_nothing(code: object) -> bool:
    if not inspect.isfunction(code):
        return False
    taken = parameters_of(code)
    return taken is None or not (taken.names or taken.others)


@of_the_spec
def capacity(spec: Spec) -> Faults:
    if spec.ray.target_capacity == 0:
        yield NO_CAPACITY.at(("ray", "target_capacity"), "0% of the replicas are none")


@of_the_spec
def image(spec: Spec) -> Faults:
    given = spec.ray.runtime_environment
    others = {"working_dir": given.working_dir, "py_modules": given.py_modules, "pip": given.pip}
    for name, value in others.items():
        if value and given.image is not None:
            yield IMAGE.at(("ray", "runtime_environment", name), f"the processes run in {given.image}")


@of_the_spec
def unused_logging(spec: Spec) -> Faults:
    if spec.ray.application_logging is None:
        return
    parts = [profile.triton for profile in spec.profiles.values()] + [replicas for _, replicas in all_replicas(spec)]
    if all(part.logging is not None for part in parts):
        yield UNUSED_LOGGING.at(("ray", "application_logging"), "Triton, the ingress and all stages have logging")
