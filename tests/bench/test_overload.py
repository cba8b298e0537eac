"""What `tandem bench overload` offers, what it deploys, and how it judges what came of it."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
import yaml
from google.protobuf import text_format
from tritonclient.grpc.model_config_pb2 import ModelConfig

from serve_app.bench.overload.clients import Offered
from serve_app.bench.overload.deployment import (
    BATCH,
    FLOOR,
    MODEL,
    ONGOING,
    QUEUED,
    REPLICAS,
    TIERS,
    Sleeper,
    bare_config,
    policies,
    spec_of,
)
from serve_app.bench.overload.goals import BURST, BURSTS, BURSTS_EVERY_S, Goal, Trial, trials
from serve_app.bench.overload.loads import Load, bursts, poisson
from serve_app.bench.overload.report import as_json, table
from serve_app.bench.overload.run import Comparison, Outcome
from serve_app.bench.overload.shots import Shot, tally
from serve_app.bench.server import Work
from serve_app.render.triton import model_config
from serve_app.spec.load import examine
from tests.rules.case import MINIMAL

SLEEPER = Sleeper(0.014)
# "may be taken by every connection of this machine": the ports are free ones.
OF_FREE_PORTS = "R004"


def test_a_bursts_requests_come_together_and_are_shared_among_the_clients() -> None:
    load = Load("bursts", 1.5, {"standard": bursts(40, 2, 0.75)})
    of_clients = [load.of_client(client, 4)["standard"] for client in range(4)]
    assert of_clients == [(0.0,) * 10 + (0.75,) * 10] * 4


def test_independent_clients_send_as_often_as_they_should_and_the_same_each_time() -> None:
    moments = poisson(500, 20, seed=1)
    assert moments == poisson(500, 20, seed=1) != poisson(500, 20, seed=2)
    assert list(moments) == sorted(moments)
    assert moments[-1] < 20
    # Of a Poisson process, whose deviation is the root of its mean.
    assert len(moments) == pytest.approx(10_000, abs=500)


def test_nothing_is_lost_between_the_clients() -> None:
    for trial in trials(SLEEPER):
        for tier, moments in trial.load.moments.items():
            parts = [trial.load.of_client(client, 3)[tier] for client in range(3)]
            assert sorted(moment for part in parts for moment in part) == list(moments)


def test_a_full_batch_takes_the_time_that_was_asked_for_with_what_the_python_backend_takes() -> None:
    assert SLEEPER.parameters == {"batch_us": "10000", "item_us": "500"}
    assert SLEEPER.capacity == pytest.approx(571, abs=0.5)
    measured = SLEEPER.answering(BATCH / 0.0155)
    assert measured.parameters == {"batch_us": "8500", "item_us": "500"}
    assert measured.capacity == SLEEPER.capacity
    assert SLEEPER.answering(10_000).parameters == SLEEPER.parameters


def test_the_deployments_spec_is_free_of_findings_but_for_its_ports() -> None:
    ports = {"http": 40001, "grpc": 40002, "ray": 40003, "dashboard": 40004}
    text = yaml.safe_dump(spec_of(SLEEPER, MINIMAL["profiles"]["embedded"], ports), sort_keys=False)
    report = examine(text, "spec.yaml")
    assert {finding.code for finding in report.findings} <= {OF_FREE_PORTS}
    spec = report.usable()
    assert spec.tiers["bulk"].floor == 100 * FLOOR
    theirs, ours = ModelConfig(), model_config(spec, MODEL, "embedded")
    text_format.Parse(bare_config(SLEEPER, policies()), theirs)
    for name in ("name", "backend", "max_batch_size", "input", "output", "instance_group", "parameters"):
        assert getattr(theirs, name) == getattr(ours, name), name
    assert theirs.dynamic_batching.max_queue_delay_microseconds == ours.dynamic_batching.max_queue_delay_microseconds
    assert theirs.dynamic_batching.default_queue_policy.max_queue_size == REPLICAS * (ONGOING + QUEUED)
    assert theirs.dynamic_batching.priority_levels == len(TIERS)
    assert not ModelConfig.FromString(
        text_format.Parse(bare_config(SLEEPER, ""), ModelConfig()).SerializeToString()
    ).dynamic_batching.HasField("default_queue_policy")


def shot(due: float, took: float, kind: str = "answered", tier: str = "standard", late: float = 0.0) -> Shot:
    return Shot(tier, due, due + late, due + took, kind)


def test_a_request_has_waited_since_it_was_due_and_counts_when_it_is_answered() -> None:
    found = tally(
        [
            shot(0.5, 0.9, late=0.6),  # due before, sent and answered within
            shot(1.0, 0.2),
            shot(1.9, 0.3),  # answered afterwards
            shot(1.2, 0.004, "refused"),
            shot(1.3, 2.0, "late"),
            shot(1.4, 0.1, "failed"),
        ],
        begin=1.0,
        end=2.0,
    )
    assert (found.offered, found.rate) == (6, 2)
    assert (found.answered, found.refused, found.late, found.failed) == (2, 1, 1, 1)
    assert found.share == 0.4
    assert found.answered_p99_ms == pytest.approx(300)
    assert found.refused_p99_ms == pytest.approx(4)
    assert tally([], 0, 1).answered_p99_ms is None


def trial(name: str) -> Trial:
    return next(each for each in trials(SLEEPER) if name in each.load.name)


def judged(name: str, shots: Iterator[Shot]) -> dict[str, Goal]:
    found = trial(name)
    return {goal.name: goal for goal in found.judge(Offered(found.load, list(shots), 0.5, 1.0))}


def missed(goals: dict[str, Goal]) -> set[str]:
    return {name for name, goal in goals.items() if not goal.met}


def answered_in_order(load: Load, tier: str, begun: float, gap: float, count: int) -> Iterator[Shot]:
    """Of so many moments one that is answered, the others refused."""
    for index, due in enumerate(load.moments[tier]):
        yield shot(due, gap, tier=tier) if index % count == 0 else shot(due, begun, "refused", tier)


def burst(batch_time: float) -> Iterator[Shot]:
    for number in range(BURSTS):
        for index in range(BURST):
            yield shot(number * BURSTS_EVERY_S, (index // BATCH + 1) * batch_time)


def test_bursts_are_fine_where_batch_follows_batch_and_missed_where_the_batcher_sleeps() -> None:
    assert missed(judged("bursts", burst(0.014))) == set()
    assert missed(judged("bursts", burst(0.0176))) == {"a burst's time, on average"}
    assert missed(judged("bursts", burst(0.5))) == {"a burst's time, on average", "the latest answer of any"}
    one_lost = [*list(burst(0.014))[:-1], shot((BURSTS - 1) * BURSTS_EVERY_S, 0.07, "refused")]
    assert missed(judged("bursts", iter(one_lost))) == {"answered"}


def test_an_overload_is_fine_where_as_much_is_answered_as_can_be_and_the_rest_refused_at_once() -> None:
    load = trial("4x").load
    fine = judged("4x", answered_in_order(load, "standard", 0.002, 0.2, 4))
    assert missed(fine) == set()
    assert fine["answered"].value == pytest.approx(SLEEPER.capacity, rel=0.05)
    assert missed(judged("4x", answered_in_order(load, "standard", 0.002, 0.2, 5))) == {"answered"}
    assert missed(judged("4x", answered_in_order(load, "standard", 0.03, 0.2, 4))) == {"p99 of the refused"}
    assert missed(judged("4x", answered_in_order(load, "standard", 0.002, 0.25, 4))) == {"p99 of the answered"}


def test_what_the_clients_could_not_offer_is_no_overload() -> None:
    load = trial("4x").load
    half = Load(load.name, load.seconds, {"standard": load.moments["standard"][::2]})
    assert missed(judged("4x", answered_in_order(half, "standard", 0.002, 0.2, 2))) == {"offered"}


def test_the_urgent_have_to_be_answered_soon_and_the_others_not_forgotten() -> None:
    load = trial("0.2x").load

    def both(took: float, kept: int) -> Iterator[Shot]:
        yield from (shot(due, took, tier="interactive") for due in load.moments["interactive"])
        yield from answered_in_order(load, "bulk", 0.002, 0.2, kept)

    assert missed(judged("0.2x", both(0.03, 5))) == set()
    assert missed(judged("0.2x", both(0.05, 5))) == {"p99 of interactive"}
    assert missed(judged("0.2x", both(0.03, 500))) == {"bulk's share (floor 10%)"}


def test_nothing_answered_meets_nothing() -> None:
    load = trial("interactive 2x").load
    none = (shot(due, 2.0, "late", tier) for tier, moments in load.moments.items() for due in moments)
    assert missed(judged("interactive 2x", none)) == {"answered, both", "bulk's share (floor 10%)"}


def comparison() -> Comparison:
    found = trial("bursts")

    def side(batch_time: float) -> dict[str, Outcome]:
        offered = Offered(found.load, list(burst(batch_time)), 0.25, 0.75)
        return {found.load.name: Outcome(offered, list(found.judge(offered)), Work(320, 320, 40, dropped=80))}

    return Comparison(SLEEPER, 4, {"Tandem": side(0.014), "Triton alone": side(0.2)})


def test_the_table_shows_each_figure_beside_what_it_has_to_be() -> None:
    text = table(comparison())
    assert "571/s" in text
    (line,) = (line for line in text.splitlines() if "the latest answer" in line)
    assert " ".join(line.split()) == "the latest answer of any ≤ 120 ms 70 ms ✓ 1000 ms missed"
    assert (
        "Tandem: 40 batches of 8.0, 80 requests dropped in Triton; 0.75 cores busy, 0.25 of them with clients" in text
    )


def test_json_holds_every_figure() -> None:
    found = json.loads(as_json(comparison()))
    (load,) = found["sides"]["Triton alone"].values()
    assert [goal["met"] for goal in load["goals"]] == [False, False, True]
    assert (found["clients"], found["capacity"]) == (4, SLEEPER.capacity)
    assert load["tiers"]["standard"]["answered"] == BURST * BURSTS
    assert load["triton"]["dropped"] == 80
