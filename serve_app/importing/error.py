"""Why a folder cannot be imported."""

from __future__ import annotations


class RepositoryError(Exception):
    """A folder that is no model repository; says what is expected."""


class NotExpressible(Exception):
    """A model that no entry can be made of; says why."""
