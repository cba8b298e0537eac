"""The specimen document is one: marked, of the right size, with a right machine-readable zone."""

from __future__ import annotations

from datetime import date

import numpy as np
import pytest

from serve_app.kyc.specimen import Identity, render, zone_lines


def portrait(height: int = 900, width: int = 700) -> np.ndarray:
    """Red on the left half, blue on the right, in OpenCV's order."""
    picture = np.zeros((height, width, 3), np.uint8)
    picture[:, : width // 2] = (0, 0, 255)
    picture[:, width // 2 :] = (255, 0, 0)
    return picture


def test_the_zones_are_those_of_the_standard():
    erikson = Identity(date_of_expiry=date(2012, 4, 15))
    assert zone_lines(erikson, "TD3") == [
        "P<UTOERIKSSON<<ANNA<MARIA<<<<<<<<<<<<<<<<<<<",
        "L898902C36UTO7408122F1204159ZE184226B<<<<<10",
    ]
    assert zone_lines(
        Identity(document_number="D23145890", personal_number="", date_of_expiry=date(2012, 4, 15)), "TD1"
    ) == [
        "I<UTOD231458907<<<<<<<<<<<<<<<",
        "7408122F1204159UTO<<<<<<<<<<<6",
        "ERIKSSON<<ANNA<MARIA<<<<<<<<<<",
    ]


@pytest.mark.parametrize(("format", "aspect"), [("TD3", 125 / 88), ("TD1", 85.6 / 114.7)])
def test_it_has_about_two_megapixels_and_the_formats_shape(format, aspect):
    image = render(portrait(), Identity(), format)
    assert image.dtype == np.uint8
    assert image.shape[2] == 3
    assert image.shape[0] * image.shape[1] == pytest.approx(2_000_000, rel=0.03)
    assert image.shape[1] / image.shape[0] == pytest.approx(aspect, rel=0.005)


@pytest.mark.parametrize("format", ["TD3", "TD1"])
@pytest.mark.parametrize("shape", [(900, 700), (300, 1200), (1200, 300)])
def test_the_portrait_is_on_it_undistorted_and_in_its_colours(format, shape):
    image = render(portrait(*shape), Identity(), format).astype(int)
    red = np.argwhere((image[:, :, 2] > 250) & (image[:, :, :2].max(axis=2) < 5))
    blue = np.argwhere((image[:, :, 0] > 250) & (image[:, :, 1:].max(axis=2) < 5))
    height = np.ptp(red[:, 0]) + 1
    width = np.ptp(np.concatenate([red, blue])[:, 1]) + 1
    assert width / height == pytest.approx(35 / 45, abs=0.01)
    assert len(red) == pytest.approx(len(blue), rel=0.03)
    assert red[:, 1].max() < blue[:, 1].min()


def test_two_identities_look_different_and_one_always_the_same():
    first = render(portrait(), Identity())
    assert np.array_equal(first, render(portrait(), Identity()))
    assert not np.array_equal(first, render(portrait(), Identity(surname="ERIKSEN")))


def test_an_identity_that_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="document_number"):
        render(portrait(), Identity(document_number="L898902C34"), "TD3")
