"""The decision stage: the antifraud model's risk, then the decision, with every number that led to it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date

import numpy as np

from serve_app.kyc.answers import Antifraud, Document, FaceMatch, Liveness, Verification
from serve_app.kyc.antifraud import FACTOR_NAMES, INTERCEPT, suspicions
from serve_app.kyc.antifraud_measures import measures
from serve_app.kyc.decision import DecisionSettings, decide
from serve_app.kyc.document_dates import utc_today
from serve_app.model import Model

__all__ = ["Decision", "DecisionSettings"]


class Decision:
    """Decides on what the other stages found.

    `antifraud` takes the scorecard's factors, float32[1, K], and answers risk float32[1, 1] and contributions
    float32[1, K]. `today` gives the day on which the document has to be valid.
    """

    def __init__(self, antifraud: Model, settings: DecisionSettings, today: Callable[[], date] = utc_today) -> None:
        self._antifraud = antifraud
        self._settings = settings
        self._today = today

    async def decide(self, face: FaceMatch, document: Document, liveness: Liveness) -> Verification:
        """The verification's answer.

        Raises ValueError where a number that the decision needs is NaN, infinite or absent, and what the model raises.
        """
        today = self._today()
        measured = measures(face, document, today)
        inputs = suspicions(measured)
        risk, contributions = await self._antifraud(np.array([list(inputs.values())], np.float32))
        antifraud = Antifraud(
            risk=float(risk[0, 0]),
            factors=inputs,
            measures=measured,
            contributions=dict(zip(FACTOR_NAMES, contributions[0].tolist(), strict=True)),
            intercept=INTERCEPT,
        )
        outcome, reasons = decide(face, document, liveness, antifraud.risk, thresholds=self._settings, today=today)
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
