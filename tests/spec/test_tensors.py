from __future__ import annotations

import numpy as np
import pytest

from serve_app.spec.tensors import DTYPES, Tensor, parse_tensor


def test_a_tensor_is_a_type_and_its_dimensions() -> None:
    assert parse_tensor("uint8[112, -1, 3]") == Tensor("uint8", (112, -1, 3))
    assert str(parse_tensor(" float32 [ 256,15 ] ")) == "float32[256, 15]"


@pytest.mark.parametrize(
    "text", ["uint8", "uint8[]", "uint8[0]", "uint8[-2]", "uint8[1.5]", "uint8[3,]", "float[3]", 3, "text[1]"]
)
def test_what_is_no_tensor_is_refused(text: object) -> None:
    with pytest.raises(ValueError, match=r"tensor|dimension"):
        parse_tensor(text)


def test_every_type_has_its_name_on_the_wire() -> None:
    names = {dtype: Tensor(dtype, (1,)).wire for dtype in DTYPES}
    assert names == {
        "bool": "BOOL",
        "uint8": "UINT8",
        "uint16": "UINT16",
        "uint32": "UINT32",
        "uint64": "UINT64",
        "int8": "INT8",
        "int16": "INT16",
        "int32": "INT32",
        "int64": "INT64",
        "float16": "FP16",
        "float32": "FP32",
        "float64": "FP64",
        "bfloat16": "BF16",
        "string": "BYTES",
    }


@pytest.mark.parametrize(
    ("array", "fits"),
    [
        (np.zeros((2, 4, 9, 3), np.uint8), True),
        (np.zeros((4, 9, 3), np.uint8), False),
        (np.zeros((2, 5, 9, 3), np.uint8), False),
        (np.zeros((2, 4, 9, 3), np.float32), False),
    ],
    ids=["fits", "no batch dimension", "wrong dimension", "wrong type"],
)
def test_a_batch_fits_when_type_and_fixed_dimensions_agree(array: np.ndarray, fits: bool) -> None:
    assert (Tensor("uint8", (4, -1, 3)).mismatch(array) is None) == fits
