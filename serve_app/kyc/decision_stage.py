"""The decision stage: the decision on what the other stages found, with all of it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date

from serve_app.kyc.answers import Antifraud, Document, FaceMatch, Liveness, Verification
from serve_app.kyc.decision import DecisionSettings, decide
from serve_app.kyc.document_dates import utc_today

__all__ = ["Decision", "DecisionSettings"]


class Decision:
    """Decides. `today` gives the day on which the document has to be valid."""

    def __init__(self, settings: DecisionSettings, today: Callable[[], date] = utc_today) -> None:
        self._settings = settings
        self._today = today

    async def decide(
        self, face: FaceMatch, document: Document, liveness: Liveness, antifraud: Antifraud | None
    ) -> Verification:
        """The verification's answer; without `antifraud` it is no approval.

        Raises ValueError where a number that the decision needs is NaN, infinite or absent.
        """
        today = self._today()
        risk = None if antifraud is None else antifraud.risk
        outcome, reasons = decide(face, document, liveness, risk, thresholds=self._settings, today=today)
        return Verification(
            decision=outcome,
            reasons=[reason.name for reason in reasons],
            face=face,
            liveness=liveness,
            document=document,
            antifraud=antifraud,
            thresholds=self._settings.model_dump(),
            today=today,
        )
