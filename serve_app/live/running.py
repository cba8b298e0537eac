"""A loaded model run: each version that is served, on what it is tried with, and what is wrong with its answers."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from serve_app.live import findings as found
from serve_app.live.inference import miscounts, mismatches
from serve_app.live.order import needed, place_of
from serve_app.live.session import Died, Hung, Refused, Session
from serve_app.live.trials import LARGEST_ITEM, Trial, batches, request
from serve_app.spec import ProfileName, Spec
from serve_app.spec.findings import Fault, Faults
from serve_app.spec.model import PYTHON
from serve_app.spec.resolved import Resolved
from serve_app.spec.units import show_duration, show_size
from serve_app.triton.model_folder import NUMPY_2

# Triton 2.51: "Model 'm' is not ready", "Request for unknown model: 'm' is not found" or "… is not at ready state".
_NOT_LOADED = re.compile(r"model:? '([^']+)'(?: version -?\d+)? is not", re.IGNORECASE)


@dataclass(frozen=True)
class Run:
    """One version of a model or ensemble that is loaded, and the time that each request has."""

    spec: Spec
    profile: ProfileName
    name: str
    version: str
    limit: timedelta
    alone: bool  # no other version is served

    async def faults(self, session: Session, trials: list[Trial], max_batch: int) -> AsyncIterator[Fault]:
        """What goes wrong; the first error is the last thing tried."""
        for trial in trials:
            if not trial.samples:
                yield self._too_large(trial)
                continue
            for batch in batches(self.spec, self.name, max_batch, trial):
                broken = [fault async for fault in self._try(session, trial, batch)]
                for fault in broken:
                    yield fault
                if any(fault.rule.severity == "error" for fault in broken):
                    return
                if broken:
                    break

    async def _try(self, session: Session, trial: Trial, batch: int | None) -> AsyncIterator[Fault]:
        served: Any = self.spec.served(self.name)
        base, of = place_of(self.spec, self.name), self._of(trial, batch)
        refusals: list[Refused] = []
        for sample in trial.samples:
            made = request(self.spec, self.name, self.version, sample, batch)
            try:
                answers = await session.infer(made, self.limit.total_seconds(), decoupled=served.decoupled)
            except Refused as refused:
                refusals.append(refused)
            except Hung:
                yield found.RUN_HANGS.at(base, f"a request{of} had no answer within {show_duration(self.limit)}")
                return
            except Died as died:
                yield found.SERVER_DIED.at(base, f"at a request{of}, {died}")
                return
            else:
                for fault in self._wrong(answers, batch, f"at a request{of or ' of zeros'}"):
                    yield fault
                return
        yield self._refused(refusals, trial, f"to a request{of}")

    def _too_large(self, trial: Trial) -> Fault:
        return found.UNCHECKED.at(
            place_of(self.spec, self.name),
            f"a request{self._of(trial, None)} has more than {show_size(LARGEST_ITEM)}, which is not sent",
            remedy="try it with a client of your own, and accept this",
        )

    def _of(self, trial: Trial, batch: int | None) -> str:
        version = "" if self.alone else f" to version {self.version}"
        return f"{version}{trial.like}" + (f" with a batch of {batch}" if batch else "")

    def _wrong(self, answers: list[Any], batch: int | None, told: str) -> Faults:
        served = self.spec.served(self.name)
        wrong = dict(pair for answer in answers for pair in mismatches(served, answer, batch))
        for output, what in wrong.items():
            yield found.OTHER_ANSWER.at((*place_of(self.spec, self.name), "outputs", output), f"{what}, {told}")
        odd = dict(pair for answer in answers for pair in miscounts(answer) if pair[0] not in wrong)
        for output, what in odd.items():
            yield self._other_size(output, f"{what}, {told}")

    def _other_size(self, output: str, what: str) -> Fault:
        place, rule = (*place_of(self.spec, self.name), "outputs", output), found.OTHER_SIZE
        if self.name in self.spec.models and Resolved(self.spec, self.name, self.profile).backend == PYTHON:
            return rule.at(place, what, remedy=NUMPY_2.remedy)
        return rule.at(place, what)

    def _refused(self, refusals: list[Refused], trial: Trial, told: str) -> Fault:
        base, what = place_of(self.spec, self.name), f"{told}, it says: {refusals[0]}"
        by_right = any(refused.of_the_input for refused in refusals)
        if trial.bare:
            return (found.REFUSES_WITHOUT if by_right else found.FAILS_WITHOUT).at((*base, "inputs"), what)
        rule = found.REFUSES if by_right else found.NOT_RUN
        called = _not_loaded(str(refusals[0]), self.spec, self.name)
        if called is None:
            return rule.at(base, what)
        return rule.at(
            (*base, "calls"),
            what,
            remedy=f"add {called} to calls, as what this model's code calls",
            consequence="nothing sees to it that the other is loaded first, and no check counts its time",
        )


def _not_loaded(says: str, spec: Spec, name: str) -> str | None:
    """The model of the spec that another's code calls, where Triton says of it that it is not loaded."""
    asked = _NOT_LOADED.search(says)
    if asked is None or asked[1] in (name, *needed(spec, name)):
        return None
    return asked[1] if asked[1] in (*spec.models, *spec.ensembles) else None
