"""Specs at random that the validator accepts: every part of the vocabulary, in combinations that work.

Each strategy makes what is right by itself, so that hardly any spec has to be thrown away. Whoever adds a rule that
refuses some of these adjusts the strategy of that part.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

Draw = Any
NUMBERS = ["bool", "uint8", "int16", "int32", "int64", "float16", "float32", "float64"]
NATIVE = ("tensorrt", "onnxruntime", "pytorch", "openvino", "my-backend")
NAMES = st.from_regex(r"[A-Za-z][A-Za-z0-9_.:/-]{0,8}", fullmatch=True)
TEXTS = st.text(st.characters(exclude_categories=["C", "Zl", "Zp"]), max_size=8)
FILES = st.from_regex(r"[a-z]{1,6}\.(bin|txt)", fullmatch=True)


@dataclass(frozen=True)
class Where:
    """The profiles of a spec and the backends it has: what its models may use."""

    profiles: tuple[str, ...]
    backends: tuple[str, ...]

    @property
    def gpu_only(self) -> bool:
        return self.profiles == ("gpu",)


def durations(least: int, most: int) -> st.SearchStrategy[str]:
    """So many microseconds, in one of the ways to write them."""
    return st.integers(least, most).flatmap(
        lambda us: st.sampled_from(
            [f"{us}us", *([f"{us // 1000}ms"] if us % 1000 == 0 and us else []), f"{us / 1000}ms"]
        )
    )


def given(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """A mapping with any of the fields."""
    return st.fixed_dictionaries({}, optional=fields)


@st.composite
def tensors(draw: Draw, dtypes: list[str]) -> tuple[str, list[int]]:
    dims = draw(st.lists(st.sampled_from([-1, 1, 2, 3, 224]), min_size=1, max_size=4))
    return draw(st.sampled_from(dtypes)), dims


def written(dtype: str, dims: list[int]) -> str:
    return f"{dtype}[{', '.join(map(str, dims))}]"


@st.composite
def served_tensors(draw: Draw, backend: str, max_batch: int, where: Where) -> dict[str, Any]:
    """Inputs and outputs of a model: the first input is plain, so that requests always have a batch."""
    native = backend not in ("python", "onnx")
    dtypes = [*NUMBERS, "string", "bfloat16"] if native else NUMBERS
    names = draw(st.lists(NAMES, min_size=2, max_size=5, unique_by=str.lower))
    split = draw(st.integers(1, len(names) - 1))
    entries: dict[str, dict[str, Any]] = {"inputs": {}, "outputs": {}}
    for index, name in enumerate(names):
        side = "inputs" if index < split else "outputs"
        dtype, dims = draw(tensors(dtypes))
        entry: dict[str, Any] = {"tensor": written(dtype, dims)}
        if -1 not in dims and (max_batch or len(dims) > 1) and backend != "onnx" and draw(st.booleans()):
            entry["reshape"] = [math.prod(dims)]
        if side == "inputs" and len(dims) == 3 and draw(st.booleans()):
            entry["format"] = draw(st.sampled_from(["NHWC", "NCHW"]))
        if side == "inputs" and index and backend != "onnx":
            entry |= draw(given(optional=st.booleans()))
            if -1 in dims and max_batch:
                entry |= draw(given(ragged=st.booleans()))
        if side == "outputs":
            entry |= draw(given(labels=FILES))
        short = list(entry) == ["tensor"] and draw(st.booleans())
        entries[side][name] = entry["tensor"] if short else entry
    return entries


def policies(delay_us: int, max_batch: int, *, late: bool) -> st.SearchStrategy[dict[str, Any]]:
    """Queue policies; with `late`, requests may also be served late."""
    sizes = given(size=st.integers(max(1, max_batch), 500))
    timed = st.fixed_dictionaries(
        {"timeout": durations(delay_us + 1000, 10_000_000)},
        optional={
            "allow_override": st.booleans(),
            **({"on_timeout": st.sampled_from(["reject", "delay"])} if late else {}),
        },
    )
    return st.tuples(sizes, st.just({}) | timed).map(lambda parts: parts[0] | parts[1])


def levels_and_queues(delay_us: int, max_batch: int) -> st.SearchStrategy[dict[str, Any]]:
    whole, policy = policies(delay_us, max_batch, late=True), policies(delay_us, max_batch, late=False)
    none = st.fixed_dictionaries({"priorities": st.just("none"), "queue": whole})

    @st.composite
    def own(draw: Draw) -> dict[str, Any]:
        levels = draw(st.integers(1, 4))
        default = draw(st.integers(1, levels))
        queues = draw(st.dictionaries(st.integers(1, levels).map(str), whole, max_size=levels))
        return {"priorities": {"levels": levels, "default": default}, "queue": draw(whole), "queues": queues}

    tiers = given(queue=policy, queues=st.dictionaries(st.sampled_from(["first", "second"]), policy))
    return st.one_of(none, own(), tiers)


@st.composite
def batchings(draw: Draw, max_batch: int) -> dict[str, Any]:
    delay = draw(st.integers(100, 20_000))
    entry = {"queue_delay": f"{delay}us"}
    if draw(st.booleans()):
        entry |= {"preserve_ordering": True, "priorities": "none"}
    else:
        entry |= draw(levels_and_queues(delay, max_batch))
    if max_batch > 1:
        entry["preferred_sizes"] = draw(st.lists(st.integers(1, max_batch), unique=True, max_size=3))
    return entry


@st.composite
def sequences(draw: Draw, backend: str, max_batch: int, free: list[str], gpu: bool) -> dict[str, Any]:
    """`free`: names that none of the model's tensors has."""
    entry: dict[str, Any] = {"idle_timeout": draw(durations(1_000_000, 60_000_000))}
    delay = given(queue_delay=durations(100, 20_000))
    if draw(st.booleans()):
        entry["direct"] = draw(delay) | draw(
            given(minimum_slot_utilization=st.floats(0, 1, width=32, allow_subnormal=False).map(lambda x: round(x, 4)))
        )
    else:
        entry["oldest"] = {"max_candidates": draw(st.integers(1, 100)), **draw(delay)}
        entry["oldest"] |= draw(given(preserve_ordering=st.booleans()))
        if max_batch:
            entry["oldest"]["preferred_sizes"] = draw(st.lists(st.integers(1, max_batch), unique=True, max_size=2))
    signals = draw(st.lists(st.sampled_from(["start", "ready", "end", "corrid"]), unique=True))
    entry["controls"] = [
        {"input": name, "signals": signal, **draw(_flags(signal))} for name, signal in zip(free, signals, strict=False)
    ]
    if backend != "python" and draw(st.booleans()):
        dtype, dims = draw(tensors(NUMBERS))
        fixed = [size if size > 0 else 5 for size in dims]
        initial = {"name": "zero", "tensor": written(dtype, fixed), **draw(given(file=FILES))}
        entry["states"] = [
            {"input": free[-2], "output": free[-1], "tensor": written(dtype, dims), "initial": [initial]}
        ]
    return entry | draw(given(iterative=st.booleans()))


def _flags(signal: str) -> st.SearchStrategy[dict[str, Any]]:
    if signal == "corrid":
        return st.sampled_from(["uint64", "int64"]).map(lambda dtype: {"type": dtype})
    values = {
        "int32": st.integers(-5, 5),
        "float32": st.floats(-2, 2, width=16).map(lambda x: round(x, 3)),
        "bool": None,
    }
    return st.sampled_from(list(values)).flatmap(
        lambda dtype: (
            st.just({"type": dtype, "off": 0, "on": 1})
            if values[dtype] is None
            else st.lists(values[dtype], min_size=2, max_size=2, unique=True).map(
                lambda pair: {"type": dtype, "off": pair[0], "on": pair[1]}
            )
        )
    )


@st.composite
def instance_groups(draw: Draw, backend: str, gpu: bool) -> list[dict[str, Any]]:
    groups = []
    for number in range(draw(st.integers(1, 3))):
        group: dict[str, Any] = draw(given(count=st.integers(1, 4)))
        kinds = ["cpu", "auto", "model"] + (["gpu"] if gpu else [])
        if backend in ("python", "onnx", "my-backend"):
            group |= draw(given(kind=st.sampled_from(kinds), name=st.just(f"group-{number}")))
        elif gpu:
            group |= draw(given(kind=st.sampled_from(["gpu", "auto"])))
        if group.get("kind") == "gpu":
            group |= draw(given(gpus=st.lists(st.integers(0, 1), unique=True, min_size=1)))
        if draw(st.booleans()):
            resources = st.dictionaries(st.sampled_from(["R1", "R2"]), st.integers(1, 3))
            group["rate_limiter"] = draw(given(resources=resources, priority=st.integers(0, 3)))
        groups.append(group)
    return groups


@st.composite
def warmups(draw: Draw, inputs: dict[str, Any], max_batch: int) -> list[dict[str, Any]]:
    entries = []
    for name in draw(st.lists(NAMES, unique=True, max_size=2)):
        sources = {}
        for key, given_input in inputs.items():
            text = given_input if isinstance(given_input, str) else given_input["tensor"]
            source = draw(st.sampled_from([{"fill": "zeros"}, {"fill": "random"}, {"file": "x.bin"}]))
            sources[key] = {**source, "tensor": text.replace("-1", "6")} if "-1" in text else source
        batch = draw(st.integers(1, max(1, max_batch)))
        entries.append({"name": name, "batch": batch, "inputs": sources, **draw(given(count=st.integers(0, 3)))})
    return entries


OPTIMIZATIONS = given(
    graph_level=st.integers(-1, 3),
    priority=st.sampled_from(["default", "max", "min"]),
    input_pinned_memory=st.booleans(),
    output_pinned_memory=st.booleans(),
    gather_kernel_buffer_threshold=st.integers(0, 100),
    eager_batching=st.booleans(),
)
CUDA = given(
    graphs=st.booleans(),
    busy_wait_events=st.booleans(),
    output_copy_stream=st.booleans(),
)
COMMON = given(
    exposed=st.booleans(),
    parameters=st.dictionaries(NAMES.map(lambda name: f"p_{name}"), TEXTS, max_size=2),
    metric_tags=st.dictionaries(st.from_regex(r"[a-z]{1,5}", fullmatch=True), TEXTS, max_size=2),
)


@st.composite
def models(draw: Draw, where: Where) -> dict[str, Any]:
    backend = draw(st.sampled_from([name for name in where.backends if where.gpu_only or name not in NATIVE]))
    max_batch = draw(st.sampled_from([0, 1, 2, 8, 16]))
    entry: dict[str, Any] = {"backend": backend, "max_batch": max_batch, "latency_budget": "100ms"}
    entry |= draw(served_tensors(backend, max_batch, where)) | draw(COMMON)
    free = ["free-0", "free-1", "free-2", "free-3", "state-in", "state-out"]
    own_code = backend not in ("onnx",)
    scheduler = draw(st.sampled_from(["tiers", "batching", "unscheduled", *(["sequence"] if own_code else [])]))
    if scheduler == "batching" and max_batch > 0:
        entry["batching"] = draw(batchings(max_batch))
    elif scheduler == "sequence":
        entry["sequence"] = draw(sequences(backend, max_batch, free, where.gpu_only))
    elif scheduler == "unscheduled":
        entry["unscheduled"] = True
    if where.gpu_only:
        buckets = st.lists(st.floats(0.1, 1000).map(lambda bound: round(bound, 3)), min_size=1, unique=True).map(sorted)
        family = "nv_inference_first_response_histogram_ms"
        entry |= draw(given(metrics=st.fixed_dictionaries({family: st.fixed_dictionaries({"buckets": buckets})})))
    if own_code and scheduler != "sequence":
        entry |= draw(st.sampled_from([{}, {"cache": True}, {"decoupled": True}]))
    if own_code:
        entry |= draw(given(versions=st.sampled_from([{"all": True}, {"latest": 2}, {"only": [1, 3]}])))
        suffix = ".py" if backend == "python" else ".bin"
        entry |= draw(
            given(file=st.from_regex(r"[a-z]{1,6}", fullmatch=True).map(lambda stem: f"model_{stem}{suffix}"))
        )
        entry["warmup"] = draw(warmups(entry["inputs"], max_batch))
    else:
        entry["weights"] = {"prepare": "serve_app.kyc.antifraud:build_onnx"}
        entry |= draw(given(threads=st.integers(1, 4)))
    if backend in NATIVE:
        entry["optimization"] = draw(OPTIMIZATIONS) | ({"cuda": draw(CUDA)} if backend == "tensorrt" else {})
        agents = {"agents": [{"name": "checksum", "parameters": {"a": "b"}}]}
        entry["triton"] = draw(given(model_repository_agents=st.just(agents), cc_model_filenames=st.just({"8.0": "a"})))
    instances = draw(st.none() | instance_groups(backend, where.gpu_only))
    if instances is not None:
        entry["instances"] = instances[0] if len(instances) == 1 and draw(st.booleans()) else instances
    overrides = given(
        queue_delay=durations(100, 20_000),
        instances=instance_groups(backend, False),
        **({"max_batch": st.integers(max_batch, max_batch + 8)} if max_batch else {}),
    )
    if len(where.profiles) > 1 and scheduler == "tiers":
        entry["profiles"] = draw(st.dictionaries(st.sampled_from(where.profiles), overrides, max_size=2))
    return entry


@st.composite
def ensembles(draw: Draw) -> tuple[dict[str, Any], dict[str, Any]]:
    """One to three models in a row, and the ensemble of them; tensors fit by construction."""
    texts = [written(*draw(tensors(NUMBERS))) for _ in range(draw(st.integers(2, 4)))]
    max_batch = draw(st.sampled_from([1, 8]))
    steps = {
        f"step_{index}": {
            "backend": "python", "max_batch": max_batch, "latency_budget": "50ms",
            "inputs": {"x": before}, "outputs": {"y": after},
        }
        for index, (before, after) in enumerate(itertools.pairwise(texts))
    }  # fmt: skip
    ensemble = {
        "inputs": {"in": texts[0]},
        "outputs": {"out": texts[-1]},
        "max_batch": max_batch,
        "steps": [
            {
                "model": name,
                "takes": {"x": "in" if index == 0 else f"t{index}"},
                "gives": {"y": "out" if index == len(steps) - 1 else f"t{index + 1}"},
                **draw(given(version=st.sampled_from([-1, 1]))),
            }
            for index, name in enumerate(steps)
        ],
        **draw(COMMON),
    }
    return steps, ensemble


def _triton(gpus: int) -> dict[str, Any]:
    return {
        "version": "2.64.0", "cpus": 1, "gpus": gpus, "memory": "1GiB", "startup_timeout": "60s", "exit_timeout": "30s",
        "health_check_period": "2s", "health_check_timeout": "10s", "response_cache": "16MiB", "rate_limit": True,
    }  # fmt: skip


PROFILES = {
    "embedded": {"device": "cpu", "onnx": "python", "ray_version": "2.60.0", "triton": _triton(0)},
    "gpu": {"device": "gpu", "onnx": "onnxruntime", "ray_version": "2.60.0", "triton": _triton(2)},
}


@st.composite
def specs(
    draw: Draw,
    profiles: tuple[tuple[str, ...], ...] = (("embedded",), ("gpu",), ("embedded", "gpu")),
    backends: tuple[str, ...] = ("python", "onnx", *NATIVE),
) -> dict[str, Any]:
    """A whole spec, as plain data."""
    where = Where(draw(st.sampled_from(profiles)), backends)
    entries = {f"m{index}": draw(models(where)) for index in range(draw(st.integers(1, 3)))}
    spec = {
        "application": "random",
        "service": {
            "sla": "20s", "host": "127.0.0.1", "port": 8000, "upload_limit": "1MiB", "request_limit": "2MiB",
            "retry_after": "1s",
        },
        "ray": {"port": 6379, "dashboard_port": 8265, "object_store": "128MiB"},
        "tiers": {"first": {"priority": 1, "default": True}, "second": {"priority": 2}},
        "profiles": {profile: PROFILES[profile] for profile in where.profiles},
        "ingress": {
            "cpus": 0.1, "memory": "512MiB", "max_ongoing_requests": 8, "max_queued_requests": 8,
            "autoscaling": {"min_replicas": 1, "max_replicas": 2, "target_ongoing_requests": 4},
        },
        "models": entries,
    }  # fmt: skip
    if draw(st.booleans()):
        steps, ensemble = draw(ensembles())
        spec["models"] = {**entries, **steps}
        spec["ensembles"] = {"row": ensemble}
    return spec
