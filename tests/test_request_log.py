from __future__ import annotations

import asyncio
import errno
import io
import logging
import os
from collections.abc import Iterator
from logging.handlers import MemoryHandler, RotatingFileHandler
from pathlib import Path

import pytest

from serve_app import request_log


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "replica.log"


@pytest.fixture
def logger(file: Path) -> Iterator[logging.Logger]:
    """As Ray Serve sets it up, with files of 1,000 bytes."""
    handler = RotatingFileHandler(file, maxBytes=1_000, backupCount=2)
    handler.setFormatter(logging.Formatter("%(levelname)s %(message)s"))
    logger = logging.Logger("replica")
    logger.addHandler(MemoryHandler(1, target=handler))
    yield logger
    for each in logger.handlers:
        each.close()
    handler.close()


async def test_lines_of_one_turn_of_the_loop_come_together_and_in_order(logger: logging.Logger, file: Path) -> None:
    request_log.group(logger)
    for number in range(3):
        logger.info("request %d", number)
    assert file.read_text() == ""
    await asyncio.sleep(0)
    assert file.read_text() == "INFO request 0\nINFO request 1\nINFO request 2\n"


async def test_an_error_is_there_at_once_behind_what_came_before_it(logger: logging.Logger, file: Path) -> None:
    request_log.group(logger)
    logger.info("a request")
    logger.error("a fault")
    assert file.read_text() == "INFO a request\nERROR a fault\n"


async def test_a_line_of_another_thread_is_there_at_once(logger: logging.Logger, file: Path) -> None:
    request_log.group(logger)
    logger.info("a request")
    await asyncio.to_thread(logger.info, "a thread")
    assert file.read_text() == "INFO a request\nINFO a thread\n"


async def test_files_are_rolled_over_at_their_size(logger: logging.Logger, file: Path) -> None:
    request_log.group(logger)
    for _ in range(3):
        logger.info("x" * 600)
        await asyncio.sleep(0)
    texts = [path.read_text() for path in sorted(file.parent.iterdir())]
    assert texts == [f"INFO {'x' * 600}\n"] * 3


async def test_what_is_filtered_out_is_not_written(logger: logging.Logger, file: Path) -> None:
    logger.handlers[0].addFilter(lambda record: "secret" not in record.getMessage())
    request_log.group(logger)
    logger.info("a secret")
    logger.info("a request")
    await asyncio.sleep(0)
    assert file.read_text() == "INFO a request\n"


class FullDisk(io.StringIO):
    def flush(self) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


async def test_a_disk_without_room_loses_lines_and_nothing_else(
    logger: logging.Logger, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    request_log.group(logger)
    faults: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: faults.append(context))
    target = logger.handlers[0].target  # type: ignore[attr-defined]
    usual, target.stream = target.stream, FullDisk()
    logger.info("a request")
    await asyncio.sleep(0)
    target.stream = usual
    assert "No space left on device" in capsys.readouterr().err
    assert faults == []
    logger.info("another")
    await asyncio.sleep(0)
    assert file.read_text() == "INFO another\n"


async def test_lines_that_wait_are_written_when_logging_ends(logger: logging.Logger, file: Path) -> None:
    request_log.group(logger)
    logger.info("a request")
    logger.handlers[0].close()
    assert file.read_text() == "INFO a request\n"
