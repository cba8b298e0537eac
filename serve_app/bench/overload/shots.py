"""One request of an overload, and what many of them come to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from serve_app.bench.samples import percentile


@dataclass(frozen=True)
class Shot:
    """`due`, `sent` and `ended` are seconds after the load's begin; `kind` is answered, refused, late or failed."""

    tier: str
    due: float
    sent: float
    ended: float
    kind: str

    @property
    def took_ms(self) -> float:
        """From when it was due: where a client is late to send it, it has waited all the same."""
        return (self.ended - self.due) * 1e3


@dataclass(frozen=True)
class Tally:
    """Of some requests. Rates are requests a second: `offered` of all sent, `rate` of those answered.

    `answered_p99_ms` and `refused_p99_ms` run from when a request was due; `sent_late_p99_ms` is the clients' own.
    """

    offered: float
    rate: float
    answered: int
    refused: int
    late: int
    failed: int
    answered_p50_ms: float | None
    answered_p99_ms: float | None
    refused_p99_ms: float | None
    sent_late_p99_ms: float | None

    @property
    def share(self) -> float:
        """How many of them were answered."""
        return self.answered / max(1, self.answered + self.refused + self.late + self.failed)


def tally(shots: Sequence[Shot], begin: float, end: float) -> Tally:
    """Of what was due between `begin` and `end`; rates are of what was sent, and what was answered, between them."""
    meant = [shot for shot in shots if begin <= shot.due < end]
    kinds = Counter(shot.kind for shot in meant)
    ended = sum(begin <= shot.ended < end for shot in shots if shot.kind == "answered")
    return Tally(
        offered=sum(begin <= shot.sent < end for shot in shots) / (end - begin),
        rate=ended / (end - begin),
        answered=kinds["answered"],
        refused=kinds["refused"],
        late=kinds["late"],
        failed=kinds["failed"],
        answered_p50_ms=_percentile((shot.took_ms for shot in meant if shot.kind == "answered"), 0.50),
        answered_p99_ms=_percentile((shot.took_ms for shot in meant if shot.kind == "answered"), 0.99),
        refused_p99_ms=_percentile((shot.took_ms for shot in meant if shot.kind == "refused"), 0.99),
        sent_late_p99_ms=_percentile(((shot.sent - shot.due) * 1e3 for shot in meant), 0.99),
    )


def _percentile(values: Iterable[float], share: float) -> float | None:
    return percentile(sorted(values), share)
