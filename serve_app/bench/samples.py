"""What a measurement is made of: the outcome of each request, and figures of many."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Kind = Literal["answered", "refused", "late", "failed"]


@dataclass(frozen=True)
class Sample:
    """One request. Times are seconds; `sent` on the clock of the loop that sent it."""

    sent: float
    took: float
    kind: Kind
    code: str

    @property
    def ended(self) -> float:
        return self.sent + self.took


def kind_of_http(status: int) -> Kind:
    """429 and 503 are refusals, which a client may repeat; 504 came too late; everything else unusual is a failure."""
    if 200 <= status < 300:
        return "answered"
    return {429: "refused", 503: "refused", 504: "late"}.get(status, "failed")  # type: ignore[return-value]


def percentile(ordered: Sequence[float], share: float) -> float:
    """The smallest of the ascending values that at least `share` of them do not exceed (nearest rank). NaN for none."""
    if not ordered:
        return math.nan
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


@dataclass(frozen=True)
class Figures:
    """What a window of `seconds` held. Latencies are milliseconds of the answered ones only."""

    seconds: float
    answered: int
    refused: int
    late: int
    failed: int
    p50_ms: float
    p90_ms: float
    p99_ms: float
    refused_p99_ms: float
    codes: dict[str, int]

    @property
    def rate(self) -> float:
        """Answers a second."""
        return self.answered / self.seconds


def figures(samples: Sequence[Sample], seconds: float) -> Figures:
    took = sorted(sample.took * 1e3 for sample in samples if sample.kind == "answered")
    refusals = sorted(sample.took * 1e3 for sample in samples if sample.kind == "refused")
    codes: dict[str, int] = {}
    for sample in samples:
        codes[sample.code] = codes.get(sample.code, 0) + 1
    kinds = [sample.kind for sample in samples]
    return Figures(
        seconds=seconds,
        answered=kinds.count("answered"),
        refused=kinds.count("refused"),
        late=kinds.count("late"),
        failed=kinds.count("failed"),
        p50_ms=percentile(took, 0.50),
        p90_ms=percentile(took, 0.90),
        p99_ms=percentile(took, 0.99),
        refused_p99_ms=percentile(refusals, 0.99),
        codes=codes,
    )
