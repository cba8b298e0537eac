"""Run the requests of a batch as one where they fit together, so that one that fails does not fail the others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Feed = Mapping[str, Array]
Run = Callable[[Feed], Sequence[Array]]


def run_requests(
    run: Run, feeds: Sequence[Feed], failures: tuple[type[Exception], ...]
) -> list[list[Array] | Exception]:
    """The outputs of each request, or why it failed, in the order of `feeds`.

    A feed holds a request's inputs by name, batch dimension first. Those that differ in the batch dimension only are
    run as one. Where such a run raises one of `failures`, each of its requests is run alone.
    """
    results: list[list[Array] | Exception] = [[] for _ in feeds]
    for members in _of_equal_shape(feeds):
        outcome = _attempt(run, [feeds[member] for member in members], failures)
        if isinstance(outcome, Exception) and len(members) > 1:
            for member in members:
                alone = _attempt(run, [feeds[member]], failures)
                results[member] = alone if isinstance(alone, Exception) else alone[0]
        else:
            for place, member in enumerate(members):
                results[member] = outcome if isinstance(outcome, Exception) else outcome[place]
    return results


def _of_equal_shape(feeds: Sequence[Feed]) -> list[list[int]]:
    groups: dict[tuple[tuple[int, ...], ...], list[int]] = {}
    for index, feed in enumerate(feeds):
        groups.setdefault(tuple(array.shape[1:] for array in feed.values()), []).append(index)
    return list(groups.values())


def _attempt(run: Run, feeds: Sequence[Feed], failures: tuple[type[Exception], ...]) -> list[list[Array]] | Exception:
    sizes = [len(next(iter(feed.values()))) for feed in feeds]
    try:
        outputs = run(feeds[0] if len(feeds) == 1 else _merged(feeds))
        if any(output.ndim == 0 or len(output) != sum(sizes) for output in outputs):
            raise ValueError("the model's outputs do not keep the batch dimension")
    except failures as error:
        return error
    if len(feeds) == 1:
        return [list(outputs)]
    ends = np.cumsum(sizes)
    return [[output[end - size : end] for output in outputs] for size, end in zip(sizes, ends, strict=True)]


def _merged(feeds: Sequence[Feed]) -> Feed:
    return {name: np.concatenate([feed[name] for feed in feeds]) for name in feeds[0]}
