"""Dynamic batching and sequences at random, in combinations that work."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from tests.render.values import FILES, NUMBERS, Draw, durations, given, tensors, written


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


def levels_and_queues(delay_us: int, max_batch: int, tiers: tuple[str, ...]) -> st.SearchStrategy[dict[str, Any]]:
    whole, policy = policies(delay_us, max_batch, late=True), policies(delay_us, max_batch, late=False)
    none = st.fixed_dictionaries({"priorities": st.just("none"), "queue": whole})

    @st.composite
    def own(draw: Draw) -> dict[str, Any]:
        levels = draw(st.integers(1, 4))
        default = draw(st.integers(1, levels))
        queues = draw(st.dictionaries(st.integers(1, levels).map(str), whole, max_size=levels))
        return {"priorities": {"levels": levels, "default": default}, "queue": draw(whole), "queues": queues}

    by_tiers = given(priorities=st.just("tiers"), queue=policy, queues=st.dictionaries(st.sampled_from(tiers), policy))
    return st.one_of(none, own(), by_tiers, by_tiers)


@st.composite
def batchings(draw: Draw, max_batch: int, tiers: tuple[str, ...]) -> dict[str, Any]:
    delay = draw(st.integers(100, 20_000))
    entry = {"queue_delay": f"{delay}us"}
    if draw(st.booleans()):
        entry |= {"preserve_ordering": True, "priorities": "none"}
    else:
        entry |= draw(levels_and_queues(delay, max_batch, tiers))
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
            {
                "input": free[-2],
                "output": free[-1],
                "tensor": written(dtype, dims),
                "initial": [initial],
                **draw(st.sampled_from(_buffers(gpu))),
            }
        ]
    return entry | draw(given(iterative=st.booleans()))


def _buffers(gpu: bool) -> list[dict[str, Any]]:
    """How a state may be kept; a growing one needs its instances on GPUs, where a native model's usually are."""
    return [{}, {"same_buffer": True}, *([{"same_buffer": True, "growable": True}] if gpu else [])]


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
