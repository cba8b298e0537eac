"""The room that one connection's large messages share, beyond the windows of their streams."""

from __future__ import annotations

from typing import Protocol


class Asker(Protocol):
    """A stream. `reserved` are the bytes that it has."""

    reserved: int

    def replenish(self) -> None:
        """There may be room now."""


class Reserve:
    """`size` bytes. Those that ask in vain are asked again in their order when room comes free; none has to wait for
    one that waits itself, since each has all that it needs or nothing."""

    def __init__(self, size: int):
        self._free = self._size = size
        self._waiting: dict[Asker, None] = {}

    @property
    def taken(self) -> int:
        return self._size - self._free

    def take(self, asker: Asker, size: int) -> bool:
        """Whether it may have so much more."""
        if size > self._free:
            self._waiting[asker] = None
            return False
        self._free -= size
        asker.reserved += size
        return True

    def give_back(self, asker: Asker) -> None:
        """All that it has."""
        self._free += asker.reserved
        asker.reserved = 0
        waiting, self._waiting = self._waiting, {}
        for each in waiting:
            each.replenish()

    def forget(self, asker: Asker) -> None:
        """It waits no more, and has nothing."""
        self._waiting.pop(asker, None)
        if asker.reserved:
            self.give_back(asker)
