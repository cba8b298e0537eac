"""Who asks, how urgently and until when: the same three headers over HTTP, and as metadata over gRPC."""

from __future__ import annotations

import random
import re
import time
import uuid
from collections.abc import Mapping

from serve_app.context import RequestContext
from serve_app.problem import Problem
from serve_app.spec import Spec

ID, TIER, TIMEOUT = HEADERS = "x-request-id", "x-tier", "x-request-timeout-seconds"
# The client gives up when its time has passed; an answer that is on its way then is none.
HEADSTART_S = 0.1
ID_PATTERN = r"[A-Za-z0-9._:-]{1,128}"
SECONDS_PATTERN = r"[0-9]{1,6}(\.[0-9]{1,6})?"
_id, _seconds = re.compile(ID_PATTERN), re.compile(SECONDS_PATTERN)
# Nobody needs to be unable to guess a request's name, and the system's own random numbers take a system call.
_numbers = random.Random()


def request_id_of(given: str | None) -> str:
    """The client's, or a new one where it gives none. Problem 400 where it cannot be used."""
    if given is None:
        return str(uuid.UUID(int=_numbers.getrandbits(128), version=4))
    if not _id.fullmatch(given):
        detail = "X-Request-ID is unfit; send up to 128 letters, digits and . _ : -, or none"
        raise Problem(400, "bad_request_id", detail, field="X-Request-ID")
    return given


class Contexts:
    """Makes requests' contexts of their headers."""

    def __init__(self, spec: Spec):
        self._sla = spec.service.sla.total_seconds()
        self._tiers = {name: tier.priority for name, tier in spec.tiers.items()}
        self._default = self._tiers[spec.default_tier]

    def __call__(
        self, headers: Mapping[str, str], *, sla: float | None = None, arrived: float | None = None
    ) -> RequestContext:
        """The context of a request with these headers, whose names are in lower case. Problem 400 for a senseless one.

        `sla` is in seconds, the service's by default; it counts from `arrived`, in seconds since the epoch, now by
        default.
        """
        request_id = request_id_of(headers.get(ID))
        tier, seconds = headers.get(TIER), headers.get(TIMEOUT)
        if tier is not None and tier not in self._tiers:
            detail = f"X-Tier is not a tier; use one of {', '.join(self._tiers)}"
            raise Problem(400, "unknown_tier", detail, field="X-Tier")
        allowed = self._sla if sla is None else sla
        if seconds is not None:
            if not _seconds.fullmatch(seconds) or float(seconds) <= 0:
                detail = "X-Request-Timeout-Seconds is not a positive number of seconds; send one, as 2.5"
                raise Problem(400, "bad_timeout", detail, field="X-Request-Timeout-Seconds")
            allowed = min(allowed, max(float(seconds) - HEADSTART_S, float(seconds) / 2))
        priority = self._default if tier is None else self._tiers[tier]
        return RequestContext(request_id, priority, (time.time() if arrived is None else arrived) + allowed)


def repeated(name: str) -> Problem:
    return Problem(400, "repeated_header", f"the header {name} comes twice; send it once", field=name)
