"""What came of a request, as the service's documentation has it: an answer, a refusal that it names, or neither."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

Kind = Literal["answered", "refused", "reset", "undocumented"]

# README, Errors: what a request that is as it should be may be refused with.
DOCUMENTED = {
    429: {"service_full", "queue_full", "stage_full", "too_late"},
    503: {"not_ready", "model_unavailable", "stage_unavailable", "model_failed"},
    504: {"deadline_exceeded"},
}
# README, Triton's protocol: {"error": …} with these.
PROTOCOL = {429, 503, 504}
GRPC = {"RESOURCE_EXHAUSTED", "UNAVAILABLE", "DEADLINE_EXCEEDED"}


@dataclass(frozen=True)
class Seen:
    """One request: when it was sent and when it was over, in seconds of the loop's clock, and what came of it.

    `code` is 200, a status with the problem's code, gRPC's code, or what became of the connection. An answer that took
    longer than `within` has waited for something that was not there.
    """

    target: str
    sent: float
    ended: float
    kind: Kind
    code: str
    within: float = math.inf

    @property
    def is_well(self) -> bool:
        """Whether a healthy service does it."""
        return self.kind == "answered" and self.ended - self.sent <= self.within


def of_http(status: int, body: bytes, *, protocol: bool, failing: bool = False) -> tuple[Kind, str]:
    """The kind and the code of an answer. `failing`: the model was told to fail; Triton says so with 500."""
    if status == 200:
        return "answered", "200"
    try:
        parsed = json.loads(body)
    except ValueError:
        return "undocumented", f"{status} without a reason"
    said = parsed if isinstance(parsed, dict) else {}
    if protocol:
        known = "error" in said and (status in PROTOCOL or (failing and status == 500))
        return ("refused" if known else "undocumented"), str(status)
    code = said.get("code")
    return ("refused" if code in DOCUMENTED.get(status, set()) else "undocumented"), f"{status} {code}"


@dataclass(frozen=True)
class Tally:
    """How many requests were answered, and how many were not, by their codes."""

    answered: int = 0
    refused: Mapping[str, int] = field(default_factory=dict)
    undocumented: Mapping[str, int] = field(default_factory=dict)


def tally(seen: Iterable[Seen], *, resets: bool) -> Tally:
    """`resets`: the fault ends an ingress, whose connections are then reset and new ones refused."""
    answered, refused, undocumented = 0, Counter[str](), Counter[str]()
    for each in seen:
        if each.kind == "answered":
            answered += 1
        elif each.kind == "refused" or (each.kind == "reset" and resets):
            refused[each.code] += 1
        else:
            undocumented[each.code] += 1
    return Tally(answered, dict(refused), dict(undocumented))


def healthy_since(seen: Sequence[Seen], targets: Iterable[str], start: float) -> float | None:
    """From when on every request was answered soon; None where the last of a target was not, or none was sent since.

    That moment is `start`, or the end of the last request that was not.
    """
    since = max((each.ended for each in seen if not each.is_well and each.ended > start), default=start)
    answered = {each.target for each in seen if each.is_well and each.sent >= since}
    return since if answered >= set(targets) else None
