"""Stands between the process that owns a Triton server and the server, and leaves nothing behind when either ends.

Run as `python -I -S guard.py OWNER_PID LOG LOG_LIMIT DRAIN MEMORY_LIMIT SCRATCH COMMAND…`; standard library only, one
thread.
`{prefix}` in the command stands for the prefix of the shared memory that the server and its python backend make.

- stdin is the owner: `stop SECONDS` asks for an orderly end and kills what is left after that time; `watch` says that
  the models are loaded: Triton never replaces a model's process that ends, so the server ends with the first of them.
  `release MODEL` lets the processes that this model has now end, because it is loaded anew: `watch` follows then.
  The end of stdin means that the owner is gone, even by SIGKILL, and kills at once. SIGTERM is `stop DRAIN`.
- stdout tells the owner `started PID PREFIX`, `log LINE` for each line of the server's that is no routine, `watching`
  when it does, `released MODEL` when the last of a model's released processes has ended, and `exited STATUS REASON` as
  soon as the server is. Lines are dropped rather than waited for where the
  owner does not read.
- The server ends when it and the processes of its models hold more than MEMORY_LIMIT bytes of their own, 0 being no
  limit: without one the kernel, or Ray, ends whoever is in the way.
- The server's output goes to LOG, of which two files of LOG_LIMIT bytes are kept. A full disk loses lines, never
  the server.
- The server stays in the owner's process group and dies with the guard. The guard itself leaves that group, so that it
  can clean up after a SIGKILL to the whole group.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import select
import shutil
import signal
import stat
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

_PR_SET_PDEATHSIG = 1  # linux/prctl.h
_PR_SET_CHILD_SUBREAPER = 36
_SHARED_MEMORY = Path("/dev/shm")
_SCHEME = "tandem-triton"
_OWNED = re.compile(rf"{_SCHEME}-(\d+)-(\d+)-(\d+)-")
# Triton's routine: informational lines, and the tables that it prints between them.
_ROUTINE = re.compile(rb"I\d{4} |[+|]|\s*$")
# What the python backend logs first, when its folder is there.
_PYTHON_STARTS = b"TRITONBACKEND_ModelInstanceInitialize"
_MEASURED_EVERY_S = 1.0
_LINE_LIMIT = 4000  # with the word before it less than PIPE_BUF, so that a line is written whole or not at all


# -- what a guard or owner leaves behind


def name_prefix(pid: int) -> str:
    """What the names of everything that belongs to process `pid` begin with.

    The process is named by its PID namespace (containers may share /dev/shm), its pid and its start time.
    """
    start = _start_time(pid)
    if start is None:
        raise ProcessLookupError(pid)
    return f"{_SCHEME}-{_pid_namespace()}-{pid}-{start}-"


def sweep(prefix: str) -> None:
    """Kill every process started with `prefix` in its arguments, wait for its end, and remove its shared memory."""
    for pid in list(_processes_with(prefix)):
        try:
            handle = os.pidfd_open(pid)
        except ProcessLookupError:
            continue
        try:
            signal.pidfd_send_signal(handle, signal.SIGKILL)
            select.select([handle], [], [], 5)
        except ProcessLookupError:
            continue
        finally:
            os.close(handle)
    remove_segments(prefix)


def remove_segments(prefix: str) -> None:
    """Remove the shared memory whose name begins with `prefix`."""
    for segment in _SHARED_MEMORY.glob(f"{prefix}*"):
        segment.unlink(missing_ok=True)


def remove_orphans() -> list[str]:
    """Remove this user's shared memory and scratch folders whose guard or owner is dead; answer their prefixes."""
    orphans = set()
    for folder in (_SHARED_MEMORY, Path(tempfile.gettempdir())):
        for entry in folder.glob(f"{_SCHEME}-*"):
            found = _OWNED.match(entry.name)
            if found is None or not _is_own(entry) or int(found[1]) != _pid_namespace():
                continue
            if _start_time(int(found[2])) != found[3]:
                orphans.add(found[0])
                if entry.is_dir():
                    shutil.rmtree(entry, ignore_errors=True)
                else:
                    sweep(found[0])
    return sorted(orphans)


def _is_own(entry: Path) -> bool:
    try:
        status = entry.lstat()
    except FileNotFoundError:
        return False
    return status.st_uid == os.geteuid() and not stat.S_ISLNK(status.st_mode)


def _start_time(pid: int) -> str | None:
    """Clock ticks from boot to the start of a process that has not ended (proc(5), field 22)."""
    fields = _stat_fields(pid)
    return None if fields is None or fields[0] in "ZX" else fields[19]


def _stat_fields(pid: int) -> list[str] | None:
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return text.rpartition(")")[2].split()


def own_memory(pid: int) -> int:
    """Bytes that a process holds in memory and shares with no file or process (proc(5), statm); 0 where it ended."""
    try:
        _, resident, shared, *_ = Path(f"/proc/{pid}/statm").read_text().split()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return (int(resident) - int(shared)) * os.sysconf("SC_PAGE_SIZE")


def _pid_namespace() -> int:
    return os.stat("/proc/self/ns/pid").st_ino


def _pids() -> Iterator[int]:
    return (int(entry) for entry in os.listdir("/proc") if entry.isdigit())


def _children(parent: int) -> Iterator[int]:
    """The child processes of `parent`, also those that have ended and were not waited for."""
    for pid in _pids():
        fields = _stat_fields(pid)
        if fields is not None and int(fields[1]) == parent:
            yield pid


def _processes_with(prefix: str) -> Iterator[int]:
    for pid in _pids():
        process = Path(f"/proc/{pid}")
        try:
            mine = process.stat().st_uid == os.geteuid() and pid != os.getpid()
            if mine and prefix.encode() in (process / "cmdline").read_bytes():
                yield pid
        except (FileNotFoundError, ProcessLookupError):
            continue


# -- the program


class RotatingLog:
    """Appends to a file and keeps two of `limit` bytes; loses what cannot be written."""

    def __init__(self, path: Path, limit: int):
        self._path = path
        self._limit = limit
        self._file: int | None = None
        self._size = 0

    def write(self, data: bytes) -> None:
        try:
            if self._file is not None and self._size + len(data) > self._limit:
                os.close(self._file)
                self._file = None
                os.replace(self._path, f"{self._path}.1")
            if self._file is None:
                self._file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
                self._size = os.fstat(self._file).st_size
            self._size += os.write(self._file, data)
        except OSError:  # the disk is full or the folder gone: the server matters more
            return


class _Process:
    """One process of a model; `released` where it may end."""

    def __init__(self, pid: int, model: str):
        self.pid = pid
        self.model = model
        self.released = False


class Guard:
    """One server, from start to its last trace."""

    def __init__(self, owner: int, log: RotatingLog, drain: float, memory_limit: int, command: list[str]):
        self._owner = owner
        self._log = log
        self._drain = drain
        self._memory_limit = memory_limit
        self._measured = 0.0
        self._prefix = name_prefix(os.getpid())
        self._command = [part.replace("{prefix}", self._prefix) for part in command]
        self._poll = select.poll()
        self._orders = b""
        self._line = b""
        self._kill_at: float | None = None
        self._server = 0
        self._status: int | None = None
        self._reason = ""
        self._models: dict[int, _Process] = {}  # by their pidfds
        self._let_go: set[int] = set()  # released ones that have ended, and for which the server may yet have to wait
        self._others: set[Path] = set()
        self._neighbours: set[int] = set()
        self._environments: Path | None = None

    def run(self) -> int:
        """Start the server, stay until it has ended, clean up; answer the status to exit with, 128 + N for signal N."""
        _prctl(_PR_SET_CHILD_SUBREAPER, 1)  # processes that the server leaves behind become children of the guard
        owner_group = os.getpgrp()
        os.setpgid(0, 0)
        with contextlib.suppress(PermissionError):
            os.setpriority(os.PRIO_PROCESS, 0, 0)  # Ray's workers run at 15, and children inherit that
        with contextlib.suppress(PermissionError):
            # Its threads then do not push aside, when they wake, whoever feeds them: more requests get through.
            os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
        woken, wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(wake)
        for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: None)
        os.set_blocking(1, False)
        output, output_end = os.pipe2(os.O_CLOEXEC)
        os.set_blocking(output, False)  # the server's end blocks, or a burst of lines would fail there
        self._neighbours = set(_python_servers())
        self._others = set(_environments())
        self._server = self._start(output_end, owner_group)
        os.close(output_end)
        self._tell(f"started {self._server} {self._prefix}".encode())

        for source in (0, woken, output):
            self._poll.register(source, select.POLLIN)
        while self._status is None:
            for source, _ in self._poll.poll(self._patience() * 1000):
                if not self._attend(source, woken, output):
                    self._poll.unregister(source)
            if os.getppid() != self._owner:  # a forked process of the owner may hold the other end of stdin open
                self._kill("its owner ended")
            if self._kill_at is not None and time.monotonic() >= self._kill_at:
                self._kill(self._reason)
            if self._memory_limit and time.monotonic() - self._measured >= _MEASURED_EVERY_S:
                self._measure()
            self._reap()
        self._read_output(output)  # what it wrote is in the pipe, which holds no more; what it left behind may write on
        self._tell(f"exited {self._status} {self._reason}".encode())
        self._end_stragglers()
        while self._read_output(output):
            pass
        if self._line:
            self._tell(b"log " + self._line)
        remove_segments(self._prefix)
        for folder in [*self._unclaimed()] if self._environments is None else [self._environments]:
            with contextlib.suppress(OSError):  # the server has removed it itself, or there is something in it
                folder.rmdir()
        return self._status

    def _attend(self, source: int, woken: int, output: int) -> bool:
        """Read what there is to read; False where it was the last."""
        if source == output:
            return self._read_output(output)
        if source == woken:
            if {signal.SIGTERM, signal.SIGINT} & set(os.read(woken, 512)):
                self._stop(self._drain)
            return True
        if source in self._models:
            self._model_ended(source)
            return False
        more = self._read_orders()
        if not more:
            self._kill("its owner ended")
        return more

    def _start(self, output: int, owner_group: int) -> int:
        guard = os.getpid()
        pid = os.fork()
        if pid == 0:
            try:
                _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
                os.setpgid(0, owner_group)
                if os.getppid() == guard:
                    self._become_server(output)
            except OSError as error:
                os.write(output, f"{self._command[0]} cannot be started: {error}\n".encode())
            finally:
                os._exit(127)
        return pid

    def _become_server(self, output: int) -> NoReturn:
        nothing = os.open(os.devnull, os.O_RDONLY)
        for source, target in ((nothing, 0), (output, 1), (output, 2)):
            os.dup2(source, target)
        for number in (signal.SIGPIPE, signal.SIGXFSZ):  # which Python ignores, and a new program would inherit that
            signal.signal(number, signal.SIG_DFL)
        os.execv(self._command[0], self._command)

    def _patience(self) -> float:
        return 1.0 if self._kill_at is None else min(1.0, max(0.0, self._kill_at - time.monotonic()))

    def _read_output(self, output: int) -> bool:
        """Log what the server wrote; False where there is no more."""
        try:
            chunk = os.read(output, 65536)
        except BlockingIOError:
            return False
        self._log.write(chunk)
        *lines, self._line = (self._line + chunk).split(b"\n")
        self._line = self._line[:_LINE_LIMIT]
        for line in lines:
            if not _ROUTINE.match(line):
                self._tell(b"log " + line[:_LINE_LIMIT])
        if self._environments is None and any(_PYTHON_STARTS in line for line in lines):
            self._environments = self._own_environments()
        return bool(chunk)

    def _own_environments(self) -> Path | None:
        """The folder that the server's python backend has made; None where it could be another server's.

        Triton aborts when its own is gone at its end, so another's must not be taken for this one's.
        """
        made = set(_environments()) - self._others
        return made.pop() if len(made) == 1 else None

    def _unclaimed(self) -> set[Path]:
        """The folders of python backends that have come since the start and that no server has any more."""
        made = {folder for folder in _environments() if _is_own(folder)} - self._others
        # Seen after the folders: who comes now has none of them.
        return made if made and not set(_python_servers()) - self._neighbours else set()

    def _read_orders(self) -> bool:
        chunk = os.read(0, 4096)
        *orders, self._orders = (self._orders + chunk).split(b"\n")
        for order in orders:
            verb, _, argument = order.partition(b" ")
            if verb == b"stop":
                self._stop(float(argument))
            elif verb == b"watch":
                self._watch()
                self._tell(b"watching")
            elif verb == b"release":
                self._release(argument.decode())
        return bool(chunk)

    def _tell(self, line: bytes) -> None:
        try:
            os.write(1, line + b"\n")
        except (BlockingIOError, BrokenPipeError):
            return

    def _stop(self, drain: float) -> None:
        if self._status is None:
            self._reason = "it was told to stop"
            os.kill(self._server, signal.SIGTERM)
            os.kill(self._server, signal.SIGCONT)  # a stopped process would sleep through its last seconds
            self._kill_at = time.monotonic() + drain

    def _kill(self, reason: str) -> None:
        self._kill_at = None
        if self._status is None:
            self._reason = self._reason or reason
            os.kill(self._server, signal.SIGKILL)

    def _measure(self) -> None:
        self._measured = time.monotonic()
        held = {"the server": own_memory(self._server)}
        for process in self._models.values():
            held[process.model] = held.get(process.model, 0) + own_memory(process.pid)
        if (total := sum(held.values())) > self._memory_limit:
            most = max(held, key=lambda name: held[name])
            limit = self._memory_limit >> 20
            self._kill(f"it held {total >> 20} MiB, more than its limit of {limit}; {most} {held[most] >> 20} of them")

    def _watch(self) -> None:
        """Notice the end of every process of the server, which are its models', and close their memory to others.

        Requests stay in that memory. Triton makes it readable for everybody, whatever the umask.
        """
        for segment in _SHARED_MEMORY.glob(f"{self._prefix}*"):
            segment.chmod(0o600)
        known = {process.pid for process in self._models.values()}
        children = set(_children(self._server))
        self._let_go = {pid for pid in self._let_go & children if _start_time(pid) is None}
        for pid in children - known - self._let_go:
            try:
                handle = os.pidfd_open(pid)
            except ProcessLookupError:
                continue
            arguments = Path(f"/proc/{pid}/cmdline").read_text().split("\0")
            model = Path(arguments[1]).parent.parent.name if len(arguments) > 1 else "unknown"
            self._models[handle] = _Process(pid, model)
            self._poll.register(handle, select.POLLIN)

    def _release(self, model: str) -> None:
        for process in self._models.values():
            process.released |= process.model == model
        self._tell_if_released(model)

    def _tell_if_released(self, model: str) -> None:
        if not any(process.released and process.model == model for process in self._models.values()):
            self._tell(f"released {model}".encode())

    def _model_ended(self, handle: int) -> None:
        process = self._models.pop(handle)
        os.close(handle)
        if process.released:
            self._let_go.add(process.pid)
            self._tell_if_released(process.model)
        elif self._kill_at is None:  # else they are told to end, one by one
            self._kill(f"the process of its model {process.model} ended")

    def _reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if pid == self._server:
                code = os.waitstatus_to_exitcode(status)
                self._status = code if code >= 0 else 128 - code

    def _end_stragglers(self) -> None:
        """Kill what the server left behind. What those leave behind in turn becomes a child of the guard as well."""
        while True:
            for pid in _children(os.getpid()):
                os.kill(pid, signal.SIGKILL)
            try:
                os.waitpid(-1, 0)
            except ChildProcessError:
                return


def _environments() -> Iterator[Path]:
    """The folders that servers' python backends make, one each, and leave behind empty when they are killed."""
    return Path("/tmp").glob("python_env_*")


def _python_servers() -> Iterator[int]:
    """Every process that has loaded Triton's python backend."""
    for pid in _pids():
        with contextlib.suppress(OSError):  # it has ended, or is another user's
            if b"/libtriton_python.so" in Path(f"/proc/{pid}/maps").read_bytes():
                yield pid


def _prctl(option: int, value: int) -> None:
    if ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")


def main(arguments: list[str]) -> int:
    owner, log, limit, drain, memory_limit, scratch, *command = arguments
    kept = RotatingLog(Path(log), int(limit))
    try:
        return Guard(int(owner), kept, float(drain), int(memory_limit), command).run()
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
