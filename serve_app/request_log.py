"""The lines that requests leave in Ray Serve's log file: all of one turn of the event loop are written at once.

Line by line, Ray's handler looks up the file and writes it with several system calls, a sixth of all that a small
request costs the ingress. A line is in the file before the loop waits for anything again.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from logging.handlers import MemoryHandler, RotatingFileHandler

logger = logging.getLogger("ray.serve")


def write(method: str, what: str, outcome: object, seconds: float, request_id: str) -> None:
    """The line of one request, over HTTP or gRPC; `what` is nothing that a client may have made up."""
    logger.info(
        "%s %s %s %.1fms %s", method, what, outcome, seconds * 1e3, request_id,
        extra={"serve_access_log": True, "log_to_stderr": False},
    )  # fmt: skip


class GroupedHandler(MemoryHandler):
    """Takes the place of Ray's handler in front of a log file. Made in the thread of the running event loop."""

    def __init__(self, file: RotatingFileHandler):
        super().__init__(capacity=0, flushLevel=logging.ERROR, target=file, flushOnClose=True)
        self._file = file
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()

    def emit(self, record: logging.LogRecord) -> None:
        self.buffer.append(record)
        if record.levelno >= self.flushLevel or threading.get_ident() != self._thread or self._loop.is_closed():
            self.flush()
        elif len(self.buffer) == 1:
            self._loop.call_soon(self.flush)

    def flush(self) -> None:
        self.acquire()
        try:
            records, self.buffer = self.buffer, []
            if records:
                self._write(records)
        finally:
            self.release()

    def _write(self, records: list[logging.LogRecord]) -> None:
        file = self._file
        file.acquire()
        try:
            if file.shouldRollover(records[-1]):
                file.doRollover()
            assert file.stream is not None  # opened by the first question
            file.stream.write("".join(f"{file.format(record)}{file.terminator}" for record in records))
            file.flush()
        except OSError:  # no room, say
            file.handleError(records[-1])
        finally:
            file.release()


def group(logger: logging.Logger = logger) -> None:
    """Write what comes to the logger's file in groups from now on; what has no such file stays as it is."""
    for handler in list(logger.handlers):
        file = handler.target if isinstance(handler, MemoryHandler) else None
        if isinstance(file, RotatingFileHandler):
            grouped = GroupedHandler(file)
            grouped.setLevel(handler.level)
            for each in handler.filters:
                grouped.addFilter(each)
            logger.addHandler(grouped)
            logger.removeHandler(handler)
