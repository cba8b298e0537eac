"""What a document says, from its machine-readable zone where it has one and else from its labelled printed lines."""

from __future__ import annotations

import datetime
import itertools
import re
from collections.abc import Callable, Sequence

from serve_app.kyc import mrz
from serve_app.kyc.answers import Document, Mrz, TextLine
from serve_app.kyc.mrz_writing import transliterate

FIELDS = (
    "document_type",
    "document_number",
    "surname",
    "given_names",
    "nationality",
    "issuing_state",
    "date_of_birth",
    "date_of_expiry",
    "sex",
    "personal_number",
)

# Labels as compared: lower case, letters only. English, French, German, Spanish, Italian. The longest that a text
# begins with is its label.
_LABELS = {
    "document_type": ("type", "typ", "tipo", "documenttype"),
    "document_number": (
        *("documentno", "documentnumber", "documentnr", "passportno", "passportnumber", "cardno", "cardnumber"),
        *("identitycardno", "idno", "nodudocument", "passeportno", "passnr", "ausweisnr", "ausweisnummer"),
        *("pasaporteno", "numerodedocumento", "passaporton", "nodupasseport"),
    ),
    "surname": ("surname", "lastname", "familyname", "nom", "name", "familienname", "nachname", "apellidos", "cognome"),
    "given_names": (
        "givennames",
        "givenname",
        "firstname",
        "forenames",
        "prenoms",
        "prenom",
        "vornamen",
        "nombres",
        "nome",
    ),
    "nationality": ("nationality", "nationalite", "staatsangehorigkeit", "nacionalidad", "cittadinanza"),
    "issuing_state": ("issuingstate", "issuingcountry", "codeofissuingstate", "countrycode", "codedupays"),
    "date_of_birth": (
        *("dateofbirth", "birthdate", "dob", "datedenaissance", "geburtsdatum", "geburtstag"),
        *("fechadenacimiento", "datadinascita"),
    ),
    "date_of_expiry": (
        *("dateofexpiry", "dateofexpiration", "expirydate", "expires", "expiry", "validuntil", "datedexpiration"),
        *("gultigbis", "fechadecaducidad", "datadiscadenza"),
    ),
    "sex": ("sex", "gender", "sexe", "geschlecht", "sexo", "sesso"),
    "personal_number": ("personalno", "personalnumber", "nationalidno", "numeropersonnel", "personennummer"),
}
_BY_LENGTH = sorted(((label, name) for name, labels in _LABELS.items() for label in labels), key=lambda x: -len(x[0]))
# The first three letters of months in the labels' languages.
_MONTHS = {
    name: number
    for number, names in enumerate(
        (
            *("JAN ENE GEN", "FEB FEV", "MAR MRZ", "APR AVR ABR", "MAY MAI MAG", "JUN GIU"),
            *("JUL LUG", "AUG AOU AGO", "SEP SET", "OCT OKT OTT", "NOV", "DEC DEZ DIC"),
        ),
        start=1,
    )
    for name in names.split()
}
_DIGITS = str.maketrans("OQDIL|ZSB", "000111258")
_CONFUSED = str.maketrans("OQDILZSGB", "000112568")
_ABOVE = 2.5  # a value stands below its label within so many of the label's heights


def document_fields(zone: Mrz | None, lines: Sequence[TextLine], today: datetime.date) -> dict[str, str | None]:
    """The FIELDS, None where the document does not say.

    Dates are ISO 8601; states are ICAO 9303's codes from a zone and as printed otherwise; sex is M, F or X. With a zone
    everything is from it, so that no two sources are mixed.
    """
    return _from_zone(mrz.parse(zone.format, zone.lines), today) if zone else _from_print(lines, today)


def _from_zone(zone: mrz.Zone, today: datetime.date) -> dict[str, str | None]:
    birth = mrz.birth_date(zone.date_of_birth, today)
    expiry = mrz.expiry_date(zone.date_of_expiry, today)
    return {
        "document_type": zone.document_type or None,
        "document_number": zone.document_number or None,
        "surname": zone.surname or None,
        "given_names": zone.given_names or None,
        "nationality": zone.nationality or None,
        "issuing_state": zone.issuing_state or None,
        "date_of_birth": birth.isoformat() if birth else None,
        "date_of_expiry": expiry.isoformat() if expiry else None,
        "sex": zone.sex,
        "personal_number": zone.personal_number or None,
    }


def _from_print(lines: Sequence[TextLine], today: datetime.date) -> dict[str, str | None]:
    fields: dict[str, str | None] = dict.fromkeys(FIELDS)
    labelled = [(line, _label(line.text)) for line in lines]
    values = [line for line, label in labelled if label is None]
    for line, label in labelled:
        if label is None or fields[label[0]] is not None:
            continue
        name, rest = label
        nearest = min(
            (value for value in values if _belongs(line, value)), key=lambda value: _apart(line, value), default=None
        )
        text = rest or (nearest.text.strip() if nearest else "")
        fields[name] = _READERS.get(name, _as_printed)(text, today)
    return fields


def _label(text: str) -> tuple[str, str] | None:
    """The field that a text is the label of, and the value that follows the label within it, if any."""
    head, colon, rest = text.partition(":")
    letters = "".join(c for c in transliterate(head) if c.isalpha()).lower()
    for label, name in _BY_LENGTH:
        if letters == label or (letters.startswith(label) and re.search(r"[/.]|\(", head)):
            return name, rest.strip() if colon else ""
    return None


def _belongs(label: TextLine, value: TextLine) -> bool:
    """Whether the value is below the label or right of it, nearby."""
    (left, top), (right, _), (_, bottom) = label.box[0], label.box[1], label.box[2]
    height = max(1.0, bottom - top)
    x, y = value.box[0]
    below = 0 < y - top <= _ABOVE * height and abs(x - left) <= 2 * height
    beside = abs(y - top) <= height / 2 and 0 <= x - right <= 8 * height
    return below or beside


def _apart(label: TextLine, value: TextLine) -> float:
    return abs(value.box[0][0] - label.box[0][0]) + abs(value.box[0][1] - label.box[0][1])


def _as_printed(text: str, today: datetime.date) -> str | None:
    return text or None


def _as_number(text: str, today: datetime.date) -> str | None:
    return "".join(text.split()) or None


def _as_sex(text: str, today: datetime.date) -> str | None:
    first = text[:1].upper()
    return first if first in {"M", "F", "X"} else None


def _as_birth(text: str, today: datetime.date) -> str | None:
    return min((day.isoformat() for day in _dates(text) if day <= today), default=None)


def _as_expiry(text: str, today: datetime.date) -> str | None:
    # Where 02/10 may be either, no document is taken as valid for longer than it surely is.
    return min((day.isoformat() for day in _dates(text)), default=None)


_READERS: dict[str, Callable[[str, datetime.date], str | None]] = {
    "document_number": _as_number,
    "personal_number": _as_number,
    "sex": _as_sex,
    "date_of_birth": _as_birth,
    "date_of_expiry": _as_expiry,
}


def _dates(text: str) -> set[datetime.date]:
    """The days with a four-digit year that `text` may mean: 12 AUG 1974, 12.08.1974, 1974-08-12, 08/12/1974."""
    plain = "".join(text.upper().split())
    triples: list[tuple[str, int, str]] = []
    for match in re.finditer(
        r"([\dOQIL|SB]{1,2})[./-]?([A-Z]{3})[A-Z]*[./-]?(?:[A-Z]{3,}[./-]?)?([\dOQIL|SB]{4})", plain
    ):
        if match[2] in _MONTHS:
            triples.append((match[3], _MONTHS[match[2]], match[1]))
    for match in re.finditer(r"(\d{1,2})[./-](\d{1,2})[./-](\d{4})", plain):
        triples += [(match[3], int(match[2]), match[1]), (match[3], int(match[1]), match[2])]
    for match in re.finditer(r"(\d{4})[./-](\d{1,2})[./-](\d{1,2})", plain):
        triples.append((match[1], int(match[2]), match[3]))
    days = set()
    for year, month, day in triples:
        try:
            days.add(datetime.date(int(year.translate(_DIGITS)), month, int(day.translate(_DIGITS))))
        except ValueError:
            continue
    return days


def printed_agreement(document: Document) -> float:
    """The share, 0 to 1, of the zone's number, names and dates that the printed text repeats; 0 without a zone.

    The zone's own lines do not count as printed. Spaces, punctuation, accents and date formats make no difference; what
    differs only by letters that recognition confuses (O, 0) counts as equal. In names one character in five may differ,
    in the number none.
    """
    if document.mrz is None:
        return 0.0
    zone = mrz.parse(document.mrz.format, document.mrz.lines)
    printed = [line.text for line in document.lines if not _of_zone(line.text, document.mrz.lines)]
    texts = ["".join(transliterate(text).replace(mrz.FILLER, "").split()).translate(_CONFUSED) for text in printed]
    number = zone.document_number.translate(_CONFUSED)
    names = [word for word in (*zone.surname.split(), *zone.given_names.split()) if word]
    found = [any(number in text for text in texts)]
    found += [any(_contains(text, word.translate(_CONFUSED)) for text in texts) for word in names]
    days = set(itertools.chain.from_iterable(_dates(text) for text in printed))
    found += [any(day.strftime("%y%m%d") == date for day in days) for date in (zone.date_of_birth, zone.date_of_expiry)]
    return sum(found) / len(found)


def _of_zone(text: str, lines: Sequence[str]) -> bool:
    """Whether a printed text is a piece of the machine-readable zone."""
    plain = "".join(text.upper().split())
    if plain.count(mrz.FILLER) >= 3:
        return True
    return len(plain) >= 16 and any(_contains(line.translate(_CONFUSED), plain.translate(_CONFUSED)) for line in lines)


def _contains(text: str, word: str) -> bool:
    """Whether `word` is in `text` but for one substitution, insertion or deletion in every five characters."""
    allowed = len(word) // 5
    # Sellers' algorithm (1980): edit distance of `word` to the nearest piece of `text`, column by column.
    distances = list(range(len(word) + 1))
    best = distances[-1]
    for character in text:
        diagonal, distances[0] = distances[0], 0
        for i, expected in enumerate(word, start=1):
            changed = min(distances[i] + 1, distances[i - 1] + 1, diagonal + (character != expected))
            diagonal, distances[i] = distances[i], changed
        best = min(best, distances[-1])
    return best <= allowed
