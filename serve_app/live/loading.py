"""A model that could not be loaded: what that is, by what Triton says or how it ended."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import timedelta

from serve_app.live import findings as found
from serve_app.live.order import place_of
from serve_app.live.session import IN_REQUEST, Died, Hung, Refused
from serve_app.spec import Spec
from serve_app.spec.findings import Fault, Place
from serve_app.spec.units import show_duration

_AT_WARMUP = re.compile(r"version (?P<version>\d+).*?failed to run warmup sample '(?P<name>.*?)': (?P<says>.*)")


def load_fault(spec: Spec, name: str, failure: Refused | Hung | Died, limit: timedelta, *, alone: bool) -> Fault:
    """The finding for a model that was not loaded within `limit`; `alone`: it has but one version."""
    base = place_of(spec, name)
    if isinstance(failure, Hung):
        return found.LOAD_HANGS.at(base, f"it was not loaded within {show_duration(limit)}")
    warmups = [each.name for each in spec.models[name].warmup] if name in spec.models else []
    says = [str(failure)] if isinstance(failure, Refused) else failure.says
    at_warmup = _at_warmup(base, warmups, says, alone=alone) if warmups else None
    if at_warmup is not None:
        return at_warmup
    if isinstance(failure, Refused):
        return found.NOT_LOADED.at(base, f"Triton says: {failure}")
    remedy = "see what the model does when it is initialized, and what it answers to its warmup" if warmups else None
    return found.SERVER_DIED.at(base, f"while it was loaded, {failure}", remedy=remedy)


def _at_warmup(base: Place, warmups: list[str], says: Iterable[str], *, alone: bool) -> Fault | None:
    """What a model says to a warm-up. Triton 2.51 may end over that before it has logged to which one."""
    for line in says:
        if asked := _AT_WARMUP.search(line):
            which, words = asked["name"], IN_REQUEST.sub("", asked["says"])
            version = "" if alone else f" of version {asked['version']}"
        elif IN_REQUEST.match(line):
            which, words = warmups[0] if len(warmups) == 1 else "", IN_REQUEST.sub("", line)
            version = ""
        else:
            continue
        place = (*base, "warmup", warmups.index(which)) if which in warmups else (*base, "warmup")
        what = f"to the warm-up {which}" if which else "to one of them"
        return found.WARMUP_FAILS.at(place, f"{what}{version}, it says: {words}")
    return None
