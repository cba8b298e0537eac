"""The parts of `tandem bench overload` on a real Triton: its model, its client processes, and what they are told."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator

import pytest

from serve_app.bench.error import BenchError
from serve_app.bench.overload.clients import Clients, Side, clients
from serve_app.bench.overload.deployment import CODE, MODEL, TIERS, Sleeper, bare_config, policies
from serve_app.bench.overload.goals import tallies
from serve_app.bench.overload.loads import Load, bursts
from serve_app.bench.server import GrpcServer
from serve_app.triton.channel import grpc_channel
from tests.triton.conftest import Repository

# What is taken of `interactive` alone, which goes first, takes longer than that.
IMPATIENT_BULK = f"""
  priority_queue_policy {{
    key: {TIERS["bulk"]}
    value {{ timeout_action: REJECT default_timeout_microseconds: 50000 max_queue_size: 96 }}
  }}"""


@pytest.fixture
async def senders() -> AsyncIterator[Clients]:
    async with clients(2) as processes:
        yield processes


async def test_what_the_clients_sent_is_what_triton_counted(senders: Clients, repository: Repository, start) -> None:
    """Of so many at once some are refused, at once or when they have waited for too long; nothing else happens."""
    version = repository.folder / MODEL / "1"
    version.mkdir(parents=True)
    shutil.copy(CODE, version / "model.py")
    (version.parent / "config.pbtxt").write_text(bare_config(Sleeper(0.02), policies() + IMPATIENT_BULK))
    server = await start()
    try:
        async with grpc_channel(server.address) as channel:
            asked = GrpcServer(channel, server.address)
            side = Side("Triton", server.address, priorities=TIERS)
            few = await senders.offer(Load("few", 0.2, {"standard": bursts(16, 2, 0.1)}), side)
            before = (await asked.statistics())[MODEL]
            load = Load("many", 0.1, {"interactive": bursts(200, 1, 1), "bulk": bursts(200, 1, 1)})
            many = await senders.offer(load, side)
            work = (await asked.statistics())[MODEL].since(before)
    finally:
        await server.stop()
    assert [shot.kind for shot in few.shots] == ["answered"] * 32
    found = tallies(many)
    assert [each.answered + each.refused for each in found.values()] == [200, 200]
    assert found["interactive"].answered
    assert found["bulk"].refused
    assert work.requests == sum(each.answered for each in found.values())
    # It counts what it drops, and not what it never takes.
    assert 0 < work.dropped < sum(each.refused for each in found.values())
    assert many.client_cpu > 0
    assert many.busy > 0


async def test_a_client_without_a_service_says_so_at_once(senders: Clients) -> None:
    with pytest.raises(BenchError, match="a client process ended before its time"):
        await senders.offer(Load("few", 0.1, {"standard": (0.0,)}), Side("nobody", "127.0.0.1:1"))
