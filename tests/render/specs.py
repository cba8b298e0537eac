"""Whole specs at random that the validator accepts: every part of the vocabulary, in combinations that work.

Each strategy makes what is right by itself, so that no spec has to be thrown away. Whoever adds a rule that refuses
some of these adjusts the strategy of that part.
"""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from tests.render import deployments
from tests.render.models import NATIVE, Where, ensembles, models
from tests.render.values import WORDS, Draw


@st.composite
def specs(
    draw: Draw,
    profiles: tuple[tuple[str, ...], ...] = (("embedded",), ("gpu",), ("embedded", "gpu")),
    backends: tuple[str, ...] = ("python", "onnx", *NATIVE),
    by_wheel: bool = False,
) -> dict[str, Any]:
    """A whole spec, as plain data. `by_wheel`: for the wheel's Triton, which does not know the newest fields."""
    names = draw(st.sampled_from(profiles))
    tiers = draw(deployments.tiers())
    where = Where(names, backends, tuple(tiers))
    entries = {f"m{index}": draw(models(where)) for index in range(draw(st.integers(1, 3)))}
    usable = [name for name, entry in entries.items() if not (entry.get("decoupled") or "sequence" in entry)]
    called = draw(calls(entries))
    cluster = draw(st.builds(deployments.Cluster, st.booleans(), st.booleans()))
    first = draw(st.integers(1024, 65532))
    ports = draw(st.permutations(range(first, first + 4)))
    spec: dict[str, Any] = {
        "application": draw(WORDS),
        "service": draw(deployments.services(ports[:2])),
        "ray": draw(deployments.rays(cluster, ports[2:])),
        "tiers": tiers,
        "profiles": draw(deployments.profiles(names, by_wheel)),
        "ingress": draw(deployments.replicas(cluster, of_stage=False)),
        "models": entries,
        "accept": draw(deployments.acceptances()),
    }
    if draw(st.booleans()):
        newest = all(profile["triton"]["version"] == deployments.NEWEST for profile in spec["profiles"].values())
        steps, ensemble = draw(ensembles(newest))
        spec["models"] = {**entries, **steps}
        spec["ensembles"] = {"row": ensemble}
        usable.append("row")
    if stages := draw(deployments.stages(cluster, usable)):
        spec["stages"] = stages
        spec["pipelines"] = draw(deployments.pipelines(list(stages)))
    used = {*called, *(name for stage in stages.values() for name in stage["models"])}
    for name, entry in entries.items():
        if name not in used and _does_without_a_budget(entry) and draw(st.booleans()):
            del entry["latency_budget"]
    return spec


@st.composite
def calls(draw: Draw, entries: dict[str, Any]) -> set[str]:
    """Lets models with code call earlier ones. The models that take part; a caller has time for all that it calls."""
    part: set[str] = set()
    before: list[str] = []
    for name, entry in entries.items():
        if before and entry["backend"] == "python" and draw(st.booleans()):
            entry["calls"] = draw(st.lists(st.sampled_from(before), unique=True))
            entry["latency_budget"] = "500ms"
            part |= {name, *entry["calls"]}
        before.append(name)
    return part


def _does_without_a_budget(entry: dict[str, Any]) -> bool:
    """Whether nothing of a model follows from its latency budget."""
    return "sequence" in entry or entry.get("unscheduled", False) or "batching" in entry
