"""Faces among a detector's candidates: suppression, choice, uprightness, and the similarity of two embeddings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from serve_app.model import Float32

Points = NDArray[np.floating[Any]]

# Where ArcFace's training data has the landmarks in its crops of 112 by 112 pixels (InsightFace, utils/face_align.py):
# right and left eye, nose tip, right and left mouth corner, the person's own right.
TEMPLATE: Float32 = np.array(
    [[38.2946, 51.6963], [73.5318, 51.5014], [56.0252, 71.7366], [41.5493, 92.3655], [70.7299, 92.2041]], np.float32
)
TEMPLATE.setflags(write=False)
TEMPLATE_SIDE = 112

_BLENDED_OVERLAP = 0.5


@dataclass(frozen=True, eq=False)
class Detection:
    """A face. `box`: fp32[4] x, y, width, height; `landmarks`: fp32[5, 2] in the template's order; both in pixels."""

    box: Float32
    landmarks: Float32
    score: float

    @property
    def area(self) -> float:
        return float(self.box[2] * self.box[3])

    def scaled(self, factor: float) -> Detection:
        """The same face in a picture of `factor` times the size."""
        return Detection(self.box * np.float32(factor), self.landmarks * np.float32(factor), self.score)


def suppress(candidates: Float32, score_threshold: float, overlap: float) -> list[Detection]:
    """The faces among `candidates` fp32[N, 15] (score, box, landmarks), the most certain first.

    Greedy non-maximum suppression: of candidates that overlap by more than `overlap` (intersection over union) the best
    stays. Its box and landmarks become the mean, weighted by score, of all that overlap it by at least half, which
    jitters much less from frame to frame than the best alone (Bazarevsky et al. 2019, BlazeFace, §3.3).
    """
    certain = candidates[candidates[:, 0] >= score_threshold]
    remaining = certain[np.argsort(-certain[:, 0], kind="stable")]
    faces = []
    while len(remaining):
        overlaps = intersection_over_union(remaining[0, 1:5], remaining[:, 1:5])
        # A box without an area overlaps nothing, not even itself.
        overlaps[0] = 1.0
        blended = remaining[overlaps >= _BLENDED_OVERLAP]
        mean = np.average(blended[:, 1:], axis=0, weights=blended[:, 0]).astype(np.float32)
        faces.append(Detection(mean[:4], mean[4:].reshape(5, 2), float(remaining[0, 0])))
        remaining = remaining[overlaps <= overlap]
    return faces


def intersection_over_union(box: Float32, boxes: Float32) -> Float32:
    """Of a box fp32[4] (x, y, width, height) with each of `boxes` fp32[N, 4]: fp32[N], 0 where there is no area."""
    corner = np.maximum(box[:2], boxes[:, :2])
    opposite = np.minimum(box[:2] + box[2:], boxes[:, :2] + boxes[:, 2:])
    shared = np.prod(np.clip(opposite - corner, 0, None), axis=1)
    union = box[2] * box[3] + boxes[:, 2] * boxes[:, 3] - shared
    overlaps: Float32 = np.divide(shared, union, out=np.zeros_like(shared), where=union > 0)
    return overlaps


def largest(faces: Sequence[Detection]) -> Detection:
    """The face with the largest box, of one or more."""
    return max(faces, key=lambda face: face.area)


def has_company(faces: Sequence[Detection], share: float) -> bool:
    """Whether a second face has at least `share` of the largest one's area."""
    areas = sorted((face.area for face in faces), reverse=True)
    return len(areas) > 1 and areas[1] >= share * areas[0]


def roll(landmarks: Points) -> float:
    """How far a face leans to a side, in degrees, 0 (upright) to 180 (upside down).

    The larger of two angles: the line from right to left eye against the picture's right, and the line from between the
    eyes to between the mouth's corners against its down. A detector may name the eyes by where they are in the picture.
    """
    eyes = landmarks[1] - landmarks[0]
    face = landmarks[3:].mean(axis=0) - landmarks[:2].mean(axis=0)
    return float(np.degrees(max(abs(np.arctan2(eyes[1], eyes[0])), abs(np.arctan2(face[0], face[1])))))


def cosine_similarity(a: Points, b: Points) -> float:
    """Of two L2-normalised embeddings fp32[D]: -1 to 1."""
    return float(np.clip(np.dot(a.astype(np.float64), b.astype(np.float64)), -1.0, 1.0))
