"""The guard with commands in place of a server: what it does when they, or its owner, end in any way."""

from __future__ import annotations

import os
import select
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from mmap import ACCESS_READ, mmap
from pathlib import Path

import pytest

from serve_app.triton import guard


class Guarded:
    """A guard, owned by the test, around a shell script or another program."""

    def __init__(
        self,
        folder: Path,
        script: str,
        *,
        program: str = "/bin/sh",
        limit: int = 1 << 20,
        log: Path | None = None,
        memory_limit: int = 0,
    ):
        self.log = log or folder / "server.log"
        self.scratch = folder / "scratch"
        self.scratch.mkdir()
        self.process = subprocess.Popen(
            [
                *(sys.executable, "-I", "-S", guard.__file__),
                *(str(os.getpid()), str(self.log), str(limit), "5", str(memory_limit), str(self.scratch)),
                *(program, "-c", script, "{prefix}"),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self.unread = b""
        _, pid, self.prefix = self.told().split(" ")
        self.server = int(pid)

    def told(self) -> str:
        while b"\n" not in self.unread:
            assert select.select([self.process.stdout], [], [], 20)[0], "the guard says nothing"
            chunk = os.read(self.process.stdout.fileno(), 4096)
            assert chunk, "the guard has ended"
            self.unread += chunk
        line, _, self.unread = self.unread.partition(b"\n")
        return line.decode()

    def order(self, text: str) -> None:
        self.process.stdin.write(text.encode())
        self.process.stdin.flush()

    def close(self) -> None:
        self.process.stdin.close()  # ends it and all that it started
        self.process.wait(10)
        self.process.stdout.close()


@pytest.fixture
def guarded(tmp_path) -> Iterator[Guarded]:
    started: list[Guarded] = []

    def start(script: str, **options) -> Guarded:
        started.append(Guarded(tmp_path, script, **options))
        return started[-1]

    yield start
    for each in started:
        each.close()


def test_the_guard_exits_as_the_server_did(guarded):
    ended = guarded("exit 7")
    assert ended.told() == "exited 7 "
    assert ended.process.wait(5) == 7


def test_a_server_that_is_killed_shows_as_its_signal(guarded):
    killed = guarded("sleep 600 & wait")
    os.kill(killed.server, signal.SIGKILL)
    assert killed.told() == "exited 137 "
    assert killed.process.wait(5) == 137


def test_a_program_that_is_not_there_is_named(guarded):
    ended = guarded("", program="/no/such/server")
    assert {ended.told(), ended.told()} == {
        "log /no/such/server cannot be started: [Errno 2] No such file or directory",
        "exited 127 ",
    }


def test_stop_lets_the_server_finish(guarded):
    server = guarded("trap 'echo finishing; exit 3' TERM; echo up; while :; do sleep 600 & wait; done")
    assert server.told() == "log up"
    server.order("stop 30\n")
    assert server.told() == "log finishing"
    assert server.told() == "exited 3 it was told to stop"


def test_a_server_that_does_not_finish_in_time_is_killed(guarded):
    server = guarded("trap '' TERM; echo up; while :; do sleep 600 & wait; done")
    assert server.told() == "log up"
    server.order("stop 0.2\n")
    assert server.told() == "exited 137 it was told to stop"


def test_a_suspended_server_stops_all_the_same(guarded):
    server = guarded("echo up; sleep 600 & wait")
    assert server.told() == "log up"
    os.kill(server.server, signal.SIGSTOP)
    server.order("stop 30\n")
    assert server.told() == "exited 143 it was told to stop"


def test_sigterm_to_the_guard_is_an_orderly_stop(guarded):
    server = guarded("trap 'exit 0' TERM; echo up; while :; do sleep 600 & wait; done")
    assert server.told() == "log up"
    server.process.terminate()
    assert server.told() == "exited 0 it was told to stop"


def test_when_the_owner_is_gone_the_server_and_its_children_are_killed(guarded, processes, eventually):
    # The child has left its parent, its session and its process group, and ignores SIGTERM.
    server = guarded("trap '' TERM; setsid sh -c 'trap \"\" TERM; echo up; sleep 600 & wait' $0 & wait")
    assert server.told() == "log up"
    eventually(lambda: len(processes(server.prefix)) == 2)  # a shell that becomes sleep is seen twice for a moment
    server.process.stdin.close()
    assert server.told() == "exited 137 its owner ended"
    server.process.wait(5)
    assert processes(server.prefix) == {}


def test_a_server_ends_with_its_guard(guarded, eventually):
    server = guarded("trap '' TERM; exec sleep 600")
    server.process.kill()
    eventually(lambda: not Path(f"/proc/{server.server}").exists())


def test_a_watched_server_ends_with_the_first_of_its_processes(guarded):
    server = guarded("sh -c 'echo $$; sleep 600 & wait' /models/faces/1/model.py & wait; sleep 600 & wait")
    child = int(server.told().removeprefix("log "))
    server.order("watch\n")
    assert server.told() == "watching"
    os.kill(child, signal.SIGSTOP)  # is not its end
    os.kill(child, signal.SIGKILL)
    assert server.told().startswith("exited 137 the process of its model")


def test_a_released_process_that_the_server_has_not_waited_for_yet_does_not_end_it(guarded, tmp_path):
    """Triton waits for it a moment after its end, and the model that was loaded anew may be there before."""
    code = tmp_path / "lookup" / "1" / "model.py"
    code.parent.mkdir(parents=True)
    code.write_text("echo $$; sleep 600 & wait")
    script = f"import subprocess, time; process = subprocess.Popen(['sh', {str(code)!r}]); time.sleep(600)"
    server = guarded(script, program=sys.executable)
    child = int(server.told().removeprefix("log "))
    server.order("watch\nrelease lookup\n")
    assert server.told() == "watching"
    os.kill(child, signal.SIGKILL)
    assert server.told() == "released lookup"
    for _ in range(2):
        server.order("watch\n")
        assert server.told() == "watching"
    server.order("stop 5\n")
    assert server.told() == "exited 143 it was told to stop"


def test_shared_memory_and_scratch_are_gone_with_the_server_and_those_of_others_stay(guarded):
    other = Path("/dev/shm") / f"{guard.name_prefix(os.getpid())}other"
    other.touch()
    try:
        server = guarded("touch /dev/shm/$0segment; echo up; sleep 600 & wait")
        assert server.told() == "log up"
        assert (Path("/dev/shm") / f"{server.prefix}segment").exists()
        server.order("stop 5\n")
        server.process.wait(5)
        assert not list(Path("/dev/shm").glob(f"{server.prefix}*"))
        assert not server.scratch.exists()
        assert other.exists()
    finally:
        other.unlink()


def test_what_the_server_left_behind_ends_though_it_writes_without_end(guarded):
    server = guarded("while :; do echo still here; done & echo $!; sleep 0.2")
    child = int(server.told().removeprefix("log "))
    server.process.stdout.close()  # reads no more of it
    server.process.wait(5)
    assert not Path(f"/proc/{child}").exists()


@pytest.mark.parametrize("another", [False, True], ids=["its own", "perhaps another server's"])
def test_folders_of_models_are_removed_where_no_other_server_can_have_them(guarded, tmp_path, another):
    """The python backend makes one for each server, and nothing tells which of two is whose."""
    names = [f"/tmp/python_env_{os.getpid()}_{number}" for number in (1, 2)]
    library = tmp_path / "libtriton_python.so"
    library.write_bytes(b"x")
    try:
        server = guarded(f"mkdir {' '.join(names)}; echo TRITONBACKEND_ModelInstanceInitialize; sleep 600 & wait")
        assert "Initialize" in server.told()
        with library.open("rb") as file, mmap(file.fileno(), 1, access=ACCESS_READ) as mapped:
            if not another:
                mapped.close()
            server.order("stop 0\n")
            server.process.wait(5)
        assert [Path(name).exists() for name in names] == [another, another]
    finally:
        for name in names:
            shutil.rmtree(name, ignore_errors=True)


def test_the_log_keeps_two_files_of_limited_size_with_the_newest_lines(guarded):
    server = guarded("i=0; while [ $i -lt 20000 ]; do echo I0101 line $i; i=$((i+1)); done", limit=100_000)
    server.process.wait(20)
    older = server.log.with_name("server.log.1")
    assert older.stat().st_size <= 100_000
    assert server.log.stat().st_size <= 100_000
    assert (older.read_text() + server.log.read_text()).endswith("I0101 line 19998\nI0101 line 19999\n")


@pytest.mark.parametrize("log", ["/dev/full", "/no/such/folder/server.log"])
def test_a_log_that_cannot_be_written_costs_lines_not_the_server(guarded, tmp_path, log):
    link = tmp_path / "linked.log"
    link.symlink_to(log)
    server = guarded("i=0; while [ $i -lt 5000 ]; do echo I0101 line $i; i=$((i+1)); done; echo done; exit 5", log=link)
    assert server.told() == "log done"
    assert server.process.wait(5) == 5


def test_an_owner_that_does_not_read_stops_nothing(guarded):
    server = guarded("i=0; while [ $i -lt 30000 ]; do echo told $i; i=$((i+1)); done; exit 6")
    assert server.process.wait(20) == 6  # 300 kB were told into a pipe that holds 64


def test_routine_lines_are_logged_but_not_told(guarded):
    server = guarded(
        "echo 'I1130 14:33:54.024308 7946 x.cc:1] \"loading\"'; echo '| table |'; echo 'E1130 bad'; exit 1"
    )
    assert server.told() == "log E1130 bad"
    assert server.told() == "exited 1 "
    server.process.wait(5)
    assert len(server.log.read_text().splitlines()) == 3


def test_a_server_is_as_nice_as_any_process_where_that_is_permitted(guarded):
    if os.geteuid() != 0:
        pytest.skip("only root may lower niceness")
    server = guarded("nice; sleep 600 & wait")
    assert server.told() == "log 0"


def test_a_server_does_not_push_aside_who_feeds_it(guarded):
    server = guarded("sleep 600 & wait")
    assert os.sched_getscheduler(server.server) == os.SCHED_BATCH


def test_what_dead_owners_left_is_removed_and_what_live_ones_use_stays(tmp_path):
    dead = subprocess.Popen(["sleep", "60"])
    left, used = (Path("/dev/shm") / f"{guard.name_prefix(pid)}segment" for pid in (dead.pid, os.getpid()))
    foreign = Path("/dev/shm") / "tandem-triton-1-99999999-1-segment"  # of another PID namespace
    try:
        for segment in (left, used, foreign):
            segment.touch()
        dead.kill()
        dead.wait()
        guard.remove_orphans()
        assert [segment.exists() for segment in (left, used, foreign)] == [False, True, True]
    finally:
        for segment in (left, used, foreign):
            segment.unlink(missing_ok=True)
