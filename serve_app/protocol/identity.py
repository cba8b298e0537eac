"""Who asks, how urgently and until when: the same three headers over HTTP, and as metadata over gRPC."""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Callable, Mapping

from serve_app.context import RequestContext
from serve_app.protocol.refusals import invalid
from serve_app.spec import Spec

ContextFor = Callable[[Mapping[str, str]], RequestContext]

ID, TIER, TIMEOUT = HEADERS = "x-request-id", "x-tier", "x-request-timeout-seconds"
_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}")
_SECONDS = re.compile(r"\d{1,6}(\.\d{1,6})?")


def contexts(spec: Spec) -> ContextFor:
    """Makes a request's context of its headers, whose names are in lower case. Refusal where one means nothing."""
    sla = spec.service.sla.total_seconds()
    tiers = {name: tier.priority for name, tier in spec.tiers.items()}
    default = tiers[spec.default_tier]

    def context_for(headers: Mapping[str, str]) -> RequestContext:
        request_id, tier, seconds = headers.get(ID), headers.get(TIER), headers.get(TIMEOUT)
        if request_id is None:
            request_id = str(uuid.uuid4())
        elif not _ID.fullmatch(request_id):
            raise invalid("X-Request-ID is unfit; send up to 128 letters, digits and . _ : -, or none")
        if tier is not None and tier not in tiers:
            raise invalid(f"X-Tier is not a tier; use one of {', '.join(tiers)}")
        allowed = sla
        if seconds is not None:
            if not _SECONDS.fullmatch(seconds) or float(seconds) <= 0:
                raise invalid("X-Request-Timeout-Seconds is not a positive number of seconds; send one, as 2.5")
            allowed = min(sla, float(seconds))
        return RequestContext(request_id, default if tier is None else tiers[tier], time.time() + allowed)

    return context_for
