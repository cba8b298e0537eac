"""From the text detector's probability map to upright line crops in reading order.

The post-processing is that of DB, "Real-time Scene Text Detection with Differentiable Binarization" (Liao et al., 2020,
section 3.5), with PP-OCR's constants as defaults. A quad is float32[4, 2]: x, y of the corners, clockwise from the
line's own top left.
"""

from __future__ import annotations

import cv2
import numpy as np

from serve_app.model import Array, Float32, UInt8

STRIDE = 32  # the detector's feature maps shrink its input by this much
_UPRIGHT_RATIO = 1.5  # a crop this much taller than wide is a line that runs vertically (PP-OCR)


def detector_size(height: int, width: int, longest_side: int) -> tuple[int, int]:
    """Height and width to give the detector: the longest side at most `longest_side`, both multiples of 32.

    Pictures are not enlarged; each side is stretched to the nearest multiple, which changes the aspect by a few percent
    at most and wastes no work on padding.
    """
    scale = min(1.0, longest_side / max(height, width))
    rows, columns = (max(STRIDE, round(side * scale / STRIDE) * STRIDE) for side in (height, width))
    return rows, columns


def text_quads(
    probability: UInt8,
    size: tuple[int, int],
    *,
    threshold: float = 0.3,
    box_threshold: float = 0.6,
    unclip_ratio: float = 1.5,
    shortest_side: float = 3.0,
) -> tuple[Float32, Float32]:
    """Quads float32[N, 4, 2] in pixels of a picture of `size` (height, width), and their mean probability float32[N].

    `probability` is uint8[H, W], 255 for certain. A region of at least `threshold` is text where its rectangle's mean
    is at least `box_threshold` and its shorter side `shortest_side` pixels of the map. DB learns regions shrunk by
    area · (1 - r²) / perimeter; growing by area · `unclip_ratio` / perimeter undoes it.
    """
    mask = (probability >= threshold * 255).astype(np.uint8)
    contours, _ = cv2.findContours(mask, cv2.RETR_LIST, cv2.CHAIN_APPROX_SIMPLE)
    quads, scores = [], []
    for contour in contours:
        centre, (a, b), angle = cv2.minAreaRect(contour)
        if min(a, b) < shortest_side:
            continue
        score = _mean_inside(probability, cv2.boxPoints((centre, (a, b), angle)))
        if score < box_threshold:
            continue
        grow = 2 * a * b * unclip_ratio / (2 * (a + b))
        quads.append(_from_top_left(cv2.boxPoints((centre, (a + grow, b + grow), angle))))
        scores.append(score)
    if not quads:
        return np.empty((0, 4, 2), np.float32), np.empty(0, np.float32)
    height, width = size
    scale = np.array([width / probability.shape[1], height / probability.shape[0]], np.float32)
    limits = np.array([width, height], np.float32)
    return np.clip(np.stack(quads) * scale, 0, limits).astype(np.float32), np.array(scores, np.float32)


def _mean_inside(probability: UInt8, quad: Array) -> float:
    """Mean probability, 0 to 1, of the pixels inside `quad`."""
    height, width = probability.shape
    left, top = np.clip(np.floor(quad.min(axis=0)).astype(int), 0, (width - 1, height - 1))
    right, bottom = np.clip(np.ceil(quad.max(axis=0)).astype(int), 0, (width - 1, height - 1))
    inside = np.zeros((bottom - top + 1, right - left + 1), np.uint8)
    cv2.fillPoly(inside, [np.rint(quad - (left, top)).astype(np.int32)], 1)
    return float(cv2.mean(probability[top : bottom + 1, left : right + 1], inside)[0]) / 255


def _from_top_left(quad: Array) -> Array:
    """The corners clockwise from the top left: of the two left ones the upper, of the two right ones the upper."""
    by_x = quad[np.argsort(quad[:, 0], kind="stable")]
    left, right = by_x[:2], by_x[2:]
    top_left, bottom_left = left[np.argsort(left[:, 1], kind="stable")]
    top_right, bottom_right = right[np.argsort(right[:, 1], kind="stable")]
    return np.stack([top_left, top_right, bottom_right, bottom_left])


def reading_rows(quads: Float32) -> list[list[int]]:
    """Indices of `quads` (float32[N, 4, 2]) by row from the top, each row from the left.

    Lines are in a row where they overlap by more than half of the lower one's height. Heights are measured across the
    text's own direction, so that a tilted page reads like a straight one.
    """
    if len(quads) == 0:
        return []
    turn = _tilt(quads)
    along = np.array([[np.cos(turn), np.sin(turn)], [-np.sin(turn), np.cos(turn)]], np.float32)
    centres = quads.mean(axis=1) @ along.T
    heights = np.linalg.norm(quads[:, 3] - quads[:, 0], axis=1)
    tops, bottoms = centres[:, 1] - heights / 2, centres[:, 1] + heights / 2
    rows: list[list[int]] = []
    for index in np.argsort(centres[:, 1], kind="stable").tolist():
        if rows:
            last = rows[-1][-1]
            overlap = min(bottoms[index], bottoms[last]) - max(tops[index], tops[last])
            if overlap > 0.5 * min(heights[index], heights[last]):
                rows[-1].append(index)
                continue
        rows.append([index])
    return [sorted(row, key=lambda index: float(centres[index, 0])) for row in rows]


def _tilt(quads: Float32) -> float:
    """The page's rotation in radians: the median of the lines' directions, each as often as its length says."""
    edges = quads[:, 1] - quads[:, 0]
    lengths = np.linalg.norm(edges, axis=1)
    angles = np.arctan2(edges[:, 1], edges[:, 0])
    order = np.argsort(angles)
    middle = int(np.searchsorted(np.cumsum(lengths[order]), lengths.sum() / 2))
    return float(angles[order][min(middle, len(quads) - 1)])


def crop_line(image: UInt8, quad: Float32) -> UInt8:
    """The text inside `quad` as an upright picture uint8[h, w, 3]; a line that runs vertically is turned left."""
    width = max(1, round(max(float(np.linalg.norm(quad[0] - quad[1])), float(np.linalg.norm(quad[3] - quad[2])))))
    height = max(1, round(max(float(np.linalg.norm(quad[0] - quad[3])), float(np.linalg.norm(quad[1] - quad[2])))))
    corners = np.array([[0, 0], [width, 0], [width, height], [0, height]], np.float32)
    matrix = cv2.getPerspectiveTransform(quad, corners)
    flat = cv2.warpPerspective(image, matrix, (width, height), flags=cv2.INTER_CUBIC, borderMode=cv2.BORDER_REPLICATE)
    if height >= _UPRIGHT_RATIO * width:
        flat = np.rot90(flat)
    return np.ascontiguousarray(flat, dtype=np.uint8)
