"""What recognition does to a zone is undone where that is certain, and `valid` stays honest where it is not."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serve_app.kyc import mrz_writing
from serve_app.kyc.mrz_correction import find

NAMES = "P<UTOERIKSSON<<ANNA<MARIA<<<<<<<<<<<<<<<<<<<"
PERSON = "L898902C36UTO7408122F1204159ZE184226B<<<<<10"
TD1 = ["I<UTOD231458907<<<<<<<<<<<<<<<", "7408122F1204159UTO<<<<<<<<<<<6", "ERIKSSON<<ANNA<MARIA<<<<<<<<<<"]
TD2 = ["I<UTOERIKSSON<<ANNA<MARIA<<<<<<<<<<<", "D231458907UTO7408122F1204159<<<<<<<6"]


def replaced(text: str, position: int, character: str) -> str:
    return text[:position] + character + text[position + 1 :]


@pytest.mark.parametrize(("format", "lines"), [("TD1", TD1), ("TD2", TD2), ("TD3", [NAMES, PERSON])])
def test_a_zone_is_found_among_other_lines_and_left_as_it_is(format, lines):
    zone = find(["UTOPIA", "Surname ERIKSSON", *lines, "SPECIMEN"])
    assert zone is not None
    assert (zone.format, zone.lines, zone.valid, zone.corrected, zone.mended) == (format, lines, True, 0, 0)


@pytest.mark.parametrize(
    ("rows", "corrected"),
    [
        ([NAMES.lower(), f" {PERSON[:20]} {PERSON[20:]} "], 0),
        ([NAMES.replace("I", "|"), PERSON], 2),
        ([NAMES.replace("I", "1").replace("O", "0"), PERSON], 4),
        ([NAMES, PERSON.replace("UTO", "UT0")], 1),
        ([NAMES, PERSON.replace("F12", "FI2").replace("7408", "74O8")], 2),
        ([replaced(NAMES, 1, "K"), PERSON], 1),
        ([NAMES.replace("<<", "«"), PERSON], 0),
        ([NAMES.replace("ANNA<MARIA<<<<<", "ANNA<MARIA<<<K<"), PERSON], 1),
        ([NAMES.replace("ANNA<", "ANNA("), PERSON], 1),
        ([NAMES[:-3], PERSON], 3),
        ([NAMES[:-16], PERSON], 16),
        ([NAMES + "<<", PERSON], 2),
        ([NAMES, PERSON.replace("<<<<<", "<<<<")], 1),
        ([NAMES, PERSON.replace("<<<<<", "<<<<<<<")], 2),
        ([NAMES[1:], PERSON], 1),
    ],
    ids=[
        *("lower case and spaces", "bars for I", "digits in names", "a digit in a state", "letters in dates"),
        *("K in the document type", "guillemets", "K among the last fillers", "a bracket"),
        *("three fillers lost", "the tail lost", "two fillers too many", "a filler lost before the check digits"),
        *("two fillers too many before the check digits", "the P lost"),
    ],
)
def test_what_only_one_zone_can_have_been_is_corrected_and_counted(rows, corrected):
    zone = find(rows)
    assert zone is not None
    assert zone.lines == [NAMES, PERSON]
    assert zone.valid
    assert (zone.corrected, zone.mended) == (corrected, 0)


def test_a_confusion_in_the_number_is_mended_to_what_is_printed():
    read = [NAMES, replaced(PERSON, 5, "O")]
    zone = find(["Passport No", "L898902C3", *read])
    assert (zone.lines, zone.valid, zone.corrected, zone.mended) == ([NAMES, PERSON], True, 0, 1)


@pytest.mark.parametrize("printed", [[], ["L8989O2C3"], ["L8989"], ["2C3"]])
def test_a_confusion_in_the_number_stays_where_the_print_does_not_say_better(printed):
    zone = find([*printed, NAMES, replaced(PERSON, 5, "O")])
    assert (zone.lines[1], zone.valid, zone.mended) == (replaced(PERSON, 5, "O"), False, 0)


def test_a_changed_digit_is_not_mended_even_where_a_confusion_would_satisfy_the_check_digit():
    # 5 for 9 takes 4 from the sum, and O (24) for 0 adds 4 modulo 10.
    forged = replaced(PERSON, 2, "5")
    assert find([NAMES, "L8589O2C3" + PERSON[9:]]).checks["document_number"] is True
    for printed in ("L898902C3", "L858902C3"):
        zone = find([printed, NAMES, forged])
        assert (zone.lines[1], zone.valid) == (forged, False)


def test_two_confusions_that_both_satisfy_the_check_digit_are_told_apart_by_the_print():
    values = {"issuing_state": "UTO", "nationality": "UTO", "sex": "M", "surname": "A", "given_names": "B"}
    dates = {"date_of_birth": date(1980, 1, 1), "date_of_expiry": date(2030, 1, 1)}
    lines = mrz_writing.compose("TD3", document_type="P", document_number="OAA0AA777", **values, **dates)
    read = [lines[0], lines[1].replace("OAA0AA777", "OAAOAA777")]  # both O's weigh 7
    assert find(read).valid is False
    assert find(["OAAOAA777", *read]).valid is False
    zone = find(["OAA0AA777", *read])
    assert (zone.valid, zone.lines, zone.mended) == (True, lines, 1)


def test_a_lost_character_of_the_number_is_not_replaced_by_what_satisfies_the_check_digits():
    for position in range(9):
        zone = find([NAMES, PERSON[:position] + PERSON[position + 1 :]])
        assert zone is None or not zone.valid or zone.lines[1] == PERSON


def test_a_doubled_character_lost_from_the_number_comes_back_where_it_is_printed():
    values = {"issuing_state": "UTO", "nationality": "UTO", "sex": "M", "surname": "A", "given_names": "B"}
    dates = {"date_of_birth": date(1980, 1, 1), "date_of_expiry": date(2030, 1, 1)}
    number = "X1223345Y"
    lines = mrz_writing.compose(
        "TD3", document_type="P", document_number=number, **values, **dates, personal_number="12345678901234"
    )
    zone = find([number, lines[0], lines[1].replace("X122", "X12")])
    assert (zone.valid, zone.lines) == (True, lines)


@pytest.mark.parametrize(
    "rows",
    [
        [],
        ["PASSPORT", "ERIKSSON"],
        [NAMES],
        [PERSON],
        [NAMES, NAMES],
        ["P<" + "A" * 42, "1" * 44],
        ["Dear Sir or Madam, thank you for your let-ter", "of the fourth, which we received on the fifth."],
        TD1[:2],
    ],
)
def test_other_text_is_no_zone(rows):
    assert find(rows) is None


ALPHANUMERIC = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"


def texts(alphabet: str, min_size: int, max_size: int) -> st.SearchStrategy[str]:
    return st.lists(st.sampled_from(alphabet), min_size=min_size, max_size=max_size).map("".join)


names = st.lists(texts(ALPHANUMERIC[:26], 1, 5), min_size=1, max_size=2).map(" ".join)
zones = st.builds(
    lambda format, document_type, **values: (
        format,
        mrz_writing.compose(format, document_type="P" if format == "TD3" else document_type, **values),
    ),
    format=st.sampled_from(["TD1", "TD2", "TD3"]),
    document_type=st.sampled_from("ACI"),
    issuing_state=st.sampled_from(["UTO", "D", "KOR"]),
    document_number=texts(ALPHANUMERIC, 1, 9),
    nationality=st.sampled_from(["UTO", "D", "KOR"]),
    date_of_birth=st.dates(date(1930, 1, 1), date(2020, 12, 31)),
    sex=st.sampled_from("MFX"),
    date_of_expiry=st.dates(date(2020, 1, 1), date(2040, 12, 31)),
    surname=names,
    given_names=names,
    personal_number=texts(ALPHANUMERIC, 0, 7),
)


@given(zones)
def test_every_right_zone_is_found_untouched(zone):
    format, lines = zone
    found = find(["Name", *lines])
    assert found is not None
    assert (found.format, found.lines, found.valid, found.corrected, found.mended) == (format, lines, True, 0, 0)


@given(zones, st.data())
def test_a_substituted_digit_is_never_taken_for_right(zone, data):
    format, lines = zone
    line, spans = (1, [(0, 7), (8, 15)]) if format == "TD1" else (1, [(0, 10), (13, 20), (21, 28)])
    places = [place for start, stop in spans for place in range(start, stop) if lines[line][place].isdigit()]
    place = data.draw(st.sampled_from(places))
    digit = data.draw(st.sampled_from([digit for digit in "0123456789" if digit != lines[line][place]]))
    read = [*lines]
    read[line] = replaced(lines[line], place, digit)
    found = find([lines[1][:9], *read])
    assert found is None or not found.valid or found.lines == lines


def test_a_page_full_of_rows_like_a_zone_is_searched_at_its_foot_only():
    line = "P<UTOERIKSSON<<ANNA<MARIA<<<<<<<<<<<<<<<<<<<"
    zone = [line, "L898902C36UTO7408122F1204159ZE184226B<<<<<10"]
    assert find([*["XK" + line[2:30]] * 40, *zone]).valid
    assert find([*zone, *["XK" + line[2:44]] * 40]) is None
