"""Width buckets and CTC decoding."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest

from serve_app.kyc.text_recognition import buckets, decode, recognise

WIDTHS = (96, 160, 320)


def crop(height: int, width: int, value: int = 200) -> np.ndarray:
    return np.full((height, width, 3), value, np.uint8)


def test_crops_go_to_the_narrowest_width_that_holds_them():
    crops = [crop(48, 96), crop(24, 49), crop(96, 640), crop(48, 97), crop(20, 900), crop(48, 3)]
    batches = buckets(crops, WIDTHS)
    assert [(batch.members, batch.crops.shape) for batch in batches] == [
        ([0, 5], (2, 48, 96, 3)),
        ([1, 3], (2, 48, 160, 3)),
        ([2, 4], (2, 48, 320, 3)),
    ]
    assert all(batch.crops.dtype == np.uint8 for batch in batches)


def test_what_a_crop_does_not_fill_is_the_networks_grey():
    (batch,) = buckets([crop(24, 30, 9)], WIDTHS)
    assert (batch.crops[0, :, :60] == 9).all()
    assert (batch.crops[0, :, 60:] == 127).all()


def test_a_line_too_wide_is_squeezed_whole():
    line = np.concatenate([crop(48, 480, 0), crop(48, 480, 255)], axis=1)
    (batch,) = buckets([line], WIDTHS)
    assert batch.crops.shape == (1, 48, 320, 3)
    assert (batch.crops[0, :, :158] == 0).all()
    assert (batch.crops[0, :, 162:] == 255).all()


def test_a_large_crop_keeps_thin_strokes_when_it_shrinks():
    line = crop(480, 960, 255)
    line[:, ::10] = 0  # a tenth of the ink
    (batch,) = buckets([line], WIDTHS)
    assert batch.crops[0, :, :96].mean() == pytest.approx(255 * 0.9, abs=1)


LABELS = ["A", "B", "<", " "]


@pytest.mark.parametrize(
    ("indices", "text", "confidence"),
    [
        ([0, 1, 1, 0, 2, 0], "AB", (0.9 + 0.5) / 2),
        ([1, 0, 1, 0, 0, 0], "AA", (0.8 + 0.7) / 2),
        ([3, 3, 3, 3, 3, 3], "<", 0.8),
        ([4, 1, 0, 4, 0, 2], " A B", (0.8 + 0.9 + 0.6 + 0.4) / 4),
        ([0, 0, 0, 0, 0, 0], "", 0.0),
    ],
)
def test_ctc_joins_repeats_drops_blanks_and_averages_the_characters_it_keeps(indices, text, confidence):
    scores = [0.8, 0.9, 0.7, 0.6, 0.5, 0.4]
    ((read, score),) = decode(np.array([indices], np.int32), np.array([scores], np.float32), LABELS)
    assert read == text
    assert score == pytest.approx(confidence)


def test_every_row_of_a_batch_is_decoded_by_itself():
    indices = np.array([[1, 0, 2], [2, 2, 0], [0, 0, 0]], np.int32)
    lines = decode(indices, np.full((3, 3), 0.5, np.float32), LABELS)
    assert lines == [("AB", 0.5), ("B", 0.5), ("", 0.0)]


class _Meeting:
    """A model that answers only once every bucket has asked; it reads a crop's first pixel."""

    labels = LABELS

    def __init__(self, calls: int):
        self.barrier = asyncio.Event()
        self.missing = calls

    async def __call__(self, crops):
        self.missing -= 1
        if self.missing == 0:
            self.barrier.set()
        await asyncio.wait_for(self.barrier.wait(), 5)
        return crops[:, :1, 0, 0].astype(np.int32), np.ones((len(crops), 1), np.float32)


async def test_all_buckets_are_asked_at_once_and_texts_keep_the_crops_order():
    crops = [crop(48, 300, 1), crop(48, 90, 2), crop(48, 150, 3), crop(48, 310, 2)]
    lines = await recognise(_Meeting(calls=3), crops, WIDTHS)
    assert lines == [("A", 1.0), ("B", 1.0), ("<", 1.0), ("B", 1.0)]


async def test_without_crops_nobody_is_asked():
    assert await recognise(_Meeting(calls=1), [], WIDTHS) == []
