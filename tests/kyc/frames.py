"""Camera frames made of a still photo: a print of it moved before the camera, or the head in it turned."""

from __future__ import annotations

import cv2
import numpy as np

_FRAME = (640, 480)
_FOCAL = 620.0  # pixels
_DISTANCE = 450.0  # millimetres
_PRINT_WIDTH = 150.0


def rotation(yaw: float = 0, pitch: float = 0, roll: float = 0) -> np.ndarray:
    """fp64[3, 3] of angles in degrees: about the vertical axis first, then the horizontal, then the line of sight."""
    (cy, cp, cr), (sy, sp, sr) = np.cos(np.radians([yaw, pitch, roll])), np.sin(np.radians([yaw, pitch, roll]))
    about_y = np.array([[cy, 0, sy], [0, 1, 0], [-sy, 0, cy]])
    about_x = np.array([[1, 0, 0], [0, cp, -sp], [0, sp, cp]])
    about_z = np.array([[cr, -sr, 0], [sr, cr, 0], [0, 0, 1]])
    return about_z @ about_x @ about_y


def of_a_print(
    photo: np.ndarray,
    *,
    yaw: float = 0,
    pitch: float = 0,
    roll: float = 0,
    shift: tuple[float, float, float] = (0, 0, 0),
    seed: int = 0,
) -> bytes:
    """A JPEG of 640 by 480 in which a flat print of `photo`, 150 mm wide, is held 45 cm before the camera.

    A homography of the whole photo. Angles in degrees, `shift` in millimetres (right, down, away), noise by `seed`.
    """
    height, width = photo.shape[:2]
    corners = np.array([[0, 0], [width, 0], [width, height], [0, height]], float)
    flat = np.column_stack([(corners - [width / 2, height / 2]) * _PRINT_WIDTH / width, np.zeros(4)])
    seen = flat @ rotation(yaw, pitch, roll).T + np.array(shift) + [0, 0, _DISTANCE]
    image = _FOCAL * seen[:, :2] / seen[:, 2:] + np.array(_FRAME) / 2
    homography = cv2.getPerspectiveTransform(corners.astype(np.float32), image.astype(np.float32))
    shrunk = width * _DISTANCE / (_FOCAL * _PRINT_WIDTH)
    smooth = cv2.GaussianBlur(photo, (0, 0), 0.4 * shrunk) if shrunk > 1.2 else photo
    frame = cv2.warpPerspective(smooth, homography, _FRAME, borderValue=(90, 100, 110))
    noisy = frame + np.random.default_rng(seed).normal(0, 3, frame.shape)
    return cv2.imencode(".jpg", np.clip(noisy, 0, 255).astype(np.uint8), [cv2.IMWRITE_JPEG_QUALITY, 90])[1].tobytes()


def with_head_turned(photo: np.ndarray, landmarks: np.ndarray, yaw: float, pitch: float = 0) -> np.ndarray:
    """`photo` as if the head in it were turned: every pixel moves as its depth demands, the nose most.

    The depth is that of an ellipsoid for the head with a bump for the nose, in inter-ocular distances, laid over the
    face by its landmarks [5, 2]. Good to about 25°, where what the photo does not show would come into view.
    """
    right, left, nose = landmarks[:3].astype(np.float64)
    size = float(np.linalg.norm(left - right))
    across = (left - right) / size
    down = np.array([-across[1], across[0]])
    middle = landmarks[[0, 1, 3, 4]].mean(axis=0)
    rows, columns = np.mgrid[0 : photo.shape[0], 0 : photo.shape[1]].astype(np.float64)
    from_middle = np.stack([columns, rows], axis=-1) - middle
    seen_x, seen_y = from_middle @ across / size, from_middle @ down / size
    nose_x, nose_y = (nose - middle) @ across / size, (nose - middle) @ down / size

    def depth(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        head = 1.4 * np.sqrt(np.clip(1 - (x / 1.35) ** 2 - ((y + 0.15) / 1.9) ** 2, 0, None) + 1e-3) - 1.2
        return head + 0.28 * np.exp(-(((x - nose_x) / 0.2) ** 2) / 2 - ((y - nose_y) / 0.28) ** 2 / 2)

    (cy, cp), (sy, sp) = np.cos(np.radians([yaw, pitch])), np.sin(np.radians([yaw, pitch]))
    x, y = seen_x, seen_y
    for _ in range(12):  # where the pixel that is seen here was before the turn, by fixed point
        z = depth(x, y)
        x, y = (seen_x - z * sy) / cy, (seen_y - (z * cy - x * sy) * sp) / cp
    source = middle + size * (x[..., None] * across + y[..., None] * down)
    source = source.astype(np.float32)
    return cv2.remap(photo, source[..., 0], source[..., 1], cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)


# Right and left eye, nose tip, right and left mouth corner in millimetres: right, down, away from the camera.
HEAD = np.array([[-31.5, 0, 0], [31.5, 0, 0], [0, 36, -28], [-26, 72, -5], [26, 72, -5]])
FLAT_HEAD = HEAD * [1, 1, 0]


def landmarks_of(
    head: np.ndarray,
    *,
    yaw: float = 0,
    pitch: float = 0,
    roll: float = 0,
    shift: tuple[float, float, float] = (0, 0, 0),
    noise: float = 0,
    random: np.random.Generator | None = None,
) -> np.ndarray:
    """Five landmarks [5, 2] in pixels of a head model [5, 3] before a pinhole camera 45 cm away.

    `noise` is the standard deviation of a coordinate, in inter-ocular distances as seen from the front.
    """
    seen = (head - head.mean(axis=0)) @ rotation(yaw, pitch, roll).T + np.array(shift) + [0, 0, _DISTANCE]
    pixels = _FOCAL * seen[:, :2] / seen[:, 2:] + np.array(_FRAME) / 2
    size = _FOCAL * 63 / (_DISTANCE + shift[2])
    return pixels if random is None else pixels + random.normal(0, noise * size, pixels.shape)
