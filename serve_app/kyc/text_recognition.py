"""From line crops to the text recogniser's batches, and from its answer to text.

The network reads crops 48 pixels high. Their widths differ, and only equal ones batch: each crop is padded to the next
of a few widths, its bucket, and every bucket is one call.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

import cv2
import numpy as np

from serve_app.concurrency import together
from serve_app.model import Array, Float32, Model, UInt8

HEIGHT = 48
PADDING = 127  # the grey that PP-OCR's normalisation takes to zero


@dataclass(frozen=True)
class Bucket:
    """Crops of one width, uint8[N, 48, W, 3], and which of the given crops they are."""

    members: list[int]
    crops: UInt8


def buckets(crops: Sequence[UInt8], widths: Sequence[int]) -> list[Bucket]:
    """`crops` (uint8[h, w, 3]) scaled to 48 pixels in height, each in the narrowest of the ascending `widths` for it.

    A crop wider than the last is squeezed into it.
    """
    natural = [max(1, round(crop.shape[1] * HEIGHT / crop.shape[0])) for crop in crops]
    by_width: dict[int, list[int]] = {}
    for index, width in enumerate(natural):
        bucket = next((candidate for candidate in widths if width <= candidate), widths[-1])
        by_width.setdefault(bucket, []).append(index)
    batches = []
    for bucket, members in sorted(by_width.items()):
        batch = np.full((len(members), HEIGHT, bucket, 3), PADDING, np.uint8)
        for row, index in enumerate(members):
            width = min(natural[index], bucket)
            batch[row, :, :width] = _resize(crops[index], width)
        batches.append(Bucket(members, batch))
    return batches


def _resize(crop: UInt8, width: int) -> Array:
    # Linear interpolation skips pixels where it shrinks by more than two.
    shrinks = crop.shape[0] > 2 * HEIGHT or crop.shape[1] > 2 * width
    return cv2.resize(crop, (width, HEIGHT), interpolation=cv2.INTER_AREA if shrinks else cv2.INTER_LINEAR)


def decode(indices: Array, confidences: Array, labels: Sequence[str]) -> list[tuple[str, float]]:
    """Greedy CTC: text and mean probability of its characters, for every row of the int32 and fp32 arrays [N, T].

    Class 0 is the blank, class i the label i - 1; a class that repeats without a blank between is one character
    (Graves et al., 2006). A row of blanks is an empty text of confidence 0.
    """
    previous = np.pad(indices, ((0, 0), (1, 0)))[:, :-1]
    kept = (indices != 0) & (indices != previous)
    lines = []
    for classes, scores, keep in zip(indices, confidences, kept, strict=True):
        text = "".join(labels[label - 1] for label in classes[keep].tolist())
        lines.append((text, float(scores[keep].mean()) if text else 0.0))
    return lines


async def recognise(model: Model, crops: Sequence[UInt8], widths: Sequence[int]) -> list[tuple[str, float]]:
    """Text and confidence of every crop, in their order; all buckets are asked for at once."""
    batches = await asyncio.to_thread(buckets, crops, widths)
    answers: list[tuple[Array, Float32]] = await together(*(model(batch.crops) for batch in batches))
    lines: list[tuple[str, float]] = [("", 0.0)] * len(crops)
    for batch, (indices, confidences) in zip(batches, answers, strict=True):
        for index, line in zip(batch.members, decode(indices, confidences, model.labels), strict=True):
            lines[index] = line
    return lines
