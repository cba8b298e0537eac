"""What a service does while more clients come than it can answer, in virtual time."""

from __future__ import annotations

import pytest

from serve_app.admission import AdmissionLimits, TierLimits
from tests.admission.simulated import Client, Simulation

SLA, CORES, WORK = 8.0, 2.0, 0.7
CAPACITY = CORES / WORK


def limits(*floors: float, **changes: object) -> AdmissionLimits:
    tiers = [TierLimits(priority, 32, 64, floor) for priority, floor in enumerate(floors or (0.0,), 1)]
    given = {"refuse_late": True, "work_within_s": {"/v2": SLA / 3}, "tiers": tiers, **changes}
    return AdmissionLimits(32, 64, 429, 1.0, **given)  # type: ignore[arg-type]


def clients(count: int, priority: int = 1, work: float = WORK, kind: str = "/verify") -> list[Client]:
    return [Client(priority, work, SLA, kind) for _ in range(count)]


def settled(simulation: Simulation, load: list[Client], seconds: float = 200.0) -> Simulation:
    """The simulation after so long, without the first minute's outcomes."""
    simulation.run(load, 60)
    simulation.outcomes.clear()
    simulation.refused_after.clear()
    simulation.run([], seconds)
    return simulation


@pytest.mark.parametrize("count", [8, 16, 32, 64, 128])
def test_however_many_clients_come_as_many_are_answered_as_can_be_and_none_too_late(count: int) -> None:
    found = settled(Simulation(limits(), CORES), clients(count))
    assert found.outcomes[1, "answered"] >= 0.95 * CAPACITY * 200
    assert found.outcomes[1, "late"] == found.outcomes[1, "waited in vain"] == 0


def test_without_any_of_it_hardly_anything_is_answered_in_time() -> None:
    """So that the tests before this one are of admission."""
    found = settled(Simulation(limits(work_within_s={}, refuse_late=False), CORES), clients(64))
    assert found.outcomes[1, "answered"] < 0.2 * CAPACITY * 200


def test_who_is_refused_is_refused_at_once() -> None:
    found = settled(Simulation(limits(), CORES), clients(64))
    at_once = sum(seconds == 0 for seconds in found.refused_after)
    assert at_once >= 0.95 * len(found.refused_after) > 0


def test_few_requests_are_worked_on_at_a_time_where_more_are_slower_and_many_where_they_are_not() -> None:
    slow, quick = Simulation(limits(), CORES), Simulation(limits(), 1000.0)
    for simulation in (slow, quick):
        settled(simulation, clients(64))
    assert slow.gate.limit("/verify") <= 8
    assert quick.gate.limit("/verify") == 32


def test_the_urgent_are_answered_as_if_there_were_no_others() -> None:
    found = settled(Simulation(limits(0.0, 0.0), CORES), [*clients(2), *clients(64, priority=2)])
    refused = [code for (priority, code) in found.outcomes if priority == 1 and code != "answered"]
    assert refused == []
    assert found.outcomes[2, "answered"] > 0


def test_a_floor_is_kept_while_the_urgent_could_use_all() -> None:
    found = settled(Simulation(limits(0.0, 0.1), CORES), [*clients(64), *clients(16, priority=2)], 400)
    answered = {priority: found.outcomes[priority, "answered"] for priority in (1, 2)}
    assert 0.08 <= answered[2] / sum(answered.values()) <= 0.15
    assert found.outcomes[1, "late"] == found.outcomes[2, "late"] == 0


def test_without_a_floor_the_least_urgent_get_what_the_others_leave() -> None:
    found = settled(Simulation(limits(0.0, 0.0), CORES), [*clients(64), *clients(16, priority=2)])
    assert found.outcomes[2, "answered"] < 0.03 * found.outcomes[1, "answered"]


def test_short_requests_beside_long_ones_are_told_by_what_each_takes() -> None:
    load = [*clients(32), *clients(32, work=0.05, kind="/embed")]
    found = settled(Simulation(limits(), CORES), load)
    assert found.outcomes[1, "late"] == found.outcomes[1, "waited in vain"] == 0


def test_long_requests_that_take_too_long_keep_no_short_ones_out() -> None:
    """There are more long ones than can be answered, so that of those few are worked on at a time."""
    short = [Client(2, 0.01, SLA, "/tiny") for _ in range(16)]
    found = settled(Simulation(limits(0.0, 0.0), CORES), [*clients(32), *short])
    assert {code for priority, code in found.outcomes if priority == 2} == {"answered"}
    assert found.outcomes[2, "answered"] > 20_000
    assert found.outcomes[1, "answered"] > 0.2 * CAPACITY * 200
    assert found.outcomes[1, "late"] == found.outcomes[1, "waited in vain"] == 0


def test_after_a_stall_requests_are_answered_as_before() -> None:
    simulation = Simulation(limits(), CORES)
    simulation.run(clients(16), 60)
    simulation.cores = 1e-6
    simulation.run([], 20)
    simulation.cores = CORES
    simulation.run([], 60)
    simulation.outcomes.clear()
    simulation.run([], 200)
    assert simulation.outcomes[1, "answered"] >= 0.95 * CAPACITY * 200
    assert simulation.outcomes[1, "late"] == 0
