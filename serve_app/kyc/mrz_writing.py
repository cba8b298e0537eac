"""Writes machine-readable zones by ICAO Doc 9303: transliteration, truncation and check digits."""

from __future__ import annotations

import datetime
import unicodedata
from typing import Literal

from serve_app.kyc import mrz
from serve_app.kyc.mrz import FILLER

_NUMBER_LENGTH = 9

# 9303 part 3, section 6 A, where it does not just drop the accent.
_TRANSLITERATION = str.maketrans(
    {"Ä": "AE", "Ö": "OE", "Ü": "UE", "ß": "SS", "ẞ": "SS", "Å": "AA", "Æ": "AE", "Ø": "OE", "Œ": "OE", "Þ": "TH"}
    | {"Đ": "D", "Ð": "D", "Ł": "L", "Ħ": "H", "Ŧ": "T", "ı": "I", "Ŋ": "N", "'": "", "’": ""}  # noqa: RUF001
)


def transliterate(text: str) -> str:
    """`text` in the zone's alphabet: upper case, accents by 9303 part 3 section 6, other characters as fillers."""
    plain = unicodedata.normalize("NFC", text).upper().translate(_TRANSLITERATION)
    plain = "".join(c for c in unicodedata.normalize("NFKD", plain) if not unicodedata.combining(c))
    return "".join(c if c in mrz.CHARACTERS["any"] else FILLER for c in plain)


def compose(
    format: mrz.Format,
    *,
    document_type: str,
    issuing_state: str,
    document_number: str,
    nationality: str,
    date_of_birth: datetime.date,
    sex: Literal["M", "F", "X"],
    date_of_expiry: datetime.date,
    surname: str,
    given_names: str,
    personal_number: str = "",
) -> list[str]:
    """The lines of a zone that says this. Names too long are cut as 9303 allows, given names first.

    Raises ValueError where the number or the personal number does not fit.
    """
    layout = mrz.LAYOUTS[format]
    texts = {
        "document_type": transliterate(document_type),
        "issuing_state": transliterate(issuing_state),
        "nationality": transliterate(nationality),
        "date_of_birth": date_of_birth.strftime("%y%m%d"),
        "date_of_expiry": date_of_expiry.strftime("%y%m%d"),
        "sex": FILLER if sex == "X" else sex,
        "names": _names(transliterate(surname), transliterate(given_names), layout),
        "document_number": transliterate(document_number),
        "optional": transliterate(personal_number),
    }
    number = texts["document_number"]
    long = len(number) > _NUMBER_LENGTH and format != "TD3"
    if long:
        texts["document_number"] = number[:_NUMBER_LENGTH]
        texts["optional"] = number[_NUMBER_LENGTH:] + mrz.check_digit(number) + FILLER + texts["optional"]
    zone = [[FILLER] * layout.width for _ in range(layout.lines)]
    for field in layout.fields:
        line, start, stop = field.span
        text = texts.get(field.name, "").rstrip(FILLER)
        if len(text) > stop - start:
            raise ValueError(f"{field.name} does not fit the {stop - start} characters that {format} has for it")
        zone[line][start : start + len(text)] = text
    for check in layout.checks:
        if not (long and check.name == "document_number"):
            line, position = check.digit
            zone[line][position] = mrz.check_digit("".join("".join(zone[i][a:b]) for i, a, b in check.over))
    return ["".join(line) for line in zone]


def _names(surname: str, given_names: str, layout: mrz.Layout) -> str:
    width = next(f.span[2] - f.span[1] for f in layout.fields if f.name == "names")
    surname, given_names = mrz.words(surname).replace(" ", FILLER), mrz.words(given_names).replace(" ", FILLER)
    if given_names:
        surname = f"{surname[: width - 3]}{FILLER * 2}{given_names}"
    return surname[:width]
