"""How what Ray Serve takes is written, and what it is answered where that is wrong."""

from __future__ import annotations

from typing import Any

import pytest

from tests.rules.case import report
from tests.rules.ray_cases import cluster, ingress, scaling, service

WRONG: dict[str, tuple[dict[str, Any], str, str]] = {
    "a share without its sign": (
        ingress(rolling_update={"at_once": 0.2}),
        "ingress.rolling_update.at_once",
        "write a number up to 100 and its sign",
    ),
    "more than all": (ingress(rolling_update={"at_once": "120%"}), "ingress.rolling_update.at_once", "percent"),
    "nothing at once": (ingress(rolling_update={"at_once": "0%"}), "ingress.rolling_update.at_once", "more than 0"),
    "half a percent of surge": (ingress(rolling_update={"surge": "0.5%"}), "ingress.rolling_update.surge", "whole"),
    "a health check without a period": (
        ingress(health_check_period="0s"),
        "ingress.health_check_period",
        "more than 0",
    ),
    "no look back": (scaling(look_back="0s"), "ingress.autoscaling.look_back", "more than 0"),
    "a connection kept for parts of a second": (
        service(http={"keep_alive": "1500ms"}),
        "service.http.keep_alive",
        "seconds",
    ),
    "a root path with a slash at its end": (service(http={"root_path": "/kyc/"}), "service.http.root_path", "as /kyc"),
    "a certificate without its key": (
        service(tls={"certificate": "/etc/tls.crt"}),
        "service.tls.key",
        "key is missing",
    ),
    "a key by half its path": (
        service(tls={"certificate": "/etc/tls.crt", "key": "tls.key"}),
        "service.tls.key",
        "a file's whole path",
    ),
    "a gRPC port of the system's own": (service(grpc={"port": 443}), "service.grpc.port", "1024"),
    "what Ray's proxies were told": (service(request_timeout_s=12), "service.request_timeout_s", "sla"),
    "what they were told before": (service(http={"request_timeout": 12}), "service.http.request_timeout", "write sla"),
    "where Ray's proxies run": (
        cluster(proxy_location="HeadOnly"),
        "ray.proxy_location",
        "the ingress listens itself, and Ray Serve's proxies are off; write its address in service.host",
    ),
    "another Python for the replicas": (
        cluster(runtime_environment={"conda": "kyc"}),
        "ray.runtime_environment.conda",
        "it would be another Python",
    ),
    "a router for what comes past Ray Serve": (ingress(router="a:B"), "ingress.router", "there is no key"),
    "a level of no logger": (cluster(logging={"level": "verbose"}), "ray.logging.level", "is none of"),
    "an attribute of no log record": (cluster(logging={"attributes": ["user"]}), "ray.logging.attributes.0", "is none"),
    "a status of Ray's own choice": (ingress(backpressure=500), "ingress.backpressure", "is none of"),
    "a folder that only this machine has": (
        cluster(runtime_environment={"working_dir": "./project"}),
        "ray.runtime_environment.working_dir",
        "the address of an archive",
    ),
    "no time to prepare a node": (
        cluster(runtime_environment={"setup_timeout": "0s"}),
        "ray.runtime_environment.setup_timeout",
        "more than 0",
    ),
    "a failure policy of nobody's": (
        ingress(gang={"size": 2, "failure_policy": "restart"}),
        "ingress.gang.failure_policy",
        "is none of",
    ),
    "a label with a space": (ingress(node={"labels": {"pool": "a b"}}), "ingress.node.labels.pool", "a label's value"),
    "a gang of one": (ingress(gang={"size": 1}), "ingress.gang.size", "at least 2"),
    "more of a node than Ray counts": (ingress(max_per_node=101), "ingress.max_per_node", "at most 100"),
    "a user_config of the ingress": (ingress(user_config={}), "ingress.user_config", "there is no key"),
    "Ray's own word for a count": (ingress(num_replicas=2), "ingress.num_replicas", "count"),
}


@pytest.mark.parametrize(("patch", "place", "says"), WRONG.values(), ids=WRONG)
def test_what_ray_would_refuse_or_misread_is_found_as_the_spec_is_read(
    patch: dict[str, Any], place: str, says: str
) -> None:
    messages = [finding.message for finding in report(patch).errors if finding.place == place]
    assert len(messages) == 1, report(patch).findings
    assert says in messages[0]
