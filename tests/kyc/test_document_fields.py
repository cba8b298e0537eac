"""Fields from the zone or the print, and how far the two agree."""

from __future__ import annotations

from datetime import date

import pytest

from serve_app.kyc.answers import Document, TextLine
from serve_app.kyc.document_fields import FIELDS, document_fields, printed_agreement
from serve_app.kyc.mrz_correction import find

TODAY = date(2026, 6, 30)
ZONE = ["P<UTOMUELLER<<ANNA<MARIA<<<<<<<<<<<<<<<<<<<<", "L898902C36UTO7408122F1204159ZE184226B<<<<<10"]
PRINT = ["Surname", "MÜLLER", "Given names", "ANNA MARIA", "L898902C3", "12 AUG 1974", "15 APR 2012"]


def line(text: str, x: float = 0.0, y: float = 0.0, height: float = 20.0) -> TextLine:
    right, bottom = x + 10.0 * len(text), y + height
    return TextLine(text=text, confidence=0.9, box=[(x, y), (right, y), (right, bottom), (x, bottom)])


def document(printed: list[str], zone: list[str] | None = None) -> Document:
    zone = ZONE if zone is None else zone
    return Document(fields={}, mrz=find(zone), lines=[line(text) for text in [*printed, *zone]])


def test_fields_are_the_zones_where_there_is_one():
    fields = document_fields(find(ZONE), [line("Surname"), line("SOMEBODY ELSE", y=25)], TODAY)
    assert fields == {
        "document_type": "P",
        "document_number": "L898902C3",
        "surname": "MUELLER",
        "given_names": "ANNA MARIA",
        "nationality": "UTO",
        "issuing_state": "UTO",
        "date_of_birth": "1974-08-12",
        "date_of_expiry": "2012-04-15",
        "sex": "F",
        "personal_number": "ZE184226B",
    }


def test_what_the_zone_does_not_say_is_null():
    lines = ["I<UTOD231458907<<<<<<<<<<<<<<<", "74<<<<3<1204159UTO<<<<<<<<<<<6", "ERIKSSON<<<<<<<<<<<<<<<<<<<<<<"]
    zone = find(["I<UTOD231458907<<<<<<<<<<<<<<<", "7408122F1204159UTO<<<<<<<<<<<6", lines[2]])
    fields = document_fields(zone.model_copy(update={"lines": lines}), [], TODAY)
    assert fields["date_of_birth"] is None
    assert fields["given_names"] is None
    assert fields["personal_number"] is None
    assert fields["sex"] == "X"
    assert tuple(fields) == FIELDS


def test_without_a_zone_values_are_taken_from_below_and_beside_their_labels():
    lines = [
        *(line("Surname / Nom", 0, 0), line("MÜLLER", 0, 25), line("Document No", 300, 0), line("C01X00T47", 300, 25)),
        *(line("Givennames", 0, 60), line("ANNA MARIA", 0, 85)),
        *(line("Nationality", 0, 120), line("UTOPIAN", 150, 121), line("Sex", 300, 120), line("F", 360, 120)),
        *(line("Date of birth:12.08.1974", 0, 180), line("Date ofexpiry", 0, 240), line("15APR 2034", 0, 265)),
        line("SPECIMEN", 500, 500),
    ]
    assert document_fields(None, lines, TODAY) == {
        "document_type": None,
        "document_number": "C01X00T47",
        "surname": "MÜLLER",
        "given_names": "ANNA MARIA",
        "nationality": "UTOPIAN",
        "issuing_state": None,
        "date_of_birth": "1974-08-12",
        "date_of_expiry": "2034-04-15",
        "sex": "F",
        "personal_number": None,
    }


@pytest.mark.parametrize(
    ("printed", "iso"),
    [
        ("12 AUG 1974", "1974-08-12"),
        ("12AUG1974", "1974-08-12"),
        ("12 AUG/AOUT 1974", "1974-08-12"),
        ("12 August 1974", "1974-08-12"),
        ("12 OKT 1974", "1974-10-12"),
        ("I2 AUG I974", "1974-08-12"),
        ("12.08.1974", "1974-08-12"),
        ("12/8/1974", "1974-08-12"),
        ("1974-08-12", "1974-08-12"),
        ("31.02.1974", None),
        ("unknown", None),
        ("12 AUG 2074", None),
    ],
)
def test_dates_of_birth_are_read_as_they_are_printed(printed, iso):
    lines = [line("Date of birth"), line(printed, y=25)]
    assert document_fields(None, lines, TODAY)["date_of_birth"] == iso


def test_a_label_alone_gives_nothing():
    assert set(document_fields(None, [line("Surname"), line("far away", 900, 900)], TODAY).values()) == {None}


def test_print_that_repeats_the_zone_agrees_fully():
    assert printed_agreement(document(PRINT)) == 1.0


@pytest.mark.parametrize(
    ("changed", "to", "share"),
    [
        ("L898902C3", "L8989O2C3", 1.0),
        ("L898902C3", "L898902C8", 5 / 6),
        ("L898902C3", "X123456Y7", 5 / 6),
        ("MÜLLER", "MUELLR", 1.0),
        ("MÜLLER", "ERIKSSON", 5 / 6),
        ("ANNA MARIA", "ANNAMARIA", 1.0),
        ("ANNA MARIA", "MARIA", 5 / 6),
        ("12 AUG 1974", "12.08.1974", 1.0),
        ("12 AUG 1974", "12 AUG 1984", 5 / 6),
        ("15 APR 2012", "15APR2012", 1.0),
    ],
)
def test_single_slips_are_forgiven_and_other_values_are_not(changed, to, share):
    printed = [to if text == changed else text for text in PRINT]
    assert printed_agreement(document(printed)) == pytest.approx(share)


def test_the_zone_is_not_its_own_witness():
    assert printed_agreement(document([])) == 0.0
    assert printed_agreement(document([ZONE[1][:28]])) == 0.0


def test_without_a_zone_nothing_agrees():
    assert printed_agreement(document(PRINT, zone=[])) == 0.0
