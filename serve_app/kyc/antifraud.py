"""The antifraud scorecard: a rule model, written by hand, that adds up what looked suspicious.

It was not learned from fraud cases. Each factor maps one number that another model or check found to 0 (nothing
suspicious) … 1 along straight lines; the log-odds of the risk are `INTERCEPT` plus weight · factor over all factors:

    risk = 1 / (1 + exp(-(INTERCEPT + Σ weight · factor)))

The weights are judgements, and so is the result: it ranks verifications and is no probability of fraud. They keep two
rules, which the tests hold them to: no factor alone leads to a rejection, nor do poor pictures and hard-to-read text
together. The arithmetic is an ONNX graph, served, batched and timed like any model.
`python -m serve_app.kyc.antifraud` prints the scorecard as a table.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import NamedTuple

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from serve_app.kyc.answers import Document, FaceMatch
from serve_app.kyc.antifraud_measures import LONGEST_LIFE, measures
from serve_app.weights.prepared import Prepared

INTERCEPT = -4.0  # log-odds with nothing suspicious: risk 0.018

Points = tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class Factor:
    """One line of the scorecard.

    `points` are (measured, factor) pairs by rising measure, joined by straight lines and level beyond the ends.
    `missing` is the factor where there is nothing to measure; `weight` is in log-odds at factor 1.
    """

    name: str
    measures: str
    points: Points
    missing: float
    weight: float
    why: str

    def suspicion(self, measured: float | None) -> float:
        """0 to 1. Raises ValueError where what was measured is NaN or infinite."""
        if measured is None:
            return self.missing
        if not math.isfinite(measured):
            raise ValueError(f"the antifraud factor {self.name} measured {measured}, which is not a finite number")
        positions, levels = zip(*self.points, strict=True)
        return float(np.interp(measured, positions, levels))


YES_OR_NO: Points = ((0, 0), (1, 1))
# Seen on six portraits, scaled, blurred and relit: sharp faces 60 to 200 px wide have 155 to 2700, a blur
# of 2 px (sigma) on a face of 120 px leaves 40 to 84, one of 3 px 16 to 30; faces of 25 px have 29 to 91.
SELFIE_BLUR: Points = ((25, 1), (150, 0))
DOCUMENT_BLUR: Points = ((15, 1), (80, 0))
# The same portraits have 106 to 152, underexposed 21 to 61 and overexposed 153 to 230. Wide on purpose: the exposure is
# to be judged, not the skin.
EXPOSURE: Points = ((15, 1), (45, 0), (210, 0), (240, 1))

SCORECARD: tuple[Factor, ...] = (
    Factor(
        "face_distance",
        "similarity of the two faces minus the threshold",
        points=((-0.05, 1), (0.2, 0)),
        missing=0,
        weight=3.0,
        why="a match that only just passes may be a lookalike",
    ),
    Factor(
        "selfie_face_doubt",
        "the detector's confidence in the selfie's face",
        points=((0.6, 1), (0.9, 0)),
        missing=0,
        weight=0.6,
        why="a covered, drawn or distorted face is found with less confidence",
    ),
    Factor(
        "document_face_doubt",
        "the detector's confidence in the document's face",
        points=((0.5, 1), (0.85, 0)),
        missing=0,
        weight=0.5,
        why="an overlaid or replaced portrait is found with less confidence; print costs some too",
    ),
    Factor(
        "selfie_blur",
        "sharpness of the selfie's face crop",
        points=SELFIE_BLUR,
        missing=0,
        weight=0.7,
        why="blur hides masks and screens",
    ),
    Factor(
        "document_blur",
        "sharpness of the document's face crop",
        points=DOCUMENT_BLUR,
        missing=0,
        weight=0.5,
        why="blur hides the edges of a replaced portrait; printed portraits are soft, so the ramp begins lower",
    ),
    Factor(
        "selfie_exposure",
        "brightness of the selfie's face crop, 0 to 255",
        points=EXPOSURE,
        missing=0,
        weight=0.4,
        why="a face lost in the dark or in glare cannot be judged",
    ),
    Factor(
        "document_exposure",
        "brightness of the document's face crop, 0 to 255",
        points=EXPOSURE,
        missing=0,
        weight=0.4,
        why="as above",
    ),
    Factor(
        "text_doubt",
        "mean confidence of all lines of text",
        points=((0.6, 1), (0.9, 0)),
        missing=1,
        weight=0.7,
        why="text that is hard to read cannot be checked; none at all counts in full",
    ),
    Factor(
        "mrz_text_doubt",
        "mean confidence of the lines that look like an MRZ",
        points=((0.6, 1), (0.9, 0)),
        missing=0,
        weight=0.6,
        why="OCR-B is made to be read by machines; where there is no such line, mrz_missing counts",
    ),
    Factor(
        "mrz_missing",
        "1 without a machine-readable zone, else 0",
        points=YES_OR_NO,
        missing=0,
        weight=1.2,
        why="nothing on the document can be checked by arithmetic",
    ),
    Factor(
        "mrz_check_digits",
        "number of wrong check digits",
        points=((0, 0), (2, 1)),
        missing=0,
        weight=2.5,
        why="one altered field makes two wrong, its own and the composite; without an MRZ, mrz_missing counts",
    ),
    Factor(
        "mrz_corrections",
        "characters of the MRZ that had to be corrected or mended",
        points=((2, 0), (10, 1)),
        missing=0,
        weight=0.6,
        why="OCR slips now and then; many slips mean another typeface or damage; without an MRZ, mrz_missing counts",
    ),
    Factor(
        "printed_disagreement",
        "share of the MRZ's fields that the printed text repeats",
        points=((0.3, 1), (0.9, 0)),
        missing=0,
        weight=2.0,
        why="forgers change the print and forget the MRZ; without an MRZ, mrz_missing counts",
    ),
    Factor(
        "expired",
        "days since the last day of validity",
        points=((0, 0), (1, 0.5), (365, 1)),
        missing=0,
        weight=1.5,
        why="lost and stolen documents are old ones; where no date could be read, expiry_unreadable counts",
    ),
    Factor(
        "expiry_unreadable",
        "1 without a reliable date of expiry, else 0",
        points=YES_OR_NO,
        missing=0,
        weight=0.8,
        why="a scratched date may hide that it has passed",
    ),
    Factor(
        "implausible_dates",
        f"of: born in the future, older than {LONGEST_LIFE} years, expired before birth",
        points=YES_OR_NO,
        missing=0,
        weight=3.0,
        why="no authority issues such a document; where no date of birth could be read, there is nothing to judge",
    ),
    Factor(
        "little_text",
        "number of lines of text",
        points=((2, 1), (6, 0)),
        missing=0,
        weight=0.6,
        why="a portrait with a line or two is no identity document",
    ),
)

FACTOR_NAMES: tuple[str, ...] = tuple(factor.name for factor in SCORECARD)


def suspicions(measured: Mapping[str, float | None]) -> dict[str, float]:
    """The model's inputs from what was measured, each 0 (nothing suspicious) to 1, in the scorecard's order.

    Raises ValueError where a number is NaN or infinite.
    """
    return {factor.name: factor.suspicion(measured[factor.name]) for factor in SCORECARD}


def factors(face: FaceMatch, document: Document, today: date) -> dict[str, float]:
    """The model's inputs for one verification: `suspicions` of its `measures`."""
    return suspicions(measures(face, document, today))


def build_onnx() -> Prepared:
    """`factors` float32[N, K] → `risk` float32[N, 1], 0 to 1, and `contributions` float32[N, K] in log-odds.

    contributions = factors · weights, risk = sigmoid(INTERCEPT + Σ contributions); K is the scorecard's length.
    """
    weights = np.array([[factor.weight for factor in SCORECARD]], np.float32)
    initializers = [
        numpy_helper.from_array(weights, "weights"),
        numpy_helper.from_array(np.array([INTERCEPT], np.float32), "intercept"),
        numpy_helper.from_array(np.array([1], np.int64), "factor_axis"),
    ]
    nodes = [
        helper.make_node("Mul", ["factors", "weights"], ["contributions"]),
        helper.make_node("ReduceSum", ["contributions", "factor_axis"], ["suspicion"], keepdims=1),
        helper.make_node("Add", ["suspicion", "intercept"], ["log_odds"]),
        helper.make_node("Sigmoid", ["log_odds"], ["risk"]),
    ]
    graph = helper.make_graph(
        nodes,
        "antifraud_scorecard",
        inputs=[helper.make_tensor_value_info("factors", TensorProto.FLOAT, ["batch", len(SCORECARD)])],
        outputs=[
            helper.make_tensor_value_info("risk", TensorProto.FLOAT, ["batch", 1]),
            helper.make_tensor_value_info("contributions", TensorProto.FLOAT, ["batch", len(SCORECARD)]),
        ],
        initializer=initializers,
    )
    # The newest IR version and opset of this machine's onnx may be ahead of the runtime that serves the file.
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    helper.set_model_props(model, {"factors": ",".join(FACTOR_NAMES)})
    onnx.checker.check_model(model, full_check=True)
    return Prepared(onnx=model.SerializeToString())


class Explanation(NamedTuple):
    """One factor in words."""

    factor: str
    measures: str
    mapping: str
    missing: str
    weight: str
    why: str


def explain() -> list[Explanation]:
    """The scorecard as rows for a table, in its order."""
    return [
        Explanation(
            factor.name,
            factor.measures,
            ", ".join(f"{position:g} → {level:g}" for position, level in factor.points),
            f"{factor.missing:g}",
            f"{factor.weight:g}",
            factor.why,
        )
        for factor in SCORECARD
    ]


def markdown() -> str:
    """`explain()` as a Markdown table."""
    header = ("Factor", "What is measured", "Measured → factor", "If missing", "Weight", "Why")
    rows = [header, ("---",) * len(header), *explain()]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


if __name__ == "__main__":
    print(markdown())
