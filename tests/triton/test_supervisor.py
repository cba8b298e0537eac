from __future__ import annotations

import asyncio
import os
import selectors
import signal
from collections.abc import Coroutine
from typing import Any

import pytest

from serve_app.triton.error import TritonError
from serve_app.triton.stall import Work
from serve_app.triton.supervisor import RestartPolicy, TritonSupervisor
from serve_app.triton.watchdog import Watchdog

POLICY = RestartPolicy(probe_interval=1, probe_timeout=2, unresponsive_after=5, max_restarts=3, window=60)


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop whose clock jumps to the next timer instead of waiting for it."""

    def __init__(self) -> None:
        self._now = 0.0
        selector = selectors.SelectSelector()
        select = selector.select

        def jump(timeout: float | None = None):
            if timeout is None:
                raise AssertionError("everything waits, and no timer runs")
            self._now += max(timeout, 0.0)
            return select(0)

        selector.select = jump
        super().__init__(selector)

    def time(self) -> float:
        return self._now


def virtually(test: Coroutine[Any, Any, None]) -> None:
    loop = VirtualLoop()
    try:
        loop.run_until_complete(test)
    finally:
        loop.close()


class FakeServer:
    """Ends and falls silent when told."""

    def __init__(self, number: int):
        self.address = f"server-{number}"
        self.silent = False
        self.stopped: list[float | None] = []
        self.at_work = Work(pending=0, executions=0)
        self.reloaded: list[str] = []
        self._ended: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    def end(self, how: str = "was killed by SIGKILL") -> None:
        self._ended.set_result(how)

    def alive(self) -> bool:
        return not self._ended.done()

    async def probe(self, timeout: float) -> bool:
        if self.silent:
            await asyncio.sleep(timeout)
        return self.alive() and not self.silent

    async def wait_exit(self) -> str:
        return await asyncio.shield(self._ended)

    async def work(self, timeout: float) -> dict[str, Work]:
        return {"m": self.at_work}

    async def reload(self, model: str, timeout: float) -> None:
        self.reloaded.append(model)

    async def stop(self, drain: float | None = None) -> str:
        self.stopped.append(drain)
        if self.alive():
            self.end("ended")
        return await self.wait_exit()


class Factory:
    """Starts fake servers, each in a second; fails where `failures` has a reason left."""

    def __init__(self) -> None:
        self.servers: list[FakeServer] = []
        self.failures: list[str] = []

    async def __call__(self) -> FakeServer:
        await asyncio.sleep(1)
        if self.failures:
            raise TritonError(self.failures.pop(0))
        self.servers.append(FakeServer(len(self.servers) + 1))
        return self.servers[-1]


def now() -> float:
    return asyncio.get_running_loop().time()


async def started() -> tuple[TritonSupervisor, Factory]:
    factory = Factory()
    supervisor = TritonSupervisor(factory, POLICY)
    await supervisor.start()
    return supervisor, factory


def test_a_server_that_ends_is_started_again_at_once_and_its_address_is_waited_for():
    async def scenario():
        supervisor, factory = await started()
        assert await supervisor.address(now()) == "server-1"
        before = now()
        factory.servers[0].end()
        assert await supervisor.address(now() + 10) == "server-2"
        assert now() - before == pytest.approx(1)
        await supervisor.stop()

    virtually(scenario())


def test_a_server_that_no_longer_answers_is_killed_and_replaced():
    async def scenario():
        supervisor, factory = await started()
        before = now()
        factory.servers[0].silent = True
        assert await supervisor.address(now() + 30, other_than="server-1") == "server-2"
        assert factory.servers[0].stopped == [0]
        assert POLICY.unresponsive_after < now() - before < POLICY.unresponsive_after + 5
        await supervisor.stop()

    virtually(scenario())


def test_a_server_that_is_silent_for_a_moment_stays():
    async def scenario():
        supervisor, factory = await started()
        factory.servers[0].silent = True
        await asyncio.sleep(4)
        factory.servers[0].silent = False
        await asyncio.sleep(30)
        assert factory.servers[0].alive()
        await supervisor.stop()

    virtually(scenario())


def test_an_owner_that_could_not_probe_for_a_while_does_not_blame_the_server():
    async def scenario():
        supervisor, factory = await started()
        asyncio.get_running_loop()._now += 60  # the machine slept
        factory.servers[0].silent = True
        await asyncio.sleep(2.5)
        factory.servers[0].silent = False
        await asyncio.sleep(30)
        assert factory.servers[0].alive()
        await supervisor.stop()

    virtually(scenario())


def test_a_server_whose_model_stands_still_after_it_was_reloaded_is_killed_and_replaced():
    async def scenario():
        factory = Factory()
        supervisor = TritonSupervisor(factory, POLICY, Watchdog({"m": 10.0}, 60, lambda stall: None))
        await supervisor.start()
        before = now()
        factory.servers[0].at_work = Work(pending=1, executions=7)
        assert await supervisor.address(now() + 60, other_than="server-1") == "server-2"
        assert factory.servers[0].reloaded == ["m"]
        assert factory.servers[0].stopped == [0]
        assert now() - before == pytest.approx(2 * 10 + 1, abs=5)
        await asyncio.sleep(60)
        assert factory.servers[1].alive()
        await supervisor.stop()

    virtually(scenario())


def test_whoever_knows_of_the_end_first_gets_the_next_address():
    async def scenario():
        supervisor, factory = await started()
        asking = asyncio.create_task(supervisor.address(now() + 10, other_than="server-1"))
        await asyncio.sleep(2)
        assert not asking.done()
        factory.servers[0].end()
        assert await asking == "server-2"
        await supervisor.stop()

    virtually(scenario())


def test_an_address_that_does_not_come_in_time_is_an_error():
    async def scenario():
        supervisor, factory = await started()
        factory.servers[0].end()
        before = now()
        with pytest.raises(TritonError, match="was not ready in time"):
            await supervisor.address(now() + 0.5)
        assert now() - before == pytest.approx(0.5)
        await supervisor.stop()

    virtually(scenario())


def test_after_too_many_restarts_it_gives_up_and_says_why():
    async def scenario():
        supervisor, factory = await started()
        factory.failures = ["no memory", "no memory", "no luck"]
        factory.servers[0].end()
        with pytest.raises(TritonError, match="given up"):
            await supervisor.address(now() + 100)
        assert str(supervisor.failure) == (
            "Triton is given up after 3 restarts within 60 s; last, it could not be started: no luck"
        )
        assert len(factory.servers) == 1
        await supervisor.stop()

    virtually(scenario())


def test_restarts_that_are_far_apart_do_not_count_together():
    async def scenario():
        supervisor, factory = await started()
        for number in range(1, 11):
            factory.servers[-1].end()
            assert await supervisor.address(now() + 10) == f"server-{number + 1}"
            await asyncio.sleep(25)
        assert supervisor.failure is None
        await supervisor.stop()

    virtually(scenario())


def test_a_first_start_that_fails_is_the_callers_to_hear():
    async def scenario():
        factory = Factory()
        factory.failures = ["no model"]
        with pytest.raises(TritonError, match="no model"):
            await TritonSupervisor(factory, POLICY).start()

    virtually(scenario())


def test_stop_drains_the_server_and_starts_no_other():
    async def scenario():
        supervisor, factory = await started()
        await supervisor.stop(8)
        assert factory.servers[0].stopped == [8]
        with pytest.raises(TritonError, match="stopped"):
            await supervisor.address(now() + 100)
        await asyncio.sleep(100)
        assert len(factory.servers) == 1

    virtually(scenario())


async def test_a_real_server_is_back_after_sigkill_and_after_sigstop(start, repository):
    repository.add_lookup()
    servers = []

    async def start_another():
        servers.append(await start())
        return servers[-1]

    policy = RestartPolicy(probe_interval=0.1, probe_timeout=0.5, unresponsive_after=0.5)
    supervisor = TritonSupervisor(start_another, policy)
    await supervisor.start()
    try:
        for number in (signal.SIGKILL, signal.SIGSTOP):
            lost = servers[-1].address
            os.kill(servers[-1].pid, number)
            address = await supervisor.address(now() + 20, other_than=lost)
            assert address == servers[-1].address != lost
            assert await servers[-1].probe(5)
    finally:
        await supervisor.stop(2)
    assert [server.alive() for server in servers] == [False, False, False]
