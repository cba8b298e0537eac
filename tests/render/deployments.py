"""Everything of a spec that is not Triton's own, at random: processes, stages, pipelines, profiles and the cluster."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from serve_app.spec.findings import RULES
from tests.render.models import NATIVE
from tests.render.values import PLAIN, TEXTS, WORDS, Draw, durations, fractions, given, percents, plain, seconds, sizes

CODE = "tests.render.stages:Anything"
POLICIES = st.sampled_from(["tests.rules.ray_code:as_many", {"code": "tests.rules.ray_code:Doubling"}]) | plain(
    code=st.just("tests.rules.ray_code:Doubling"), arguments=plain(factor=st.integers(1, 3))
)
ROUTERS = st.just("tests.rules.ray_code:First") | given(
    code=st.just("tests.rules.ray_code:First"),
    arguments=st.dictionaries(WORDS, PLAIN, max_size=2),
    stats_period=seconds(1, 20),
    stats_timeout=seconds(1, 60),
    backoff=given(first=durations(1000, 10**5), factor=fractions(1.5, 4), longest=durations(10**6, 10**7)),
)
LABEL_VALUES = st.sampled_from(["eu-west", "!spot", "in(a, b)", "!in(a,b)", "A.1_b"])
LABELS = st.dictionaries(st.sampled_from(["region", "example.com/pool", "a.b_c"]), LABEL_VALUES, max_size=2)
RESOURCES = st.dictionaries(st.sampled_from(["disk", "R-1", "licence seats"]), fractions(0.001, 4), max_size=2)
ENVIRONMENT = st.dictionaries(st.from_regex(r"[A-Z_][A-Z0-9_]{0,5}", fullmatch=True), TEXTS, max_size=2)
NODE = given(
    labels=LABELS,
    fallback=st.lists(LABELS, max_size=2),
    accelerator_type=st.sampled_from(["T4", "A100-80G"]),
    resources=RESOURCES,
)
LOGGING = given(
    level=st.sampled_from(["debug", "info", "warning", "error", "critical"]),
    encoding=st.sampled_from(["text", "json"]),
    access_log=st.booleans(),
    attributes=st.lists(st.sampled_from(["name", "threadName", "levelno"]), unique=True, max_size=2),
)
UPDATE = given(at_once=percents(), surge=st.integers(0, 100).map(lambda number: f"{number}%"))
AMOUNTS = st.integers(0, 4) | fractions(0.001, 1)
BUNDLE = st.fixed_dictionaries(
    {"cpus": st.sampled_from([1, 0.5])},
    optional={"gpus": st.sampled_from([0, 1]), "memory": sizes(0, 100), "resources": RESOURCES, "labels": LABELS},
)
NEWEST = "2.64.0"
CERTIFICATE = "/etc/tandem/tls"


@dataclass(frozen=True)
class Cluster:
    """What holds for all parts together: who decides how many of them there are."""

    policy_for_all: bool
    external: bool


@st.composite
def autoscalings(draw: Draw, cluster: Cluster, least: int, ongoing: int, group: int) -> dict[str, Any]:
    """`group`: what all counts are multiples of."""
    counts = sorted(draw(st.lists(st.integers(least, 8), min_size=3, max_size=3)))
    fewest, first, most = (count * group for count in counts)
    entry: dict[str, Any] = {
        "min_replicas": fewest,
        "max_replicas": max(most, group),
        "target_ongoing_requests": draw(st.integers(1, ongoing) | fractions(0.1, ongoing)),
    }
    entry |= draw(
        given(
            initial_replicas=st.just(first),
            metrics_interval=seconds(1, 10),
            look_back=seconds(11, 100),
            aggregation=st.sampled_from(["mean", "max", "min"]),
            upscale_delay=durations(0, 5_000_000),
            downscale_delay=seconds(5, 600),
            upscaling_factor=fractions(0.1, 4),
            downscaling_factor=fractions(0.1, 4),
        )
    )
    if fewest == 0:
        entry |= draw(given(downscale_to_zero_delay=seconds(0, 900)))
    return entry if cluster.policy_for_all else entry | draw(given(policy=POLICIES))


@st.composite
def replicas(draw: Draw, cluster: Cluster, *, of_stage: bool) -> dict[str, Any]:
    ongoing = draw(st.integers(1, 64))
    entry: dict[str, Any] = {
        "cpus": draw(AMOUNTS),
        "memory": draw(sizes(1, 1024)),
        "max_ongoing_requests": ongoing,
        "max_queued_requests": draw(st.integers(1, 100)),
    }
    gang = draw(st.none() | st.fixed_dictionaries({"size": st.integers(2, 4)}, optional=_GANG))
    group = 1 if gang is None else gang["size"]
    if cluster.external or draw(st.booleans()):
        entry["count"] = draw(st.integers(1, 4)) * group
    else:
        entry["autoscaling"] = draw(autoscalings(cluster, 0 if of_stage else 1, ongoing, group))
    together = draw(st.sampled_from(["nothing", "max_per_node", "placement"]))
    if gang is not None:
        entry["gang"] = gang
    elif together == "max_per_node":
        entry["max_per_node"] = draw(st.integers(1, 100))
    if together == "placement":
        strategies = st.sampled_from(["pack", "spread", "strict_pack", "strict_spread"])
        entry["placement"] = {"beside": draw(st.lists(BUNDLE, min_size=1, max_size=2))}
        entry["placement"] |= draw(given(strategy=strategies)) if gang is None else {}
    entry |= draw(
        given(
            gpus=st.sampled_from([0, 0.25, 1, 2]),
            environment=ENVIRONMENT,
            node=NODE,
            backpressure=st.sampled_from([429, 503]) | given(status=st.just(503), retry_after=durations(1, 5_000_000)),
            health_check_period=durations(1_000_000, 20_000_000),
            health_check_timeout=durations(1_000_000, 20_000_000),
            drain_wait=seconds(0, 3),
            shutdown_timeout=seconds(30, 90),
            rolling_update=UPDATE,
            logging=LOGGING,
        )
    )
    if of_stage:
        entry |= draw(given(router=ROUTERS, user_config=st.dictionaries(WORDS, PLAIN, max_size=3)))
    return entry


_GANG = {"strategy": st.sampled_from(["pack", "spread"]), "failure_policy": st.just("restart_gang")}


@st.composite
def stages(draw: Draw, cluster: Cluster, usable: list[str]) -> dict[str, Any]:
    """Up to three stages; `usable` are the models that a stage may call."""
    entries = {}
    for name in draw(st.lists(WORDS, unique=True, max_size=3)):
        entry: dict[str, Any] = {"code": CODE}
        models = draw(st.lists(st.sampled_from(usable), unique=True)) if usable else []
        items = st.fixed_dictionaries({model: st.integers(1, 20) for model in models})
        entry["models"] = draw(st.just(models) | items)
        if draw(st.booleans()):
            entry["runs_in"] = "ingress"
        else:
            entry["replicas"] = draw(replicas(cluster, of_stage=True))
        threshold, words = st.floats(0, 1, width=16), st.dictionaries(WORDS, PLAIN, max_size=2)
        entry |= draw(given(settings=given(threshold=threshold, words=words)))
        entries[name] = entry
    return entries


@st.composite
def pipelines(draw: Draw, stages: list[str]) -> dict[str, Any]:
    """One to three pipelines, of which the first calls every stage; whatever a step gives, a later one takes."""
    entries = {}
    for number in range(draw(st.integers(1, 3)) if stages else 0):
        more = draw(st.lists(st.sampled_from(stages), min_size=0 if number == 0 else 1, max_size=2))
        called = [*(stages if number == 0 else []), *more]
        images = st.sampled_from(["image", "image[0..8]", "image[2..2]"])
        inputs = draw(st.dictionaries(st.sampled_from(["selfie", "frames"]), images, min_size=1))
        unread, steps = list(inputs), {}
        for index, stage in enumerate(called):
            last = index == len(called) - 1
            before = [*inputs, *steps]
            taken = draw(st.lists(st.sampled_from(before), unique=True)) if not last else unread
            steps[f"step_{index}"] = {"call": f"{stage}.run", "takes": dict(zip("abcdefg", taken, strict=False))}
            unread = [source for source in [*unread, f"step_{index}"] if source not in taken]
        entries[f"{draw(WORDS)}_{number}"] = {
            "route": f"/v1/{draw(WORDS)}/{number}",
            "summary": draw(TEXTS),
            "inputs": inputs,
            "steps": steps,
            **draw(given(sla=seconds(10, 30))),
        }
    return entries


@st.composite
def tiers(draw: Draw) -> dict[str, Any]:
    names = draw(
        st.lists(st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,5}", fullmatch=True), unique=True, min_size=1, max_size=4)
    )
    default = draw(st.sampled_from(names))
    order = draw(st.permutations(range(1, len(names) + 1)))
    return {
        name: {"priority": priority, **({"default": True} if name == default else {})}
        for name, priority in zip(names, order, strict=True)
    }


@st.composite
def tritons(draw: Draw, device: str, by_wheel: bool) -> dict[str, Any]:
    """The server of a profile, with room for whatever models there are; for CPUs the wheel's or another."""
    entry: dict[str, Any] = {
        "version": NEWEST, "cpus": draw(st.sampled_from([1, 0.5])), "memory": draw(sizes(1024, 4096)),
        "startup_timeout": draw(seconds(60, 600)), "exit_timeout": draw(seconds(30, 60)),
        "health_check_period": draw(durations(1_000_000, 5_000_000)),
        "health_check_timeout": draw(durations(1_000_000, 20_000_000)),
        "response_cache": draw(sizes(16, 512)), "rate_limit": True,
    }  # fmt: skip
    if device == "gpu":
        entry |= {"gpus": 2, **draw(given(device_memory=st.just("9999GiB")))}
    elif by_wheel or draw(st.booleans()):
        entry |= {"version": "2.51.0", "requirement": "nvidia-pytriton==0.7.0", "sha256": "0" * 64}
    stock = plain(R1=st.integers(9, 20), R2=plain(count=st.integers(9, 20), all_devices=st.just(True)))
    return entry | draw(
        given(
            backends=st.just(["python", *NATIVE]),
            shared_memory=st.just("999999GiB"),
            resources=stock,
            replicas=st.integers(1, 2),
            node=NODE,
            max_per_node=st.integers(1, 100),
            rolling_update=UPDATE,
            logging=LOGGING,
        )
    )


@st.composite
def profiles(draw: Draw, names: tuple[str, ...], by_wheel: bool) -> dict[str, Any]:
    devices = {"embedded": "cpu", "gpu": "gpu"}
    return {
        name: {
            "device": devices[name],
            "onnx": "python" if devices[name] == "cpu" else draw(st.sampled_from(["python", "onnxruntime"])),
            "ray_version": "2.60.0",
            "triton": draw(tritons(devices[name], by_wheel)),
        }
        for name in names
    }


@st.composite
def services(draw: Draw, ports: list[int]) -> dict[str, Any]:
    limit = draw(st.integers(1, 100))
    tls = plain(certificate=st.just(f"{CERTIFICATE}.crt"), key=st.just(f"{CERTIFICATE}.key"))
    return {
        "sla": draw(seconds(10, 30)),
        "host": draw(st.sampled_from(["127.0.0.1", "0.0.0.0", "::1", "node-1.local"])),
        "port": ports[0],
        "upload_limit": f"{limit}MiB",
        "request_limit": f"{limit + draw(st.integers(0, 9))}MiB",
        "retry_after": draw(durations(1, 10_000_000)),
        "grpc": {"port": ports[1]},
        **draw(given(http=given(root_path=st.just("/kyc/v1"), keep_alive=seconds(1, 200)), tls=tls)),
    }


@st.composite
def rays(draw: Draw, cluster: Cluster, ports: list[int]) -> dict[str, Any]:
    packages = st.sampled_from(["s3://bucket/project.zip", "local:///srv/project", "https://a.example/b.tar.gz"])
    prepared = given(
        environment=ENVIRONMENT, working_dir=packages, py_modules=st.lists(packages, max_size=2),
        pip=st.lists(st.sampled_from(["requests", "numpy==2.1.0"]), unique=True), setup_timeout=seconds(1, 900),
    )  # fmt: skip
    contained = st.fixed_dictionaries(
        {"image": st.just("registry.example/tandem:1")}, optional={"environment": ENVIRONMENT}
    )
    policy = {"autoscaling_policy": "tests.rules.ray_code:for_all"} if cluster.policy_for_all else {}
    return {
        "port": ports[0],
        "dashboard_port": ports[1],
        "object_store": draw(sizes(80, 1024)),
        **policy,
        **({"external_scaler": True} if cluster.external else {}),
        **draw(
            given(
                logging=LOGGING,
                application_logging=LOGGING,
                tracing=given(exporter=st.just("tests.rules.ray_code:spans"), sampling=percents(0)),
                controller_environment=ENVIRONMENT,
                runtime_environment=prepared | contained,
                target_capacity=percents(),
            )
        ),
    }


@st.composite
def acceptances(draw: Draw) -> list[dict[str, Any]]:
    warnings = sorted(code for code, rule in RULES.items() if rule.severity == "warning")
    places = st.sampled_from(["models", "models.m0", "ingress", "profiles"])
    entry = plain(code=st.sampled_from(warnings), at=places, because=TEXTS)
    return draw(st.lists(entry, max_size=2))
