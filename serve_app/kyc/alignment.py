"""Moves faces to where a network expects them: similarity transforms and the crops they make."""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

from serve_app.kyc.faces import TEMPLATE, TEMPLATE_SIDE, Points
from serve_app.model import UInt8

Matrix = NDArray[np.float64]


def similarity_transform(points: Points, onto: Points) -> Matrix:
    """The rotation, scale and shift, as fp64[2, 3], that brings `points` [N, 2] closest to `onto` [N, 2].

    Umeyama's least squares (IEEE PAMI 13(4), 1991, eqs. 40-42). In the plane, with points as complex numbers, it is
    the linear regression z -> az + b, which has no reflections in it.
    Raises ValueError where all points are the same.
    """
    z = points[:, 0].astype(np.float64) + 1j * points[:, 1]
    w = onto[:, 0].astype(np.float64) + 1j * onto[:, 1]
    centred = z - z.mean()
    spread = np.vdot(centred, centred).real
    if spread == 0:
        raise ValueError("the points are all the same: no similarity transform is defined")
    a = np.vdot(centred, w - w.mean()) / spread
    b = w.mean() - a * z.mean()
    return np.array([[a.real, -a.imag, b.real], [a.imag, a.real, b.imag]])


def inverted(matrix: Matrix, points: Points) -> Matrix:
    """`points` [N, 2] taken back through a transform fp64[2, 3]: fp64[N, 2]."""
    return np.asarray(np.linalg.solve(matrix[:, :2], (points - matrix[:, 2]).T).T, np.float64)


def warp(image: UInt8, matrix: Matrix, side: int) -> UInt8:
    """The square uint8[side, side, 3] that a similarity transform makes of `image`; black where the image ends.

    Bilinear. An image that shrinks to less than half is averaged down first, so that fine detail does not alias.
    """
    scale = float(np.hypot(matrix[0, 0], matrix[1, 0]))
    if scale < 0.5:
        image, matrix = _needed(image, matrix, side, margin=2 / scale)
        height, width = image.shape[:2]
        small = (max(1, round(width * 2 * scale)), max(1, round(height * 2 * scale)))
        image = np.asarray(cv2.resize(image, small, interpolation=cv2.INTER_AREA), np.uint8)
        grown = np.array([width / small[0], height / small[1]])
        # Pixel centres are at whole coordinates: x = (x' + 1/2) * grown - 1/2.
        matrix = np.column_stack([matrix[:, :2] * grown, matrix[:, 2] + matrix[:, :2] @ ((grown - 1) / 2)])
    return np.asarray(cv2.warpAffine(image, matrix, (side, side), flags=cv2.INTER_LINEAR), np.uint8)


def _needed(image: UInt8, matrix: Matrix, side: int, margin: float) -> tuple[UInt8, Matrix]:
    """The part of `image` that the square shows, and `margin` pixels around it; with the transform from there."""
    corners = inverted(matrix, np.array([[0, 0], [side, 0], [0, side], [side, side]], np.float64))
    most = np.array(image.shape[1::-1])
    left, top = np.clip(np.floor(corners.min(axis=0) - margin), 0, most - 1).astype(int)
    right, bottom = np.clip(np.ceil(corners.max(axis=0) + margin), (left + 1, top + 1), most).astype(int)
    moved = matrix[:, 2] + matrix[:, :2] @ np.array([left, top])
    return image[top:bottom, left:right], np.column_stack([matrix[:, :2], moved])


def align(image: UInt8, landmarks: Points) -> UInt8:
    """The face as ArcFace expects it: uint8[112, 112, 3], `landmarks` [5, 2] brought onto the template."""
    return warp(image, similarity_transform(landmarks, TEMPLATE), TEMPLATE_SIDE)


def around(image: UInt8, box: Points, side: int) -> UInt8:
    """A square about a face's box (x, y, width, height), twice as wide as its longer side: uint8[side, side, 3]."""
    scale = side / (2 * max(float(box[2]), float(box[3]), 1.0))
    middle = box[:2] + box[2:] / 2
    shift = side / 2 - scale * middle
    return warp(image, np.array([[scale, 0.0, shift[0]], [0.0, scale, shift[1]]]), side)
