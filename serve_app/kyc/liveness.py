"""Whether a face moved as a solid head does or as a flat picture, from its five landmarks in two or more frames.

Two views of a flat picture, however it is shifted, turned, tilted or brought nearer, are related by a homography. The
four corners of eyes and mouth fix it, so it says where the nose must be. On a head, eyes and mouth lie close to a
plane and the nose tip stands out of it by nearly half the distance between the eyes: where the head turns, the nose
leaves the place that the homography gives it (plane and parallax: Hartley and Zisserman, Multiple View Geometry, 2nd
edition, §13.3). An affine transform would do for distant cameras only: at arm's length a tilted photo breaks it.

So each frame's nose is mapped by the homography that takes its eyes and mouth onto a fixed quadrilateral. The result is
a projective invariant of five points in a plane: constant over all frames of a flat picture, and no frame has to be
the reference. The quadrilateral is that of the ArcFace template in units of its inter-ocular distance.

How much is more than jitter? The invariant's covariance follows from that of the landmarks by the mapping's Jacobian;
it grows by itself where a face is seen at a slant. The score rests on the reduced chi of the frames about their
weighted mean, sqrt(Q / (2F - 2)): 1 for landmarks that jitter by `JITTER` of the inter-ocular distance, whatever the
number of frames.

Reduced chi of YuNet's landmarks as `liveness_stage` measures them, on frames made of photos of 6 people (heads turn by
a depth map laid over the photo; the constants were chosen on the same frames):

    photo shifted, turned in its plane, brought nearer, tilted to 30°    0.4 to 1.7
    photo swung from -40° to 40°                                         1.5 to 2.2
    photo swung by 45° between two frames                                1.2 to 2.4, one of six 3.7
    head turned from -15° to 15° and further                             3.8 and more
    head turned by 15° between two frames                                3.3 to 5.6
    head turned by 12° and nodding by 8°, to both sides                  2.9 to 5.5
    head nodding by 12°                                                  0.8 to 1.7

`MIDPOINT` lies between. Nodding is not seen, YuNet's nose follows it too little: ask people to turn to a side, by 15°
or more. With exact landmarks and noise alone a nod of 15° is seen as well as a turn.

This is no tested presentation attack detection (ISO/IEC 30107-3). A video shown on a screen, a mask, a bent or folded
print, a print swung far, or photos of the same person from two sides get a high score.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from serve_app.kyc.faces import TEMPLATE, Points

JITTER = 0.01
"""Standard deviation of a landmark's coordinate, in inter-ocular distances."""

MIDPOINT = 2.4
"""The reduced chi at which the score is one half."""

STEEPNESS = 5.0
"""The logistic function's factor: a score of 0.03 at the flat pictures' 1.7, 0.27 at 2.2, 0.92 at the heads' 2.9."""

_PLANE = [0, 1, 3, 4]
_NOSE = 2
_INTER_OCULAR = float(np.linalg.norm(TEMPLATE[1] - TEMPLATE[0]))
_CANONICAL = (TEMPLATE.astype(np.float64) - TEMPLATE[_PLANE].mean(axis=0)) / _INTER_OCULAR
_EYES_TO_MOUTH = float(np.linalg.norm(_CANONICAL[3:].mean(axis=0) - _CANONICAL[:2].mean(axis=0)))
_SMALLEST_TRIANGLE = 0.02

Float64 = NDArray[np.float64]


class Assessment(NamedTuple):
    """`score`: 0 (flat or still) to 1 (moved as a solid head does).

    `motion`: how far the face moved: the largest root mean square distance of its landmarks between two frames.
    `parallax`: how far the nose left the plane of eyes and mouth: its largest distance from its mean place there.
    Both in inter-ocular distances.
    """

    score: float
    motion: float
    parallax: float


def assess(landmarks: Points) -> Assessment:
    """Assesses landmarks [F, 5, 2] of one face in F ≥ 2 frames, in pixels, in the order of `faces.TEMPLATE`.

    A frame in which three of eyes and mouth corners lie in a line (a full profile) says nothing about the plane and is
    left out. Raises ValueError where the shape is another, a coordinate is not finite, or both eyes are in one place.
    """
    points = np.asarray(landmarks, np.float64)
    if points.ndim != 3 or points.shape[1:] != (5, 2) or len(points) < 2:
        raise ValueError(f"landmarks of two or more frames [F, 5, 2] are needed, not {list(points.shape)}")
    if not np.isfinite(points).all():
        raise ValueError("a landmark's coordinate is not finite")
    if not _inter_ocular(points).all():
        raise ValueError("both eyes are in one place")
    motion = _motion(points)
    frontal = points[_smallest_triangle(points) >= _SMALLEST_TRIANGLE]
    if len(frontal) < 2:
        return Assessment(0.0, motion, 0.0)
    chi, parallax = _spread(*_nose_in_plane(frontal))
    return Assessment(float(1 / (1 + np.exp(STEEPNESS * (MIDPOINT - min(chi, 100.0))))), motion, parallax)


def _motion(points: Float64) -> float:
    difference = points[:, None] - points[None]
    distance = np.sqrt((difference**2).sum(axis=-1).mean(axis=-1))
    return float(distance.max() / np.median(_inter_ocular(points)))


def _inter_ocular(points: Float64) -> Float64:
    return np.asarray(np.linalg.norm(points[:, 1] - points[:, 0], axis=-1), np.float64)


def _face_size(points: Float64) -> Float64:
    """The inter-ocular distance of each frame as seen from the front.

    A turn shortens the distance between the eyes, a nod that from eyes to mouth: the longer one counts.
    """
    height = np.linalg.norm(points[:, 3:].mean(axis=1) - points[:, :2].mean(axis=1), axis=-1)
    return np.asarray(np.maximum(_inter_ocular(points), height / _EYES_TO_MOUTH), np.float64)


def _smallest_triangle(points: Float64) -> Float64:
    """Twice the smallest area of three of eyes and mouth corners, in squared inter-ocular distances, by frame."""
    areas = []
    for left_out in range(4):
        a, b, c = (points[:, corner] for i, corner in enumerate(_PLANE) if i != left_out)
        u, v = b - a, c - a
        areas.append(np.abs(u[:, 0] * v[:, 1] - u[:, 1] * v[:, 0]))
    return np.asarray(np.min(areas, axis=0) / _face_size(points) ** 2, np.float64)


def _nose_in_plane(points: Float64) -> tuple[Float64, Float64]:
    """The mapped nose [F, 2] and its covariance [F, 2, 2], by central differences over the ten coordinates."""
    size = _face_size(points)[:, None, None]
    step = 1e-4
    columns = []
    for coordinate in np.eye(10).reshape(10, 5, 2):
        moved = step * size * coordinate
        columns.append((_mapped_nose(points + moved) - _mapped_nose(points - moved)) / (2 * step))
    jacobian = np.stack(columns, axis=-1)
    return _mapped_nose(points), JITTER**2 * jacobian @ jacobian.transpose(0, 2, 1)


def _mapped_nose(points: Float64) -> Float64:
    """Where the homography from each frame's eyes and mouth onto the canonical ones takes its nose: [F, 2]."""
    x, y = np.moveaxis(points[:, _PLANE], -1, 0)
    u, v = _CANONICAL[_PLANE].T
    zero, one = np.zeros_like(x), np.ones_like(x)
    # Direct linear transformation with h33 = 1 (Hartley and Zisserman, §4.1).
    for_u = np.stack([x, y, one, zero, zero, zero, -u * x, -u * y], axis=-1)
    for_v = np.stack([zero, zero, zero, x, y, one, -v * x, -v * y], axis=-1)
    system = np.concatenate([for_u, for_v], axis=1)
    target = np.broadcast_to(np.concatenate([u, v])[:, None], (len(points), 8, 1))
    entries = np.linalg.solve(system, target)[..., 0]
    homography = np.concatenate([entries, np.ones((len(points), 1))], axis=1).reshape(-1, 3, 3)
    nose = np.concatenate([points[:, _NOSE], np.ones((len(points), 1))], axis=1)
    mapped = (homography @ nose[..., None])[..., 0]
    return np.asarray(mapped[:, :2] / mapped[:, 2:], np.float64)


def _spread(places: Float64, covariances: Float64) -> tuple[float, float]:
    """The reduced chi of places [F, 2] about their weighted mean, and the largest distance from it."""
    weights = np.linalg.inv(covariances)
    mean = np.linalg.solve(weights.sum(axis=0), (weights @ places[..., None]).sum(axis=0))[:, 0]
    away = places - mean
    chi_squared = float(np.einsum("fi,fij,fj->", away, weights, away))
    return float(np.sqrt(chi_squared / (2 * (len(places) - 1)))), float(np.linalg.norm(away, axis=1).max())
