from __future__ import annotations

import math
from collections.abc import Callable
from datetime import date, timedelta

import numpy as np
import onnxruntime
import pytest

from serve_app.kyc import antifraud
from serve_app.kyc.answers import Document, FaceMatch, Mrz
from serve_app.kyc.antifraud import INTERCEPT, SCORECARD
from serve_app.kyc.antifraud_measures import measures
from serve_app.kyc.decision import DecisionSettings
from tests.kyc import spotless

K = len(SCORECARD)
NAMES = [factor.name for factor in SCORECARD]
Case = tuple[FaceMatch, Document]


@pytest.fixture(scope="module")
def session() -> onnxruntime.InferenceSession:
    return onnxruntime.InferenceSession(antifraud.build_onnx().onnx, providers=["CPUExecutionProvider"])


def risk_of(session: onnxruntime.InferenceSession, factors: dict[str, float]) -> float:
    (risk,) = session.run(["risk"], {"factors": np.array([list(factors.values())], np.float32)})
    return float(risk[0, 0])


def similarity(value: float) -> Case:
    return spotless.match().model_copy(update={"similarity": value}), spotless.document()


def crop(which: str, **numbers: float) -> Case:
    return spotless.match().model_copy(update={which: spotless.face().model_copy(update=numbers)}), spotless.document()


def confidence(value: float, only: Callable[[str], bool] = lambda text: True) -> Case:
    document = spotless.document()
    lines = [line.model_copy(update={"confidence": value}) if only(line.text) else line for line in document.lines]
    return spotless.match(), document.model_copy(update={"lines": lines})


def zone(**changes: object) -> Case:
    document = spotless.document()
    assert document.mrz is not None
    return spotless.match(), document.model_copy(update={"mrz": document.mrz.model_copy(update=changes)})


def wrong_digits(*names: str) -> Case:
    checks = spotless.document().mrz.checks  # type: ignore[union-attr]
    assert set(names) <= checks.keys()
    return zone(valid=not names, checks={name: name not in names for name in checks})


def no_mrz(mrz: Mrz | None = None) -> Case:
    return spotless.match(), spotless.document().model_copy(update={"mrz": mrz})


def dates(**changes: str | None) -> Case:
    document = spotless.document()
    return spotless.match(), document.model_copy(update={"fields": {**document.fields, **changes}})


def expired_for(days: int) -> Case:
    return dates(date_of_expiry=(spotless.TODAY - timedelta(days=days)).isoformat())


def first_lines(count: int) -> Case:
    document = spotless.document()
    return spotless.match(), document.model_copy(update={"lines": document.lines[:count]})


def is_zone_line(text: str) -> bool:
    return "<" in text


# Of each factor: verifications from harmless to grave, and the factor's value worked out by hand from its ramp.
GRADES: dict[str, list[tuple[Case, float]]] = {
    "face_distance": [(similarity(0.6), 0), (similarity(0.45), 0.5), (similarity(0.375), 0.8), (similarity(-0.2), 1)],
    "selfie_face_doubt": [(crop("selfie", score=s), v) for s, v in [(0.91, 0), (0.75, 0.5), (0.5, 1)]],
    "document_face_doubt": [(crop("document", score=s), v) for s, v in [(0.86, 0), (0.675, 0.5), (0.4, 1)]],
    "selfie_blur": [(crop("selfie", sharpness=s), v) for s, v in [(155, 0), (87.5, 0.5), (50, 0.8), (9, 1)]],
    "document_blur": [(crop("document", sharpness=s), v) for s, v in [(80, 0), (47.5, 0.5), (9, 1)]],
    "selfie_exposure": [(crop("selfie", brightness=b), v) for b, v in [(45, 0), (30, 0.5), (15, 1), (0, 1)]],
    "document_exposure": [(crop("document", brightness=b), v) for b, v in [(210, 0), (225, 0.5), (255, 1)]],
    "text_doubt": [(confidence(c), v) for c, v in [(0.9, 0), (0.75, 0.5), (0.2, 1)]] + [(first_lines(0), 1)],
    "mrz_text_doubt": [(confidence(c, is_zone_line), v) for c, v in [(0.95, 0), (0.75, 0.5), (0.6, 1)]],
    "mrz_missing": [(no_mrz(spotless.document().mrz), 0), (no_mrz(), 1)],
    "mrz_check_digits": [
        (wrong_digits(), 0),
        (wrong_digits("composite"), 0.5),
        (wrong_digits("composite", "document_number"), 1),
        (wrong_digits("composite", "document_number", "date_of_birth"), 1),
    ],
    "mrz_corrections": [
        (zone(corrected=c, mended=m), v) for c, m, v in [(0, 0, 0), (1, 1, 0), (4, 0, 0.25), (4, 2, 0.5), (10, 0, 1)]
    ],
    "expired": [
        (expired_for(0), 0),
        (expired_for(1), 0.5),
        (expired_for(183), 0.75),
        (expired_for(365), 1),
        (expired_for(4000), 1),
    ],
    "expiry_unreadable": [(dates(date_of_expiry="2031-04-15"), 0), (dates(date_of_expiry=None), 1)],
    "implausible_dates": [
        (dates(date_of_birth="1905-03-16"), 0),  # 120 years old, 121 tomorrow
        (dates(date_of_birth="1905-03-15"), 1),
    ],
    "little_text": [(first_lines(n), v) for n, v in [(6, 0), (4, 0.5), (2, 1), (0, 1)]],
}


def test_every_factor_has_its_grades_here() -> None:
    assert GRADES.keys() | {"printed_disagreement"} == set(NAMES)


@pytest.mark.parametrize("name", GRADES)
def test_a_factor_follows_its_ramp(name: str) -> None:
    values = [antifraud.factors(*case, spotless.TODAY)[name] for case, _ in GRADES[name]]
    assert values == pytest.approx([expected for _, expected in GRADES[name]])


@pytest.mark.parametrize("name", GRADES)
def test_a_graver_finding_never_lowers_the_risk(name: str, session: onnxruntime.InferenceSession) -> None:
    risks = [risk_of(session, antifraud.factors(*case, spotless.TODAY)) for case, _ in GRADES[name]]
    assert risks == sorted(risks)
    assert risks[0] < risks[-1]


def test_a_verification_in_which_nothing_is_wrong_has_no_suspicion(session: onnxruntime.InferenceSession) -> None:
    factors = antifraud.factors(spotless.match(), spotless.document(), spotless.TODAY)
    assert factors == dict.fromkeys(NAMES, 0.0)
    assert risk_of(session, factors) == pytest.approx(0.0179862, abs=1e-6)  # 1 / (1 + e⁴)


def test_printed_text_of_another_person_is_a_disagreement(session: onnxruntime.InferenceSession) -> None:
    document = spotless.document()
    others = ["UTOPIA PASSPORT", "X12345678", "SOMEBODY", "ELSE", "UTOPIAN", "01 JAN 1990", "M", "02 FEB 2029"]
    lines = [spotless.line(text) for text in others] + document.lines[-2:]
    factors = antifraud.factors(spotless.match(), document.model_copy(update={"lines": lines}), spotless.TODAY)
    assert factors["printed_disagreement"] == 1
    assert {name for name, factor in factors.items() if factor} == {"printed_disagreement"}
    assert risk_of(session, factors) > 0.1


@pytest.mark.parametrize(
    "case",
    [
        dates(date_of_birth=(spotless.TODAY + timedelta(days=1)).isoformat()),
        dates(date_of_birth="1850-01-01"),
        dates(date_of_birth="2020-05-05", date_of_expiry="2020-05-05"),
    ],
    ids=["born tomorrow", "176 years old", "expired on the day of birth"],
)
def test_impossible_dates_alone_are_enough_for_a_review(case: Case, session: onnxruntime.InferenceSession) -> None:
    factors = antifraud.factors(*case, spotless.TODAY)
    assert factors["implausible_dates"] == 1
    assert risk_of(session, factors) >= DecisionSettings().risk_review


def test_without_an_mrz_only_its_absence_counts_not_what_it_would_have_said() -> None:
    document = spotless.document()
    document = document.model_copy(update={"mrz": None, "lines": document.lines[:-2]})
    factors = antifraud.factors(spotless.match(), document, spotless.TODAY)
    assert {name for name, factor in factors.items() if factor} == {"mrz_missing"}
    measured = measures(spotless.match(), document, spotless.TODAY)
    assert [name for name, value in measured.items() if value is None] == [
        "mrz_text_doubt",
        "mrz_check_digits",
        "mrz_corrections",
        "printed_disagreement",
    ]


def test_a_long_printed_line_is_not_taken_for_the_mrz() -> None:
    document = spotless.document()
    remark = spotless.line("THIS PASSPORT IS VALID FOR ALL COUNTRIES", confidence=0.6)
    document = document.model_copy(update={"lines": [remark, *document.lines]})
    assert antifraud.factors(spotless.match(), document, spotless.TODAY)["mrz_text_doubt"] == 0


@pytest.mark.parametrize("number", [math.nan, math.inf])
@pytest.mark.parametrize("which", ["similarity", "sharpness", "confidence"])
def test_a_number_that_is_not_finite_is_refused(which: str, number: float) -> None:
    case = {
        "similarity": similarity(number),
        "sharpness": crop("document", sharpness=number),
        "confidence": confidence(number),
    }[which]
    with pytest.raises(ValueError, match="not a finite number"):
        antifraud.factors(*case, spotless.TODAY)


@pytest.mark.parametrize("batch", [1, 2, 33])
def test_the_graph_computes_the_published_formula_for_every_batch_size(
    batch: int, session: onnxruntime.InferenceSession
) -> None:
    inputs = np.random.default_rng(batch).random((batch, K), np.float32)
    risk, contributions = session.run(["risk", "contributions"], {"factors": inputs})
    weights = np.array([factor.weight for factor in SCORECARD])
    expected = inputs.astype(np.float64) * weights
    assert contributions.shape == (batch, K)
    assert risk.shape == (batch, 1)
    assert contributions.dtype == risk.dtype == np.float32
    np.testing.assert_allclose(contributions, expected, rtol=1e-6)
    np.testing.assert_allclose(risk[:, 0], 1 / (1 + np.exp(-(INTERCEPT + expected.sum(1)))), rtol=1e-5)


def test_the_graph_names_its_factors_in_the_order_of_the_answers(session: onnxruntime.InferenceSession) -> None:
    order = list(antifraud.factors(spotless.match(), spotless.document(), spotless.TODAY))
    assert session.get_modelmeta().custom_metadata_map["factors"].split(",") == order


def test_no_factor_alone_leads_to_a_rejection(session: onnxruntime.InferenceSession) -> None:
    (risks,) = session.run(["risk"], {"factors": np.eye(K, dtype=np.float32)})
    assert risks.max() < DecisionSettings().risk_reject


def test_poor_pictures_alone_lead_to_a_review_and_never_to_a_rejection(session: onnxruntime.InferenceSession) -> None:
    poor = {name for name in NAMES if name.endswith(("_doubt", "_blur", "_exposure"))}
    assert len(poor) == 8
    risk = risk_of(session, {name: float(name in poor) for name in NAMES})
    assert DecisionSettings().risk_review <= risk < DecisionSettings().risk_reject


def test_an_altered_field_that_the_printed_text_does_not_repeat_is_rejected_with_impossible_dates(
    session: onnxruntime.InferenceSession,
) -> None:
    forged = {"mrz_check_digits", "printed_disagreement", "implausible_dates"}
    risk = risk_of(session, {name: float(name in forged) for name in NAMES})
    assert risk == pytest.approx(0.970688, abs=1e-5)  # 1 / (1 + e^(4 - 2.5 - 2 - 3))
    assert risk >= DecisionSettings().risk_reject


def test_every_factor_is_measured_in_the_order_of_the_scorecard() -> None:
    assert list(measures(spotless.match(), spotless.document(), spotless.TODAY)) == NAMES


def test_the_table_explains_every_factor_with_its_weight() -> None:
    rows = antifraud.explain()
    assert [row.factor for row in rows] == NAMES
    assert rows[0].mapping == "-0.05 → 1, 0.2 → 0"
    assert rows[0].weight == "3"
    lines = antifraud.markdown().splitlines()
    assert len(lines) == K + 2
    assert {line.count("|") for line in lines} == {7}


def test_the_scorecards_ramps_rise_along_their_measure_and_stay_between_0_and_1() -> None:
    for factor in SCORECARD:
        positions = [position for position, _ in factor.points]
        assert positions == sorted(set(positions)), factor.name
        assert {0, 1} <= {level for _, level in factor.points}, factor.name
        assert all(0 <= level <= 1 for _, level in factor.points), factor.name
        assert factor.weight > 0, factor.name


def test_a_person_is_not_too_old_on_the_day_of_a_leap_year_birthday() -> None:
    face, document = dates(date_of_birth="1904-02-29")
    assert antifraud.factors(face, document, date(2025, 2, 28))["implausible_dates"] == 0
    assert antifraud.factors(face, document, date(2025, 3, 1))["implausible_dates"] == 1
