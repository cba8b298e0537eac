"""ICAO Doc 9303's own specimens and check digit examples, dates and widths."""

from __future__ import annotations

from datetime import date

import pytest

from serve_app.kyc import mrz

TD1 = ["I<UTOD231458907<<<<<<<<<<<<<<<", "7408122F1204159UTO<<<<<<<<<<<6", "ERIKSSON<<ANNA<MARIA<<<<<<<<<<"]
TD1_LONG = ["I<UTOD23145890<7349<<<<<<<<<<<", "3407127M9507122UTO<<<<<<<<<<<2", "STEVENSON<<PETER<JOHN<<<<<<<<<"]
TD2 = ["I<UTOERIKSSON<<ANNA<MARIA<<<<<<<<<<<", "D231458907UTO7408122F1204159<<<<<<<6"]
TD2_LONG = ["I<UTOSTEVENSON<<PETER<JOHN<<<<<<<<<<", "D23145890<UTO3407127M95071227349<<<8"]
TD3 = ["P<UTOERIKSSON<<ANNA<MARIA<<<<<<<<<<<<<<<<<<<", "L898902C36UTO7408122F1204159ZE184226B<<<<<10"]
TD3_OLD = ["P<UTOERIKSSON<<ANNA<MARIA<<<<<<<<<<<<<<<<<<<", "L898902C<3UTO6908061F9406236ZE184226B<<<<<14"]


@pytest.mark.parametrize(
    ("text", "digit"),
    [
        ("520727", "3"),
        ("AB2134<<<", "5"),
        ("HA672242<658022549601086<<<<<<<<<<<<<<0", "8"),
        ("D231458907<<<<<<<<<<<<<<<34071279507122<<<<<<<<<<<", "2"),
        ("HA672242<658022549601086<<<<<<<", "8"),
    ],
)
def test_the_standards_check_digit_examples_come_out(text, digit):
    assert mrz.check_digit(text) == digit  # 9303 part 3, appendix A to section 4.9


@pytest.mark.parametrize(
    ("format", "lines", "number", "born", "expires", "surname", "given", "personal"),
    [
        ("TD1", TD1, "D23145890", "740812", "120415", "ERIKSSON", "ANNA MARIA", ""),
        ("TD1", TD1_LONG, "D23145890734", "340712", "950712", "STEVENSON", "PETER JOHN", ""),
        ("TD2", TD2, "D23145890", "740812", "120415", "ERIKSSON", "ANNA MARIA", ""),
        ("TD2", TD2_LONG, "D23145890734", "340712", "950712", "STEVENSON", "PETER JOHN", ""),
        ("TD3", TD3, "L898902C3", "740812", "120415", "ERIKSSON", "ANNA MARIA", "ZE184226B"),
        ("TD3", TD3_OLD, "L898902C", "690806", "940623", "ERIKSSON", "ANNA MARIA", "ZE184226B"),
    ],
    ids=["TD1", "TD1 long number", "TD2", "TD2 long number", "TD3", "TD3 of an earlier edition"],
)
def test_the_standards_specimens_are_read_and_valid(format, lines, number, born, expires, surname, given, personal):
    zone = mrz.parse(format, lines)
    assert zone.valid
    assert set(zone.checks) == {"document_number", "date_of_birth", "date_of_expiry", "composite"} | (
        {"personal_number"} if format == "TD3" else set()
    )
    assert (zone.document_number, zone.personal_number) == (number, personal)
    assert (zone.date_of_birth, zone.date_of_expiry) == (born, expires)
    assert (zone.surname, zone.given_names) == (surname, given)
    assert (zone.document_type, zone.issuing_state, zone.nationality) == ("P" if format == "TD3" else "I", "UTO", "UTO")


@pytest.mark.parametrize(
    ("position", "failing"),
    [
        (0, {"document_number", "composite"}),
        (9, {"document_number", "composite"}),
        (13, {"date_of_birth", "composite"}),
        (19, {"date_of_birth", "composite"}),
        (21, {"date_of_expiry", "composite"}),
        (30, {"personal_number", "composite"}),
        (42, {"personal_number", "composite"}),
        (43, {"composite"}),
    ],
)
def test_a_changed_character_fails_its_own_check_and_the_composite(position, failing):
    line = TD3[1]
    changed = "7" if line[position] != "7" else "4"
    zone = mrz.parse("TD3", [TD3[0], line[:position] + changed + line[position + 1 :]])
    assert {name for name, right in zone.checks.items() if not right} == failing


def test_a_letter_in_a_date_fails_even_where_the_weights_would_forgive_it():
    # A is 10 and so counts as 0: the digit after it stays right.
    with_zero = "900101" + mrz.check_digit("900101")
    with_letter = with_zero.replace("0", "A", 1)
    assert mrz.check_digit(with_letter[:6]) == with_letter[6]
    line = "L898902C36UTO" + with_letter + "F1204159ZE184226B<<<<<1"
    composite = mrz.check_digit(line[:10] + line[13:20] + line[21:43])
    assert not mrz.parse("TD3", [TD3[0], line + composite]).checks["date_of_birth"]


@pytest.mark.parametrize(("digit", "right"), [("<", True), ("0", True), ("1", False)])
def test_empty_optional_data_may_leave_out_its_check_digit(digit, right):
    line = "L898902C36UTO7408122F1204159<<<<<<<<<<<<<<" + digit
    zone = mrz.parse("TD3", [TD3[0], line + mrz.check_digit(line[:10] + line[13:20] + line[21:43])])
    assert zone.checks["personal_number"] is right


def test_filled_optional_data_needs_its_check_digit():
    line = TD3[1][:42] + "<"
    assert not mrz.parse("TD3", [TD3[0], line + TD3[1][43]]).checks["personal_number"]


@pytest.mark.parametrize(("character", "sex"), [("M", "M"), ("F", "F"), ("<", "X"), ("K", None)])
def test_sex_is_what_the_standard_has_or_nothing(character, sex):
    assert mrz.parse("TD3", [TD3[0], TD3[1][:20] + character + TD3[1][21:]]).sex == sex


@pytest.mark.parametrize("lines", [TD3[:1], [*TD3, TD3[1]], [TD3[0], TD3[1][:-1]], TD1])
def test_lines_of_another_format_are_refused(lines):
    with pytest.raises(ValueError, match="a TD3 zone has 2 lines of 44 characters"):
        mrz.parse("TD3", lines)


@pytest.mark.parametrize(
    ("yymmdd", "born"),
    [
        ("740812", date(1974, 8, 12)),
        ("260630", date(2026, 6, 30)),
        ("260701", date(1926, 7, 1)),
        ("000229", date(2000, 2, 29)),
        ("991332", None),
        ("74<<<<", None),
    ],
)
def test_nobody_is_born_after_today(yymmdd, born):
    assert mrz.birth_date(yymmdd, date(2026, 6, 30)) == born


@pytest.mark.parametrize(
    ("yymmdd", "expires"),
    [
        ("360630", date(2036, 6, 30)),
        ("750101", date(2075, 1, 1)),
        ("770101", date(1977, 1, 1)),
        ("120415", date(2012, 4, 15)),
        ("230229", None),
    ],
)
def test_documents_expire_in_the_century_nearest_to_today(yymmdd, expires):
    assert mrz.expiry_date(yymmdd, date(2026, 6, 30)) == expires
