from __future__ import annotations

from datetime import date

import pytest

from serve_app.kyc.answers import Document
from serve_app.kyc.document_dates import birth_date, expiry_date
from tests.kyc import spotless


def test_dates_are_read_from_the_documents_fields() -> None:
    document = spotless.document()
    assert birth_date(document) == date(1974, 8, 12)
    assert expiry_date(document) == date(2031, 4, 15)


@pytest.mark.parametrize("text", [None, "", "2031-02-30", "31 APR"])
def test_what_is_no_date_is_not_read(text: str | None) -> None:
    document = Document(fields={"date_of_birth": text, "date_of_expiry": text}, mrz=None, lines=[])
    assert birth_date(document) is None
    assert expiry_date(document) is None


def test_a_field_that_is_absent_is_not_read() -> None:
    assert expiry_date(Document(fields={}, mrz=None, lines=[])) is None


def test_a_date_with_a_wrong_check_digit_is_not_relied_on_and_the_other_is() -> None:
    document = spotless.document()
    assert document.mrz is not None
    mrz = document.mrz.model_copy(update={"valid": False, "checks": {**document.mrz.checks, "date_of_expiry": False}})
    document = document.model_copy(update={"mrz": mrz})
    assert expiry_date(document) is None
    assert birth_date(document) == date(1974, 8, 12)
