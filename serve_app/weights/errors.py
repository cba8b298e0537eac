"""What can go wrong on the way from a package to a model file."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[str], None]
"""Is told, in a few words, what is being waited for."""


class WeightsError(Exception):
    """A model's file could not be had or prepared. The message says what to do."""


def silent(message: str) -> None:
    """The Progress that says nothing."""
