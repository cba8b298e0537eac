"""What stage code sees of a model: something to await with arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
UInt8 = NDArray[np.uint8]
Float32 = NDArray[np.float32]


class Model(Protocol):
    """A model of the spec.

    Called with one array per input, in the spec's order, each with the batch dimension first. Answers one array, or a
    tuple of arrays in the spec's order where the model has several outputs. A batch larger than the model takes is
    split.
    Raises Problem where the model is down, silent, or answers what the spec does not say (503), the queue is full (429)
    or the deadline has passed (504), and ValueError where an array does not match the spec's tensor: that is a fault of
    the calling code.
    """

    @property
    def labels(self) -> Sequence[str]:
        """The lines of the label file that the spec gives for an output; empty where there is none."""

    async def __call__(self, *inputs: Array) -> Any: ...
