"""Ray Serve: what the service and the cluster are told, and how the processes of each part are run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tests.rules.case import GONE, Case
from tests.rules.pipeline_cases import served

FIXED: dict[str, Any] = {"autoscaling": GONE, "count": 2}
HERE = "tests.rules.ray_code"


@dataclass(frozen=True)
class RayCase(Case):
    """`at_once`: what Ray Serve answers to the unchecked configuration. `later`: what it says when it applies it, after
    it has answered 200. `silent`: it takes it without a word."""

    at_once: str | None = None
    later: str | None = None
    silent: bool = False


def ingress(**changes: Any) -> dict[str, Any]:
    return {"ingress": changes}


def scaling(**changes: Any) -> dict[str, Any]:
    return ingress(autoscaling=changes)


def service(**changes: Any) -> dict[str, Any]:
    return {"service": changes}


def cluster(**changes: Any) -> dict[str, Any]:
    return {"ray": changes}


def of_stage(**changes: Any) -> dict[str, Any]:
    """Changes of the processes of a stage."""
    return served({"stages": {"echo": {"replicas": changes}}})


def live(user_config: Any, code: str = f"{HERE}:Live") -> dict[str, Any]:
    return served({"stages": {"echo": {"code": code, "replicas": {"user_config": user_config}}}})


def version(version: str, patch: dict[str, Any] | None = None) -> dict[str, Any]:
    return {"profiles": {"embedded": {"ray_version": version}}, **(patch or {})}


_SERVICE = {
    "a port twice": RayCase("R001", cluster(port=8000), "ray.port", "service.port is 8000 too", silent=True),
    "a gRPC port that is the dashboard's": RayCase(
        "R001", service(grpc={"port": 8265}), "ray.dashboard_port", "service.grpc.port is 8265 too", silent=True
    ),
    "HTTP on the gRPC port that nobody wrote": RayCase(
        "R001", service(port=9000), "service.grpc.port", "service.port is 9000 too", silent=True
    ),
    "an upload limit above the request limit": RayCase(
        "R002", service(upload_limit="3MiB"), "service.upload_limit", silent=True
    ),
    "a port of Ray's client server": RayCase(
        "R004", service(grpc={"port": 10001}), "service.grpc.port", "Ray's client server", silent=True
    ),
    "a port that the system hands out": RayCase(
        "R004", service(port=40123), "service.port", "every connection of this machine (32768 to 60999)", silent=True
    ),
    "an ingress open to every network": RayCase("R005", service(host="0.0.0.0"), "service.host", silent=True),
    "an ingress open to every network of IPv6": RayCase("R005", service(host="::"), "service.host", silent=True),
    "a host that is a URL": RayCase("R006", service(host="http://localhost"), "service.host", silent=True),
    "a host with a port": RayCase(
        "R006", service(host="0.0.0.0:80"), "service.host", "write 0.0.0.0 alone", silent=True
    ),
    "a host that is an address in brackets": RayCase(
        "R006", service(host="[::1]"), "service.host", "write ::1 alone", silent=True
    ),
    "a host that is nearly an address": RayCase("R006", service(host="999.1.1.1"), "service.host", silent=True),
    "a tracing exporter that is not there": RayCase(
        "R009", cluster(tracing={"exporter": f"{HERE}:nothing"}), "ray.tracing.exporter", silent=True
    ),
    "a tracing exporter with a parameter": RayCase(
        "R009",
        cluster(tracing={"exporter": f"{HERE}:as_many"}),
        "ray.tracing.exporter",
        "without parameters",
        silent=True,
    ),
    "no capacity at all": RayCase("R023", cluster(target_capacity="0%"), "ray.target_capacity", silent=True),
    "an image with requirements": RayCase(
        "R024",
        cluster(runtime_environment={"image": "kyc:1", "pip": ["numpy"]}),
        "ray.runtime_environment.pip",
        silent=True,
    ),
    "logging of an application whose parts all have their own": RayCase(
        "R070",
        {
            **cluster(application_logging={"level": "debug"}),
            **ingress(logging={"level": "info"}),
            "profiles": {"embedded": {"triton": {"logging": {"level": "error"}}}},
        },
        "ray.application_logging",
        silent=True,
    ),
}
_SCALING = {
    "bounds the wrong way round": RayCase(
        "R010",
        scaling(min_replicas=3),
        "ingress.autoscaling.max_replicas",
        "2 is less than 3",
        later="must be greater than or equal to min_replicas",
    ),
    "a target above the limit": RayCase(
        "R011",
        ingress(max_ongoing_requests=3),
        "ingress.autoscaling.target_ongoing_requests",
        "4 is more than 3",
        silent=True,
    ),
    "a stage's target above its limit": RayCase(
        "R011",
        of_stage(max_ongoing_requests=3),
        "stages.echo.replicas.autoscaling.target_ongoing_requests",
        silent=True,
    ),
    "more at first than at the most": RayCase(
        "R012",
        scaling(initial_replicas=3),
        "ingress.autoscaling.initial_replicas",
        "3 is not within 1 and 2",
        later="greater than or equal to initial_replicas",
    ),
    "fewer at first than at the least": RayCase(
        "R012",
        scaling(initial_replicas=0),
        "ingress.autoscaling.initial_replicas",
        later="less than or equal to initial_replicas",
    ),
    "no process when idle": RayCase(
        "R013",
        of_stage(autoscaling={"min_replicas": 0}),
        "stages.echo.replicas.autoscaling.min_replicas",
        "the shortest SLA 8s",
        silent=True,
    ),
    "no ingress when idle": RayCase("R025", scaling(min_replicas=0), "ingress.autoscaling.min_replicas", silent=True),
    "a delay to zero without zero": RayCase(
        "R014",
        scaling(downscale_to_zero_delay="1h"),
        "ingress.autoscaling.downscale_to_zero_delay",
        silent=True,
    ),
    "a look back of one measurement": RayCase(
        "R015",
        scaling(look_back="10s"),
        "ingress.autoscaling.look_back",
        "look back is 10s, the interval 10s",
        silent=True,
    ),
    "an interval longer than the usual look back": RayCase(
        "R015", scaling(metrics_interval="31s"), "ingress.autoscaling.metrics_interval", silent=True
    ),
    "a count and autoscaling": RayCase(
        "R016", ingress(count=2), "ingress.count", at_once="Manually setting num_replicas is not allowed"
    ),
    "neither count nor autoscaling": RayCase("R016", ingress(autoscaling=GONE), "ingress"),
    "a hasty end": RayCase(
        "R017", scaling(downscale_delay="1s"), "ingress.autoscaling.downscale_delay", "upscale_delay 5s", silent=True
    ),
    "a policy that is not there": RayCase(
        "R018", scaling(policy=f"{HERE}:nothing"), "ingress.autoscaling.policy", at_once="nothing"
    ),
    "a policy that is a number": RayCase(
        "R018", scaling(policy=f"{HERE}:NOT_CALLABLE"), "ingress.autoscaling.policy", "cannot be called"
    ),
    "arguments of a policy that is a function": RayCase(
        "R018",
        scaling(policy={"code": f"{HERE}:as_many", "arguments": {"factor": 2}}),
        "ingress.autoscaling.policy.arguments",
        silent=True,
    ),
    "a policy for all that is not there": RayCase(
        "R018", cluster(autoscaling_policy=f"{HERE}:nothing"), "ray.autoscaling_policy", silent=True
    ),
    "a router that is not there": RayCase(
        "R019", of_stage(router=f"{HERE}:nothing"), "stages.echo.replicas.router", at_once="nothing"
    ),
    "a router that is none": RayCase(
        "R019", of_stage(router=f"{HERE}:Live"), "stages.echo.replicas.router", "is no request router"
    ),
    "autoscaling beside an external scaler": RayCase(
        "R020", cluster(external_scaler=True), "ingress.autoscaling", at_once="external_scaler_enabled is set to True"
    ),
    "a policy for an application that is never scaled": RayCase(
        "R021",
        {**cluster(autoscaling_policy=f"{HERE}:for_all"), "ingress": FIXED},
        "ray.autoscaling_policy",
        silent=True,
    ),
    "two policies": RayCase(
        "R022",
        {**cluster(autoscaling_policy=f"{HERE}:for_all"), **scaling(policy=f"{HERE}:as_many")},
        "ingress.autoscaling.policy",
        silent=True,
    ),
}
_REPLICAS = {
    "one GPU and a half": RayCase("R030", ingress(gpus=1.5), "ingress.gpus", "1.5 GPUs are neither", silent=True),
    "one GPU and a half for Triton": RayCase(
        "R030",
        {"profiles": {"embedded": {"device": "gpu", "triton": {"gpus": 1.5}}}},
        "profiles.embedded.triton.gpus",
        silent=True,
    ),
    "a GPU for a stage": RayCase(
        "R031",
        of_stage(gpus=0.5),
        "stages.echo.replicas.gpus",
        "holds 0.5 of a GPU",
        silent=True,
    ),
    "a resource called CPU": RayCase(
        "R032",
        ingress(node={"resources": {"CPU": 1}}),
        "ingress.node.resources.CPU",
        later="Use the 'num_cpus' and 'num_gpus' keyword",
    ),
    "an accelerator with the maker's name": RayCase(
        "R033",
        ingress(node={"accelerator_type": "A10"}),
        "ingress.node.accelerator_type",
        "did you mean A10",
        silent=True,
    ),
    "an empty bundle": RayCase(
        "R034", ingress(placement={"beside": [{}]}), "ingress.placement.beside.0", later="cannot be an empty dictionary"
    ),
    "a limit per node with placement": RayCase(
        "R035",
        ingress(max_per_node=1, placement={"beside": [{"cpus": 1}]}),
        "ingress.max_per_node",
        at_once="Setting max_replicas_per_node is not allowed",
    ),
    "a limit per node with gangs": RayCase(
        "R035",
        ingress(**FIXED, max_per_node=1, gang={"size": 2}),
        "ingress.max_per_node",
        at_once="Setting max_replicas_per_node is not allowed",
    ),
    "a count that is no whole gangs": RayCase(
        "R036",
        ingress(**{**FIXED, "count": 3}, gang={"size": 2}),
        "ingress.count",
        "3 is not a multiple of 2",
        at_once="must be a multiple of gang_size",
    ),
    "a bound that is no whole gangs": RayCase(
        "R036",
        ingress(gang={"size": 2}),
        "ingress.autoscaling.min_replicas",
        "1 is not a multiple of 2",
        at_once="multiple of gang_size",
    ),
    "a gang whose replicas end one by one": RayCase(
        "R071",
        ingress(**FIXED, gang={"size": 2, "failure_policy": "restart_replica"}),
        "ingress.gang.failure_policy",
        at_once="RESTART_REPLICA policy is not yet implemented",
    ),
    "two strategies": RayCase(
        "R037",
        ingress(**FIXED, gang={"size": 2}, placement={"beside": [{"cpus": 1}], "strategy": "spread"}),
        "ingress.placement.strategy",
        at_once="Setting placement_group_strategy is not allowed",
    ),
    "a shutdown shorter than the SLA": RayCase(
        "R040",
        ingress(shutdown_timeout="7s"),
        "ingress.shutdown_timeout",
        "it is 7s, and a request may take 8s",
        silent=True,
    ),
    "a drain wait as long as the shutdown": RayCase(
        "R041", of_stage(drain_wait="8s"), "stages.echo.replicas.drain_wait", "after 8s it is killed", silent=True
    ),
    "an ingress that is killed before it is told to drain": RayCase(
        "R041",
        ingress(drain_wait="9s", shutdown_timeout="9s"),
        "ingress.drain_wait",
        "after 9s it is killed",
        silent=True,
    ),
    "all replicas at once": RayCase(
        "R042", ingress(rolling_update={"at_once": "100%"}), "ingress.rolling_update.at_once", silent=True
    ),
    "a hasty health check": RayCase(
        "R043", ingress(health_check_timeout="999ms"), "ingress.health_check_timeout", silent=True
    ),
    "a user_config that nothing takes": RayCase(
        "R060", live({"most": 3}, "tests.rules.stages:Echo"), "stages.echo.replicas.user_config", silent=True
    ),
    "a user_config that is refused": RayCase(
        "R061", live({"most": "many"}), "stages.echo.replicas.user_config.most", silent=True
    ),
}
_VERSIONS = {
    "a surge that Ray does not know": RayCase(
        "R050",
        version("2.59.0", ingress(rolling_update={"surge": "50%"})),
        "ingress.rolling_update.surge",
        "Ray 2.59.0 of profile embedded has no max_surge_percent, which came with 2.60.0",
    ),
    "no surge, said to a Ray that does not know it": RayCase(
        "R050", version("2.59.0", ingress(rolling_update={"surge": "0%"})), "ingress.rolling_update.surge"
    ),
    "tracing that Ray does not know": RayCase("R050", version("2.58.0", cluster(tracing={})), "ray.tracing"),
    "an attribute of the application's logs that Ray does not know": RayCase(
        "R050",
        version("2.43.0", cluster(application_logging={"attributes": ["process"]})),
        "ray.application_logging.attributes",
        "no logging_config.additional_log_standard_attrs, which came with 2.44.0",
    ),
    "gangs that Ray does not know": RayCase(
        "R050",
        version("2.54.0", ingress(**FIXED, gang={"size": 2, "failure_policy": "restart_gang"})),
        "ingress.gang",
    ),
    "a router that Ray does not know": RayCase(
        "R050", version("2.47.0", of_stage(router=f"{HERE}:First")), "stages.echo.replicas.router"
    ),
    "labels of Triton's node that Ray does not know": RayCase(
        "R050",
        {"profiles": {"embedded": {"ray_version": "2.53.0", "triton": {"node": {"labels": {"pool": "gpu"}}}}}},
        "profiles.embedded.triton.node.labels",
    ),
    "labels of a bundle that Ray does not know": RayCase(
        "R050",
        version("2.53.0", ingress(placement={"beside": [{"cpus": 1, "labels": {"pool": "gpu"}}]})),
        "ingress.placement.beside.0.labels",
    ),
    "an external scaler that Ray does not know": RayCase(
        "R050", version("2.52.0", {**cluster(external_scaler=True), "ingress": FIXED}), "ray.external_scaler"
    ),
    "a folder on every node that Ray does not know": RayCase(
        "R050",
        version("2.59.0", cluster(runtime_environment={"working_dir": "local:///srv/project"})),
        "ray.runtime_environment.working_dir",
    ),
    "a Ray without backpressure": RayCase(
        "R051", version("2.57.1"), "profiles.embedded.ray_version", "Ray 2.57.1 has no backpressure_config"
    ),
    "a Ray of tomorrow": RayCase("R052", version("2.61.0"), "profiles.embedded.ray_version"),
}
CASES: dict[str, RayCase] = {**_SERVICE, **_SCALING, **_REPLICAS, **_VERSIONS}

# A spec that says all that can be said, and breaks no rule that is an error.
EVERYTHING: dict[str, Any] = {
    **served(
        {
            "stages": {
                "echo": {
                    "code": f"{HERE}:Live",
                    "replicas": {
                        "autoscaling": {
                            "min_replicas": 0,
                            "initial_replicas": 1,
                            "metrics_interval": "5s",
                            "look_back": "1min",
                            "aggregation": "max",
                            "downscale_to_zero_delay": "1h",
                            "upscaling_factor": 0.5,
                            "downscaling_factor": 0.25,
                            "policy": {"code": f"{HERE}:Doubling", "arguments": {"factor": 3}},
                        },
                        "environment": {"OMP_NUM_THREADS": "1"},
                        "node": {
                            "labels": {"pool": "cpu", "zone": "in(a, b)"},
                            "fallback": [{"pool": "!gpu"}],
                            "accelerator_type": "A10G",
                            "resources": {"scanner": 0.5},
                        },
                        "placement": {
                            "beside": [
                                {"cpus": 1, "memory": "1GiB", "resources": {"disk": 2}, "labels": {"pool": "io"}}
                            ],
                            "strategy": "strict_spread",
                        },
                        "backpressure": {"status": 503, "retry_after": "3s"},
                        "router": {
                            "code": f"{HERE}:First",
                            "arguments": {"warm": True},
                            "stats_period": "1s",
                            "stats_timeout": "2s",
                            "backoff": {"first": "10ms", "factor": 1.5, "longest": "1s"},
                        },
                        "health_check_period": "3s",
                        "health_check_timeout": "4s",
                        "drain_wait": "1s",
                        "shutdown_timeout": "9s",
                        "rolling_update": {"at_once": "50%", "surge": "25%"},
                        "logging": {
                            "level": "debug",
                            "encoding": "json",
                            "access_log": False,
                            "attributes": ["processName"],
                        },
                        "user_config": {"most": 3},
                    },
                }
            }
        }
    ),
    "service": {
        "http": {"root_path": "/kyc", "keep_alive": "30s"},
        "grpc": {"port": 9001},
        "tls": {"certificate": "/etc/tandem/tls.crt", "key": "/etc/tandem/tls.key"},
    },
    "ray": {
        "logging": {"level": "warning"},
        "application_logging": {"encoding": "json"},
        "tracing": {"exporter": f"{HERE}:spans", "sampling": "50%"},
        "controller_environment": {"RAY_SERVE_CONTROL_LOOP_INTERVAL_S": "1"},
        "runtime_environment": {
            "environment": {"MALLOC_ARENA_MAX": "2"},
            "working_dir": "s3://bucket/project.zip",
            "py_modules": ["local:///srv/stages"],
            "pip": ["numpy>=2.1"],
            "setup_timeout": "20min",
        },
        "target_capacity": "50%",
    },
    "ingress": {**FIXED, "count": 4, "gang": {"size": 2, "strategy": "spread", "failure_policy": "restart_gang"}},
    "profiles": {"embedded": {"triton": {"max_per_node": 1, "rolling_update": {"surge": "100%"}}}},
}
