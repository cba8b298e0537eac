"""What the model that misbehaves can be told to do, by its input."""

from __future__ import annotations

from enum import IntEnum

# Bytes that one such request makes it keep.
GROWTH = 64 * 2**20


class Order(IntEnum):
    """Everything else is answered as it came."""

    RAISE = -1
    HANG = -2
    WRONG_SHAPE = -3
    GROW = -4
