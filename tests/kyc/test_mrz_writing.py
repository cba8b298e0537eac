"""Zones written from what they shall say, against published ones and the standard's rules."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serve_app.kyc import mrz
from serve_app.kyc.mrz_writing import compose, transliterate

ERIKSSON = {
    "issuing_state": "UTO",
    "nationality": "UTO",
    "date_of_birth": date(1974, 8, 12),
    "sex": "F",
    "date_of_expiry": date(2012, 4, 15),
    "surname": "Eriksson",
    "given_names": "Anna Maria",
}


@pytest.mark.parametrize(
    ("format", "values", "lines"),
    [
        (
            "TD3",
            {"document_type": "P", "document_number": "L898902C3", "personal_number": "ZE184226B"},
            ["P<UTOERIKSSON<<ANNA<MARIA<<<<<<<<<<<<<<<<<<<", "L898902C36UTO7408122F1204159ZE184226B<<<<<10"],
        ),
        (
            "TD2",
            {"document_type": "I", "document_number": "D23145890"},
            ["I<UTOERIKSSON<<ANNA<MARIA<<<<<<<<<<<", "D231458907UTO7408122F1204159<<<<<<<6"],
        ),
        (
            "TD1",
            {"document_type": "I", "document_number": "D23145890"},
            ["I<UTOD231458907<<<<<<<<<<<<<<<", "7408122F1204159UTO<<<<<<<<<<<6", "ERIKSSON<<ANNA<MARIA<<<<<<<<<<"],
        ),
    ],
)
def test_the_standards_specimens_are_written_character_by_character(format, values, lines):
    assert compose(format, **ERIKSSON, **values) == lines


@pytest.mark.parametrize(
    ("format", "lines"),
    [
        ("TD1", ["I<UTOD23145890<7349<<<<<<<<<<<", "3407127M9507122UTO<<<<<<<<<<<2", "STEVENSON<<PETER<JOHN<<<<<<<<<"]),
        ("TD2", ["I<UTOSTEVENSON<<PETER<JOHN<<<<<<<<<<", "D23145890<UTO3407127M95071227349<<<8"]),
    ],
)
def test_a_long_number_continues_in_the_optional_data(format, lines):
    stevenson = {"surname": "Stevenson", "given_names": "Peter John", "sex": "M", "document_type": "I"}
    dates = {"date_of_birth": date(1934, 7, 12), "date_of_expiry": date(1995, 7, 12)}
    states = {"issuing_state": "UTO", "nationality": "UTO"}
    assert compose(format, **stevenson, **dates, **states, document_number="D23145890734") == lines


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("Müller-Lüdenscheidt", "MUELLER<LUEDENSCHEIDT"),
        ("Strauß", "STRAUSS"),
        ("O'Connor", "OCONNOR"),
        ("Åse Bjørn", "AASE<BJOERN"),
        ("Núñez", "NUNEZ"),
        ("Dvořák", "DVORAK"),
        ("Łukasz", "LUKASZ"),
    ],
)
def test_names_are_transliterated_as_the_standard_says(name, written):
    assert transliterate(name) == written


def test_long_names_keep_the_beginning_of_both():
    values = {**ERIKSSON, "surname": "NILAVADHANANANDA" * 3, "document_type": "P", "document_number": "1"}
    line = compose("TD3", **values)[0]
    assert len(line) == 44
    assert line == "P<UTO" + ("NILAVADHANANANDA" * 3)[:36] + "<<A"


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"document_number": "1234567890"}, "document_number"),
        ({"personal_number": "123456789012345"}, "optional"),
    ],
)
def test_a_number_that_does_not_fit_is_refused(values, field):
    with pytest.raises(ValueError, match=field):
        compose("TD3", **{**ERIKSSON, "document_type": "P", "document_number": "1", **values})


def _own_check_digit(text: str) -> int:
    """Section 4.9 once more, written otherwise: letters from the ASCII table, weights by repetition."""
    values = [0 if c == "<" else ord(c) - 48 if c.isdigit() else ord(c) - 55 for c in text]
    return sum(value * weight for value, weight in zip(values, [7, 3, 1] * len(text), strict=False)) % 10


ALPHANUMERIC = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"


def texts(alphabet: str, min_size: int, max_size: int) -> st.SearchStrategy[str]:
    return st.lists(st.sampled_from(alphabet), min_size=min_size, max_size=max_size).map("".join)


names = st.lists(texts(ALPHANUMERIC[:26], 1, 5), min_size=1, max_size=2).map(" ".join)
identities = st.fixed_dictionaries(
    {
        "document_type": st.sampled_from("AC"),
        "issuing_state": st.sampled_from(["UTO", "D", "KOR"]),
        "document_number": texts(ALPHANUMERIC, 1, 9),
        "nationality": st.sampled_from(["UTO", "D", "KOR"]),
        "date_of_birth": st.dates(date(1930, 1, 1), date(2020, 12, 31)),
        "sex": st.sampled_from("MFX"),
        "date_of_expiry": st.dates(date(2020, 1, 1), date(2040, 12, 31)),
        "surname": names,
        "given_names": names,
        "personal_number": texts(ALPHANUMERIC, 0, 7),
    }
)


@given(identities, st.sampled_from(["TD1", "TD2", "TD3"]))
def test_what_is_written_reads_back(identity, format):
    if format == "TD3":
        identity = {**identity, "document_type": "P"}
    lines = compose(format, **identity)
    zone = mrz.parse(format, lines)
    assert zone.valid
    for name in ("document_type", "issuing_state", "document_number", "nationality", "sex", "surname", "given_names"):
        assert getattr(zone, name) == identity[name]
    assert zone.personal_number == identity["personal_number"]
    assert zone.date_of_birth == identity["date_of_birth"].strftime("%y%m%d")
    assert zone.date_of_expiry == identity["date_of_expiry"].strftime("%y%m%d")
    if format == "TD3":
        spans, digits = [lines[1][:9], lines[1][13:19], lines[1][21:27], lines[1][28:42]], [9, 19, 27, 42]
        assert [int(lines[1][digit]) for digit in digits] == [_own_check_digit(span) for span in spans]
        assert int(lines[1][43]) == _own_check_digit(lines[1][:10] + lines[1][13:20] + lines[1][21:43])
