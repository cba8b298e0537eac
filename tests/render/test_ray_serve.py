"""serve_config.yaml: what it says, what Ray Serve 2.60 makes of it, and what a change of it does."""

from __future__ import annotations

import copy
import typing
from typing import Any

import pytest
import yaml
from pydantic import BaseModel
from ray.runtime_env import RuntimeEnv, RuntimeEnvConfig
from ray.serve import config as ray_config
from ray.serve import schema as ray_schema
from ray.serve._private.application_state import override_deployment_info
from ray.serve._private.config import DeploymentConfig, ReplicaConfig
from ray.serve._private.deploy_utils import get_app_code_version
from ray.serve._private.deployment_info import DeploymentInfo
from ray.serve._private.version import DeploymentVersion

from serve_app.render.changes import APPLICATION, CLUSTER, DEPLOYMENT, effect
from serve_app.render.ray_serve import render_serve_config, serve_config
from serve_app.spec import Spec, digest
from tests.rules.case import patched, report
from tests.rules.ray_cases import CASES, EVERYTHING, FIXED, HERE, RayCase, cluster, ingress, live, scaling, service

NOT_OFFERED = {
    "ServeDeploySchema.http_options": "the ingress listens by itself; the proxies are off",
    "ServeDeploySchema.grpc_options": "as http_options",
    "ServeApplicationSchema.host": "as http_options, of applications that are deployed alone",
    "ServeApplicationSchema.port": "as host",
    "DeploymentSchema.deployment_actors": "a stage is a plain class that knows nothing of Ray",
    "LoggingConfig.logs_dir": "the dashboard finds logs in Ray's own folder only",
    "AutoscalingConfig.smoothing_factor": "deprecated",
    "AutoscalingConfig.upscale_smoothing_factor": "deprecated",
    "AutoscalingConfig.downscale_smoothing_factor": "deprecated",
}
# Models of Ray's, all whose fields are left out with the field that has them.
WHOLLY_LEFT_OUT = {
    "ServeDeploySchema.http_options": ray_schema.HTTPOptionsSchema,
    "ServeDeploySchema.grpc_options": ray_schema.gRPCOptionsSchema,
    "DeploymentSchema.deployment_actors": ray_config.DeploymentActorConfig,
}
ENVIRONMENT_NOT_OFFERED = {
    "conda": "another Python, where neither Tandem nor the Triton beside it is installed",
    "container": "deprecated for image_uri",
    "excludes": "of a folder that is uploaded; Ray Serve takes addresses only",
    "java_jars": "for Java",
    "py_executable": "as conda",
    "uv": "installs what pip does",
    "worker_process_setup_hook": "a stage's constructor prepares what it needs",
    "_nsight": "a profiler's; not part of a deployment",
    "_rocprof_sys": "as _nsight",
    "_ray_release": "Ray's own",
    "_ray_commit": "Ray's own",
    "_inject_current_ray": "Ray's own",
    "config.eager_install": "of jobs; Ray Serve's replicas are started at once",
    "config.log_files": "Ray's own files say how it went",
}


MODELS: dict[str, type[BaseModel]] = {
    "": ray_schema.ServeDeploySchema,
    "controller_options": ray_config.ControllerOptions,
    "tracing_config": ray_schema.TracingConfig,
    "applications": ray_schema.ServeApplicationSchema,
    "deployments": ray_schema.DeploymentSchema,
    "ray_actor_options": ray_schema.RayActorOptionsSchema,
    "logging_config": ray_schema.LoggingConfig,
    "autoscaling_config": ray_config.AutoscalingConfig,
    "policy": ray_config.AutoscalingPolicy,
    "request_router_config": ray_config.RequestRouterConfig,
    "gang_scheduling_config": ray_config.GangSchedulingConfig,
    "backpressure_config": ray_config.BackpressureConfig,
}


class Code:
    async def reconfigure(self, user_config: Any) -> None: ...


def spec(patch: dict[str, Any]) -> Spec:
    return Spec.model_validate(patched(patch))


def by_name(config: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {deployment["name"]: deployment for deployment in config["applications"][0]["deployments"]}


def applied(config: dict[str, Any]) -> dict[str, DeploymentInfo]:
    """What Ray Serve's controller makes of a configuration that it has answered 200 to."""
    application = ray_schema.ServeDeploySchema.model_validate(copy.deepcopy(config)).applications[0]
    built = {
        name: DeploymentInfo(
            deployment_config=DeploymentConfig(),
            replica_config=ReplicaConfig.create(Code, placement_group_bundles=None),
            start_time_ms=0,
            deployer_job_id="",
            version="1",
        )
        for name in by_name(config)
    }
    return override_deployment_info(built, application)


def of_ray(condition: Any) -> list[Any]:
    cases = {name: case for name, case in CASES.items() if isinstance(case, RayCase) and condition(case)}
    return [pytest.param(case, id=name) for name, case in cases.items()]


@pytest.mark.parametrize("case", of_ray(lambda case: case.at_once))
def test_ray_serve_refuses_it_too(case: RayCase) -> None:
    with pytest.raises((ValueError, AttributeError, NotImplementedError), match=str(case.at_once)):
        ray_schema.ServeDeploySchema.model_validate(serve_config(spec(dict(case.patch))))


@pytest.mark.parametrize("case", of_ray(lambda case: case.later))
def test_ray_serve_finds_it_only_after_it_has_answered_that_all_is_well(case: RayCase) -> None:
    config = serve_config(spec(dict(case.patch)))
    ray_schema.ServeDeploySchema.model_validate(copy.deepcopy(config))
    with pytest.raises(ValueError, match=str(case.later)):
        applied(config)


@pytest.mark.filterwarnings("ignore:The `metrics_interval_s`:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:`look_back_period_s`:FutureWarning")
@pytest.mark.parametrize("case", of_ray(lambda case: case.silent))
def test_ray_serve_takes_it_without_a_word(case: RayCase) -> None:
    assert applied(serve_config(spec(dict(case.patch))))


def test_a_spec_that_says_nothing_of_it_is_left_to_rays_defaults() -> None:
    config = serve_config(spec({}))
    assert set(config) == {"proxy_location", "applications"}
    assert set(config["applications"][0]) == {"name", "route_prefix", "import_path", "args", "deployments"}
    assert by_name(config)["Ingress"] == {
        "name": "Ingress",
        "num_replicas": "auto",
        "max_ongoing_requests": 8,
        "graceful_shutdown_wait_loop_s": 0.0,
        "graceful_shutdown_timeout_s": 10.0,
        "autoscaling_config": {
            "min_replicas": 1,
            "max_replicas": 2,
            "target_ongoing_requests": 4,
            "upscale_delay_s": 5.0,
            "downscale_delay_s": 300.0,
            "policy": {"policy_function": "serve_app.http.scaling:by_requests"},
        },
        "user_config": {
            "max_ongoing_requests": 8,
            "max_queued_requests": 8,
            "status_code": 429,
            "retry_after_s": 1.0,
            "refuse_late": True,
            "work_within_s": {"/v2": 2.64},
            "tiers": [
                {"priority": 1},
                {"priority": 2},
            ],
        },
        "ray_actor_options": {"num_cpus": 0.1, "num_gpus": 0, "memory": 512 * 2**20},
    }


def test_a_spec_that_says_everything_is_a_configuration_that_ray_serve_applies() -> None:
    assert report(EVERYTHING).errors == []
    config = yaml.safe_load(render_serve_config(spec(EVERYTHING), ""))
    assert config == serve_config(spec(EVERYTHING))
    with pytest.warns(DeprecationWarning, match="metrics_interval_s"):
        assert list(applied(config)) == ["Triton", "echo", "Ingress"]
    assert by_name(config)["echo"] == {
        "name": "echo",
        "num_replicas": "auto",
        "max_ongoing_requests": 8,
        "max_queued_requests": 8,
        "backpressure_config": {"status_code": 503, "retry_after_s": 3.0},
        "health_check_period_s": 3.0,
        "health_check_timeout_s": 4.0,
        "graceful_shutdown_wait_loop_s": 1.0,
        "graceful_shutdown_timeout_s": 9.0,
        "autoscaling_config": {
            "min_replicas": 0,
            "initial_replicas": 1,
            "max_replicas": 2,
            "target_ongoing_requests": 4,
            "metrics_interval_s": 5.0,
            "look_back_period_s": 60.0,
            "aggregation_function": "max",
            "upscale_delay_s": 5.0,
            "downscale_delay_s": 300.0,
            "downscale_to_zero_delay_s": 3600.0,
            "upscaling_factor": 0.5,
            "downscaling_factor": 0.25,
            "policy": {"policy_function": f"{HERE}:Doubling", "policy_kwargs": {"factor": 3}},
        },
        "user_config": {"most": 3},
        "request_router_config": {
            "request_router_class": f"{HERE}:First",
            "request_router_kwargs": {"warm": True},
            "request_routing_stats_period_s": 1.0,
            "request_routing_stats_timeout_s": 2.0,
            "initial_backoff_s": 0.01,
            "backoff_multiplier": 1.5,
            "max_backoff_s": 1.0,
        },
        "logging_config": {
            "log_level": "DEBUG",
            "encoding": "JSON",
            "enable_access_log": False,
            "additional_log_standard_attrs": ["processName"],
        },
        "rolling_update_percentage": 0.5,
        "max_surge_percent": 25,
        "placement_group_bundles": [
            {"CPU": 0.1, "memory": 512 * 2**20, "scanner": 0.5, "accelerator_type:A10G": 0.001},
            {"CPU": 1, "memory": 2**30, "disk": 2},
        ],
        "placement_group_strategy": "STRICT_SPREAD",
        "placement_group_bundle_label_selector": [{"pool": "cpu", "zone": "in(a, b)"}, {"pool": "io"}],
        "ray_actor_options": {
            "num_cpus": 0.1,
            "num_gpus": 0,
            "memory": 512 * 2**20,
            "resources": {"scanner": 0.5},
            "accelerator_type": "A10G",
            "label_selector": {"pool": "cpu", "zone": "in(a, b)"},
            "fallback_strategy": [{"label_selector": {"pool": "!gpu"}}],
            "runtime_env": {"env_vars": {"OMP_NUM_THREADS": "1"}},
        },
    }
    assert {name: config[name] for name in config if name != "applications"} == {
        "proxy_location": "Disabled",
        "controller_options": {"runtime_env": {"env_vars": {"RAY_SERVE_CONTROL_LOOP_INTERVAL_S": "1"}}},
        "logging_config": {"log_level": "WARNING"},
        "tracing_config": {"enabled": True, "exporter_import_path": f"{HERE}:spans", "sampling_ratio": 0.5},
        "target_capacity": 50.0,
    }
    assert config["applications"][0]["runtime_env"] == {
        "env_vars": {"MALLOC_ARENA_MAX": "2"},
        "working_dir": "s3://bucket/project.zip",
        "py_modules": ["local:///srv/stages"],
        "pip": ["numpy>=2.1"],
        "config": {"setup_timeout_seconds": 1200},
    }
    assert config["applications"][0]["logging_config"] == {"encoding": "JSON"}
    assert by_name(config)["Ingress"]["gang_scheduling_config"] == {
        "gang_size": 2,
        "gang_placement_strategy": "SPREAD",
        "runtime_failure_policy": "RESTART_GANG",
    }


def test_what_is_said_once_is_written_out_wherever_it_holds() -> None:
    text = render_serve_config(spec(ingress(node={"labels": {"pool": "cpu"}}, placement={"beside": [{"cpus": 1}]})), "")
    assert text.count("pool: cpu") == 2
    assert not set("&*") & set(text)


def written(value: Any, model: str = "") -> set[str]:
    """The fields of Ray's models that a configuration has, as `DeploymentSchema.num_replicas`."""
    if isinstance(value, list):
        return set().union(*(written(each, model) for each in value))
    if not isinstance(value, dict) or model not in MODELS:
        return set()
    here = {f"{MODELS[model].__name__}.{field}" for field in value}
    return here.union(*(written(each, field) for field, each in value.items()))


def test_whatever_ray_serve_takes_can_be_said_unless_there_is_a_reason() -> None:
    for_all = {**cluster(autoscaling_policy=f"{HERE}:for_all"), **scaling(policy=f"{HERE}:as_many")}
    specs = [EVERYTHING, for_all, {**cluster(external_scaler=True), "ingress": FIXED}]
    said = set().union(*(written(serve_config(spec(each))) for each in specs))
    there = {f"{model.__name__}.{field}" for model in MODELS.values() for field in model.model_fields}
    assert there - said == set(NOT_OFFERED)


def inside(annotation: Any) -> set[type[BaseModel]]:
    """The models that a field's value can be, or has in it."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return {annotation}.union(*(inside(field.annotation) for field in annotation.model_fields.values()))
    return set().union(*map(inside, typing.get_args(annotation)))


def test_no_part_of_rays_configuration_is_forgotten() -> None:
    assert inside(ray_schema.ServeDeploySchema) == {*MODELS.values(), *WHOLLY_LEFT_OUT.values()}
    assert set(WHOLLY_LEFT_OUT) <= set(NOT_OFFERED)


def test_whatever_ray_can_prepare_on_a_node_can_be_said_unless_there_is_a_reason() -> None:
    environment = serve_config(spec(EVERYTHING))["applications"][0]["runtime_env"]
    image = serve_config(spec(cluster(runtime_environment={"image": "kyc:1"})))["applications"][0]["runtime_env"]
    there = RuntimeEnv.known_fields | {f"config.{field}" for field in RuntimeEnvConfig.known_fields}
    said = {*environment, *image, *(f"config.{field}" for field in environment["config"])}
    assert there - said == set(ENVIRONMENT_NOT_OFFERED)


@pytest.mark.parametrize("name", sorted({each.rpartition(".")[2] for each in {*NOT_OFFERED, *ENVIRONMENT_NOT_OFFERED}}))
def test_what_is_not_offered_is_answered_with_what_to_write_instead(name: str) -> None:
    if name.startswith("_"):
        return  # nobody can give it to Ray either
    (found,) = report(ingress(**{name: 1})).findings
    assert found.code == "Y010"
    assert (found.fault.consequence, found.fault.remedy) != (found.fault.rule.consequence, found.fault.rule.remedy)


def test_ray_takes_what_is_to_be_prepared() -> None:
    environment = serve_config(spec(EVERYTHING))["applications"][0]["runtime_env"]
    assert RuntimeEnv(**environment)["config"]["setup_timeout_seconds"] == 1200


def test_an_ingress_is_scaled_by_the_requests_it_counts_itself_unless_the_spec_has_a_policy() -> None:
    def policy(patch: dict[str, Any]) -> Any:
        return by_name(serve_config(spec(patch)))["Ingress"]["autoscaling_config"].get("policy")

    assert policy({}) == {"policy_function": "serve_app.http.scaling:by_requests"}
    assert policy(scaling(policy=f"{HERE}:as_many")) == {"policy_function": f"{HERE}:as_many"}
    assert policy(cluster(autoscaling_policy=f"{HERE}:for_all")) is None


def test_an_ingress_has_the_longest_sla_to_drain_and_triton_stays_for_it() -> None:
    deployments = by_name(serve_config(spec(ingress(drain_wait="5s"))))
    assert deployments["Ingress"]["graceful_shutdown_wait_loop_s"] == 5
    assert deployments["Ingress"]["graceful_shutdown_timeout_s"] == 5 + 8 + 2
    assert deployments["Triton"]["graceful_shutdown_wait_loop_s"] == 5 + 8


def test_a_fixed_count_is_no_autoscaling() -> None:
    ingress_of = by_name(serve_config(spec({"ingress": FIXED})))["Ingress"]
    assert ingress_of["num_replicas"] == 2
    assert "autoscaling_config" not in ingress_of


def test_triton_answers_every_process_that_may_ask_it_at_once() -> None:
    config = serve_config(spec({**EVERYTHING, "ingress": {**FIXED, "count": 5}}))
    assert by_name(config)["Triton"]["max_ongoing_requests"] == 5 + 2


def test_the_first_bundle_holds_what_the_replica_asks_for() -> None:
    """Ray compares CPUs, GPUs and resources, and cannot start the replica where it is the memory that does not fit."""
    placed = serve_config(spec(ingress(placement={"beside": [{"cpus": 2}]})))
    own, beside = by_name(placed)["Ingress"]["placement_group_bundles"]
    assert own == {"CPU": 0.1, "memory": 512 * 2**20}
    assert beside == {"CPU": 2}
    assert applied(placed)


UNMOVED = {
    "autoscaling": scaling(max_replicas=3),
    "limits": ingress(max_ongoing_requests=9, max_queued_requests=9),
    "backpressure": ingress(backpressure=503),
    "health": ingress(health_check_period="1s"),
    "shutdown": ingress(shutdown_timeout="9s"),
    "logging": ingress(logging={"level": "debug"}),
    "actor options": ingress(cpus=0.2, memory="1GiB", node={"labels": {"pool": "cpu"}}),
    "what a refused client is told": service(retry_after="2s"),
    "what is refused": service(admission={"adaptive": False, "refuse_late": False}),
    "floors and bounds of tiers": {"tiers": {"second": {"floor": "5%", "max_ongoing_requests": 2}}},
    "tracing": cluster(tracing={}),
    "Triton's replicas and memory": {"profiles": {"embedded": {"triton": {"memory": "2GiB", "replicas": 2}}}},
}
MOVED = {
    "a limit of uploads": service(upload_limit="2MiB"),
    "the port": service(port=8080),
    "the gRPC port": service(grpc={"port": 9001}),
    "how long a connection is kept": service(http={"keep_alive": "30s"}),
    "TLS": service(tls={"certificate": "/etc/tls.crt", "key": "/etc/tls.key"}),
    "an SLA": service(sla="7s"),
    "a model": {"models": {"m": {"max_batch": 4}}},
    "a tier": {"tiers": {"third": {"priority": 3}}},
    "Triton's time to start": {"profiles": {"embedded": {"triton": {"startup_timeout": "90s"}}}},
    "placement, which Ray does not compare": ingress(placement={"beside": [{"cpus": 1}]}),
    "a limit per node, which Ray does not compare": ingress(max_per_node=3),
}


@pytest.mark.parametrize("patch", UNMOVED.values(), ids=UNMOVED)
def test_what_ray_serve_applies_by_itself_leaves_the_application_as_it_is(patch: dict[str, Any]) -> None:
    assert digest(spec(patch)) == digest(spec({}))
    assert serve_config(spec(patch)) != serve_config(spec({}))


@pytest.mark.parametrize("patch", MOVED.values(), ids=MOVED)
def test_what_replicas_are_built_from_makes_another_application(patch: dict[str, Any]) -> None:
    assert digest(spec(patch)) != digest(spec({}))


def test_another_user_config_is_no_other_application_and_none_is() -> None:
    """Ray tells running replicas of every user_config, but never that there is none any more."""
    stage, other, none = (digest(spec(live(value))) for value in ({"most": 1}, {"most": 2}, None))
    assert stage == other
    assert stage != none


def test_another_profile_is_no_other_application() -> None:
    gpu = copy.deepcopy(patched({})["profiles"]["embedded"]) | {"device": "gpu"}
    assert digest(spec({"profiles": {"gpu": gpu}})) == digest(spec({}))


@pytest.mark.parametrize(
    ("table", "model"),
    [
        (CLUSTER, ray_schema.ServeDeploySchema),
        (APPLICATION, ray_schema.ServeApplicationSchema),
        (DEPLOYMENT, ray_schema.DeploymentSchema),
    ],
    ids=["cluster", "application", "deployment"],
)
def test_the_effect_of_every_field_is_known(table: dict[str, str], model: type[BaseModel]) -> None:
    assert set(table) == set(model.model_fields) - {"applications", "deployments"}


CHANGES: dict[str, Any] = {
    "num_replicas": 3,
    "max_ongoing_requests": 9,
    "max_queued_requests": 9,
    "backpressure_config": {"status_code": 503},
    "user_config": {"a": 1},
    "graceful_shutdown_wait_loop_s": 5,
    "graceful_shutdown_timeout_s": 5,
    "health_check_period_s": 5,
    "health_check_timeout_s": 5,
    "logging_config": {"log_level": "DEBUG"},
    "rolling_update_percentage": 0.5,
    "max_surge_percent": 50,
    "ray_actor_options": {"num_cpus": 2},
    "gang_scheduling_config": {"gang_size": 2},
    "request_router_config": {"max_backoff_s": 1},
    "deployment_actors": [{"name": "a", "actor_class": "builtins:object"}],
    "autoscaling_config": {"min_replicas": 1, "max_replicas": 2},
}


@pytest.mark.parametrize(("field", "value"), CHANGES.items(), ids=CHANGES)
def test_the_effect_of_a_change_is_what_ray_serve_itself_works_out(field: str, value: Any) -> None:
    def configured(options: dict[str, Any]) -> dict[str, Any]:
        return {"applications": [{"import_path": "a:b", "deployments": [{"name": "d", **options}]}]}

    base = {} if field == "autoscaling_config" else {"num_replicas": 2}
    before, after = configured(base), configured({**base, field: value})
    versions = {
        get_app_code_version(ray_schema.ServeDeploySchema.model_validate(copy.deepcopy(config)).applications[0])
        for config in (before, after)
    }
    old, new = (_version(applied(config)["d"]) for config in (before, after))
    wanted = (
        "restarts the application"
        if len(versions) == 2
        else "restarts the deployment"
        if old.requires_actor_restart(new)
        else "in place"
    )
    assert effect(("applications", 0, "deployments", "d", field)) == wanted


def _version(info: DeploymentInfo) -> DeploymentVersion:
    return DeploymentVersion("1", info.deployment_config, info.replica_config.ray_actor_options)


def test_bounds_change_in_place_and_policies_do_not() -> None:
    place = ("applications", 0, "deployments", "faces", "autoscaling_config")
    assert effect((*place, "max_replicas")) == "in place"
    assert effect((*place, "policy", "policy_function")) == "restarts the application"
    assert effect(place) == "restarts the application"


def test_what_is_read_at_the_start_needs_a_start() -> None:
    assert effect(("proxy_location",)) == "needs a new start of Serve"
    assert effect(("applications", 0, "args", "spec")) == "restarts the application"
    assert effect(("applications", 0, "deployments", "faces")) == "restarts the application"
