"""The antifraud stage: the scorecard's risk, with every number that led to it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date

import numpy as np

from serve_app.kyc.answers import Antifraud, Document, FaceMatch
from serve_app.kyc.antifraud import FACTOR_NAMES, INTERCEPT, suspicions
from serve_app.kyc.antifraud_measures import measures
from serve_app.kyc.document_dates import utc_today
from serve_app.model import Model
from serve_app.problem import Problem


class AntifraudCheck:
    """Scores what the other stages found.

    `antifraud` takes the scorecard's factors, float32[1, K], and answers risk float32[1, 1] and contributions
    float32[1, K]. `today` gives the day on which the document has to be valid.
    """

    def __init__(self, antifraud: Model, today: Callable[[], date] = utc_today) -> None:
        self._antifraud = antifraud
        self._today = today

    async def assess(self, face: FaceMatch, document: Document) -> Antifraud:
        """The scorecard's answer.

        Raises ValueError where a number that it needs is NaN or infinite, Problem 503 where the model answers one that
        is, and what the model raises.
        """
        measured = measures(face, document, self._today())
        inputs = suspicions(measured)
        risk, contributions = await self._antifraud(np.array([list(inputs.values())], np.float32))
        if not (np.isfinite(risk).all() and np.isfinite(contributions).all()):
            raise Problem(503, "model_failed", "antifraud answered what is no finite number", retry_after=2)
        return Antifraud(
            risk=float(risk[0, 0]),
            factors=inputs,
            measures=measured,
            contributions=dict(zip(FACTOR_NAMES, contributions[0].tolist(), strict=True)),
            intercept=INTERCEPT,
        )
