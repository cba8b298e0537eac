"""The dates of a document that can be relied on."""

from __future__ import annotations

from datetime import date, datetime, timezone

from serve_app.kyc.answers import Document


def utc_today() -> date:
    """The day on which documents have to be valid."""
    return datetime.now(timezone.utc).date()


def birth_date(document: Document) -> date | None:
    """The date of birth; None where it was not read, is no date, or its MRZ check digit is wrong."""
    return _reliable(document, "date_of_birth")


def expiry_date(document: Document) -> date | None:
    """The last day of validity; None where it was not read, is no date, or its MRZ check digit is wrong."""
    return _reliable(document, "date_of_expiry")


def _reliable(document: Document, field: str) -> date | None:
    if document.mrz is not None and not document.mrz.checks.get(field, True):
        return None
    try:
        return date.fromisoformat(document.fields.get(field) or "")
    except ValueError:
        return None
