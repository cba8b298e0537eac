"""A real server from its start to its end, however either goes."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import psutil
import pytest

from serve_app.triton import guard, launch
from serve_app.triton.error import TritonError
from tests.rules.case import merged, report
from tests.rules.server_cases import triton

INDEX = {"index": np.array([[1, 2]])}
HANGING_CODE = """
import time

class TritonPythonModel:
    def initialize(self, args):
        time.sleep(600)

    def execute(self, requests):
        return []
"""
UNIMPORTABLE_CODE = "import no_such_module\nfrom no_such_module import TritonPythonModel\n"
# Says that it runs, and answers its input when it may finish.
PATIENT_CODE = """
import pathlib
import time
import triton_python_backend_utils as pb_utils
from serve_app.triton.backend.tensors import read, write

FOLDER = pathlib.Path("{}")

class TritonPythonModel:
    def execute(self, requests):
        (FOLDER / "running").touch()
        while not (FOLDER / "finish").exists():
            time.sleep(0.01)
        return [pb_utils.InferenceResponse([write("y", read(request, "x"))]) for request in requests]
"""
PATIENT_CONFIG = """
max_batch_size: 0
input [{name: "x" data_type: TYPE_FP32 dims: [1]}]
output [{name: "y" data_type: TYPE_FP32 dims: [1]}]
"""
OWNER_CODE = """
import asyncio
import sys
from pathlib import Path
from serve_app.triton.find import find
from serve_app.triton.server import TritonServer

async def main():
    unpacked, repository, logs = map(Path, sys.argv[1:])
    server = await TritonServer.start(
        find(unpacked),
        repository,
        models=["lookup"],
        ready_timeout=60,
        exit_timeout=10,
        log_directory=logs,
        environment={},
    )
    print(server.pid, server.prefix, flush=True)
    await server.wait_exit()

asyncio.run(main())
"""


@dataclass
class Owned:
    """A server that another process than the tests' owns."""

    owner: subprocess.Popen
    server: int
    guard: int
    prefix: str


def test_a_ready_server_serves_on_loopback_only(server, infer):
    assert infer(server.address, "lookup", INDEX, "value").tolist() == [[2, 4]]
    sockets = psutil.Process(server.pid).net_connections()
    listening = {":".join(map(str, s.laddr)) for s in sockets if s.status == psutil.CONN_LISTEN}
    assert listening == {f"::ffff:{server.address}"}
    assert server.address.startswith("127.0.0.1:")


def test_models_run_one_thread_each_and_see_the_environment_given(server, stub_of):
    environment = psutil.Process(stub_of(server.prefix, "lookup")).environ()
    assert environment["CUDA_VISIBLE_DEVICES"] == ""
    assert environment["OMP_NUM_THREADS"] == "1"


async def test_a_port_that_another_server_took_meanwhile_is_given_up_for_the_next(
    server, start, repository, infer, monkeypatch
):
    repository.add_lookup()
    ports = iter([int(server.address.split(":")[1]), launch.free_port()])
    monkeypatch.setattr(launch, "free_port", lambda: next(ports))
    own = await start()
    try:
        assert own.address != server.address
        assert await own.probe(5)
    finally:
        await own.stop()


async def test_a_repository_whose_path_is_not_ascii_is_served(start, repository, infer):
    repository.add_lookup()
    elsewhere = repository.folder.with_name("mödels 漢")
    repository.folder.rename(elsewhere)
    server = await start(folder=elsewhere)
    assert infer(server.address, "lookup", INDEX, "value").tolist() == [[2, 4]]
    await server.stop(0)


async def test_a_server_that_dies_while_it_loads_is_said_to_have_and_how(start, repository):
    """Triton 2.51 aborts on a metric tag that Prometheus does not take for a label."""
    repository.add_lookup()
    config = repository.folder / "lookup" / "config.pbtxt"
    config.write_text(config.read_text() + 'metric_tags {key: "cost-centre" value: "1"}')
    with pytest.raises(TritonError, match="it was killed by SIGABRT"):
        await asyncio.wait_for(start(), 30)


async def test_a_killed_server_leaves_no_folders_of_its_models(start, repository):
    before = set(Path("/tmp").glob("python_env_*"))
    repository.add_lookup()
    server = await start()
    assert set(Path("/tmp").glob("python_env_*")) - before
    await server.stop(0)
    assert set(Path("/tmp").glob("python_env_*")) <= before


@pytest.mark.parametrize("drain", [0, 10], ids=["killed", "in order"])
async def test_the_end_of_a_server_leaves_those_that_started_after_it_as_they_are(start, repository, drain):
    """Triton 2.51 aborts at its end where the folder of its models' environments is gone."""
    repository.add_lookup()
    first = await start()
    second = await start()
    await first.stop(drain)
    assert await second.stop() == "ended with status 0, because it was told to stop"


async def test_a_start_removes_what_a_dead_server_left(start, repository):
    dead = subprocess.Popen(["sleep", "60"])
    left = Path("/dev/shm") / f"{guard.name_prefix(dead.pid)}segment"
    left.touch()
    dead.kill()
    dead.wait()
    repository.add_lookup()
    server = await start()
    assert not left.exists()
    assert await server.stop(0) == "was killed by SIGKILL, because it was told to stop"


async def test_a_model_that_cannot_be_imported_is_named_with_the_reason_and_nothing_is_left(
    start, repository, processes
):
    repository.add("broken", UNIMPORTABLE_CODE, "max_batch_size: 0")
    with pytest.raises(TritonError) as failure:
        await start()
    assert str(failure.value).splitlines() == [
        "Triton did not start: it could not load its models.",
        "failed to load 'broken' version 1: Internal: ModuleNotFoundError: No module named 'no_such_module' "
        "(model_repository/broken/1/model.py, line 1)",
    ]
    assert processes(str(repository.folder)) == {}


async def test_a_model_that_never_finishes_loading_ends_the_start_at_its_deadline(start, repository, processes):
    repository.add("slow", HANGING_CODE, "max_batch_size: 0")
    with pytest.raises(TritonError, match=r"^Triton did not start: it was not ready in time\."):
        await start(ready_timeout=1.5)
    assert processes(str(repository.folder)) == {}


async def test_no_machine_starts_twenty_processes_within_the_least_that_the_validator_asks_for(start, repository):
    repository.add_reverse()
    config = repository.folder / "reverse" / "config.pbtxt"
    config.write_text(config.read_text().replace("count: 1", "count: 20"))
    least = report(merged(triton(startup_timeout="500ms"), {"models": {"m": {"instances": 20}}}))
    assert "T156" not in [finding.code for finding in least.findings]
    with pytest.raises(TritonError, match="it was not ready in time"):
        await start(ready_timeout=0.5)


async def test_a_repository_that_would_make_triton_hang_is_refused_before_the_start(start, repository):
    repository.add_lookup()
    (repository.folder / "lookup" / "1" / "model.py").unlink()
    with pytest.raises(TritonError, match=r"cannot be loaded:\n.*model\.py is missing"):
        await start()


async def test_a_cancelled_start_leaves_nothing(start, repository, processes, eventually):
    repository.add("slow", HANGING_CODE, "max_batch_size: 0")
    starting = asyncio.create_task(start())
    await asyncio.to_thread(eventually, lambda: processes("slow/1/model.py"))
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    assert processes(str(repository.folder)) == {}


async def test_stop_lets_the_request_in_flight_finish_and_leaves_nothing(
    start, repository, infer, belongings, eventually, tmp_path
):
    repository.add("patient", PATIENT_CODE.format(tmp_path), PATIENT_CONFIG)
    server = await start()
    left = belongings(server.prefix)
    request = asyncio.to_thread(infer, server.address, "patient", {"x": np.array([7.0], np.float32)}, "y")
    waiting = asyncio.create_task(request)
    await asyncio.to_thread(eventually, (tmp_path / "running").exists)
    stopping = asyncio.create_task(server.stop())
    await asyncio.to_thread(eventually, lambda: "Signal (15)" in (tmp_path / "logs" / log_name()).read_text())
    assert not waiting.done()
    (tmp_path / "finish").touch()
    assert (await waiting).tolist() == [7.0]
    assert await stopping == "ended with status 0, because it was told to stop"
    assert not server.alive()
    assert not await server.probe(1)
    assert left() == []


# -- SIGKILL to each process of the chain


async def test_a_killed_server_is_noticed_and_leaves_nothing(start, repository, belongings):
    repository.add_lookup()
    server = await start()
    left = belongings(server.prefix)
    os.kill(server.pid, signal.SIGKILL)
    assert await asyncio.wait_for(server.wait_exit(), 5) == "was killed by SIGKILL"
    assert left() == []


async def test_a_killed_guard_takes_the_server_along_and_the_owner_cleans_up(start, repository, belongings):
    repository.add_lookup()
    server = await start()
    left = belongings(server.prefix)
    os.kill(psutil.Process(server.pid).ppid(), signal.SIGKILL)
    assert await asyncio.wait_for(server.wait_exit(), 5) == "was killed together with its guard"
    assert left() == []


async def test_a_killed_model_process_ends_the_server_at_once_because_triton_would_never_replace_it(
    start, repository, belongings, stub_of
):
    repository.add_lookup()
    server = await start()
    left = belongings(server.prefix)
    os.kill(stub_of(server.prefix, "lookup"), signal.SIGKILL)
    ended = await asyncio.wait_for(server.wait_exit(), 5)
    assert ended == "was killed by SIGKILL, because the process of its model lookup ended"
    assert left() == []


@pytest.fixture
def owned(unpacked, repository, tmp_path) -> Iterator[Owned]:
    repository.add_lookup()
    with subprocess.Popen(
        [sys.executable, "-c", OWNER_CODE, str(unpacked), str(repository.folder), str(tmp_path / "logs")],
        stdout=subprocess.PIPE,
        start_new_session=True,
    ) as owner:
        server, prefix = owner.stdout.readline().decode().split()
        yield Owned(owner, int(server), psutil.Process(int(server)).ppid(), prefix)
        owner.kill()


def test_nothing_outlives_a_killed_owner(owned, belongings, eventually):
    left = belongings(owned.prefix)
    owned.owner.kill()
    eventually(lambda: not left())


def test_nothing_outlives_the_killed_process_group_of_an_owner(owned, belongings, eventually):
    assert os.getpgid(owned.server) == owned.owner.pid  # Ray kills a worker's group
    left = belongings(owned.prefix)
    os.killpg(owned.owner.pid, signal.SIGKILL)
    eventually(lambda: not left())


def test_when_owner_and_guard_are_killed_processes_end_and_the_next_start_removes_the_memory(
    owned, belongings, processes, eventually
):
    left = belongings(owned.prefix)
    owned.owner.kill()
    os.kill(owned.guard, signal.SIGKILL)
    eventually(lambda: not processes(owned.prefix))
    owned.owner.wait()
    (Path("/dev/shm") / f"{owned.prefix}segment").touch()  # a model's process that is killed as well leaves its own
    assert len(left()) >= 2  # memory and the scratch folder
    assert owned.prefix in guard.remove_orphans()
    assert left() == []


def log_name() -> str:
    return f"triton-{os.getpid()}.log"
