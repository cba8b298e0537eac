"""A sample identity: a freely licensed portrait as the selfie, a specimen document with another photo of the person."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path

import cv2

from serve_app.artefacts import mirror_directory
from serve_app.cluster.verify import ROUTE, request_verification, show_verification
from serve_app.kyc.images import decode
from serve_app.kyc.specimen import Identity, render
from serve_app.spec import Spec
from serve_app.weights.errors import Progress
from serve_app.weights.fetch import cache_directory
from serve_app.weights.samples import sample_photos

_SENT = ("selfie", "document")


def why_no_sample(spec: Spec) -> str | None:
    """Why a service of this spec cannot verify the sample identity; None where it can."""
    pipeline = next((each for each in spec.pipelines.values() if each.route == ROUTE), None)
    if pipeline is None:
        return f"no pipeline of the spec has the route {ROUTE}"
    wanted = sorted(name for name, images in pipeline.images.items() if images.fewest or name in _SENT)
    if wanted != sorted(_SENT):
        return f"{ROUTE} takes {', '.join(wanted) or 'other things'}, and the sample is {' and '.join(_SENT)}"
    return None


def fetch_photos(progress: Progress) -> Path:
    """The folder with the sample's photos. WeightsError where they cannot be had."""
    return sample_photos(cache_directory(), mirror_directory(), progress)


def verify_sample(url: str, photos: Path) -> str:
    """Verify the sample identity against the service at `url`; how it went, for a person. ClusterError."""
    selfie = (photos / "person_b_1.jpg").read_bytes()
    return show_verification(request_verification(url, selfie, _document(photos / "person_b_2.jpg"), []))


def write_sample(folder: Path, photos: Path) -> list[Path]:
    """The sample's selfie.jpg and document.jpg in `folder`, to try the service with; the files written."""
    folder.mkdir(parents=True, exist_ok=True)
    pictures = {
        "selfie.jpg": (photos / "person_b_1.jpg").read_bytes(),
        "document.jpg": _document(photos / "person_b_2.jpg"),
    }
    for name, content in pictures.items():
        (folder / name).write_bytes(content)
    return [folder / name for name in pictures]


def _document(portrait: Path) -> bytes:
    valid = Identity(date_of_expiry=date.today() + timedelta(days=5 * 365))
    picture = render(decode(portrait.read_bytes(), max_pixels=50_000_000, min_side=1).pixels, valid)
    return cv2.imencode(".jpg", picture)[1].tobytes()
