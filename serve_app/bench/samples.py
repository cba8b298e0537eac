"""What a measurement is made of: the outcome of each request, and the figures of many."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Kind = Literal["answered", "refused", "late", "failed"]


@dataclass(frozen=True)
class Outcome:
    """What came of one request: `code` is HTTP's or gRPC's status, `detail` what the service said where it refused."""

    kind: Kind
    code: str
    detail: str = ""


@dataclass(frozen=True)
class Sample:
    """One request. Times are seconds; `sent` is on the clock of the loop that sent it."""

    sent: float
    took: float
    kind: Kind
    code: str

    @property
    def ended(self) -> float:
        return self.sent + self.took


def percentile(ordered: Sequence[float], share: float) -> float | None:
    """The smallest of the ascending values that at least `share` of them do not exceed (nearest rank). None of none."""
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)] if ordered else None


@dataclass(frozen=True)
class Figures:
    """What a window of `seconds` held: requests a second, and milliseconds from sending to the whole answer.

    Latencies are of the answered requests only; what was refused counts apart, since it is quick and no use.
    """

    seconds: float
    answered: int
    refused: int
    late: int
    failed: int
    rate: float
    p50_ms: float | None
    p90_ms: float | None
    p99_ms: float | None
    refused_p99_ms: float | None
    codes: dict[str, int]


def figures(samples: Sequence[Sample], seconds: float) -> Figures:
    """Of the requests that ended within a window of `seconds`."""
    took = sorted(sample.took * 1e3 for sample in samples if sample.kind == "answered")
    refusals = sorted(sample.took * 1e3 for sample in samples if sample.kind == "refused")
    kinds = Counter(sample.kind for sample in samples)
    return Figures(
        seconds=seconds,
        answered=kinds["answered"],
        refused=kinds["refused"],
        late=kinds["late"],
        failed=kinds["failed"],
        rate=kinds["answered"] / seconds,
        p50_ms=percentile(took, 0.50),
        p90_ms=percentile(took, 0.90),
        p99_ms=percentile(took, 0.99),
        refused_p99_ms=percentile(refusals, 0.99),
        codes=dict(Counter(sample.code for sample in samples)),
    )
